"""Approvals that wait for people are found without those that are decided."""

import sqlalchemy as sa
from alembic import op

revision = "0069"
down_revision = "0068"
branch_labels = None
depends_on = None

PENDING = sa.text("kind = 'approval' AND outcome IS NULL")


def upgrade() -> None:
    op.create_index(
        "ix_run_wait_pending_approval",
        "run_wait",
        ["workspace_id", "created_at"],
        postgresql_where=PENDING,
    )


def downgrade() -> None:
    op.drop_index("ix_run_wait_pending_approval", "run_wait")
