"""Credentials in the operations of change sets are sealed, and gone when one is closed.

Revision ID: 0051
Revises: 0050
"""

import sqlalchemy as sa
from alembic import op

revision = "0051"
down_revision = "0050"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("change_set", sa.Column("sealed_credentials", sa.LargeBinary(), nullable=True))
    op.create_check_constraint(
        op.f("ck_change_set_closed_without_credentials"),
        "change_set",
        "sealed_credentials IS NULL OR completed_at IS NULL",
    )


def downgrade() -> None:
    op.drop_column("change_set", "sealed_credentials")
