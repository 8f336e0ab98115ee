"""Versions of automations keep who wrote their content last, and when."""

import sqlalchemy as sa
from alembic import op

revision = "0106"
down_revision = "0105"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("automation_version", sa.Column("changed_by_user_id", sa.Uuid(), nullable=True))
    op.add_column(
        "automation_version", sa.Column("changed_at", sa.DateTime(timezone=True), nullable=True)
    )


def downgrade() -> None:
    op.drop_column("automation_version", "changed_at")
    op.drop_column("automation_version", "changed_by_user_id")
