"""An automation counts how often a rename has rewritten its versions."""

import sqlalchemy as sa
from alembic import op

revision = "0112"
down_revision = "0111"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "automation", sa.Column("rewrites", sa.Integer(), server_default="0", nullable=False)
    )


def downgrade() -> None:
    op.drop_column("automation", "rewrites")
