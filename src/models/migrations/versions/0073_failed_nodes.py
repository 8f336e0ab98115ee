"""Runs are found by the node that failed in them, without reading the others."""

import sqlalchemy as sa
from alembic import op

revision = "0073"
down_revision = "0072"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        "ix_node_run_failed",
        "node_run",
        ["run_id", "node_id", "error_code"],
        postgresql_where=sa.text("status = 'failed'"),
    )


def downgrade() -> None:
    op.drop_index("ix_node_run_failed", "node_run")
