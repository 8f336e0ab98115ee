"""Deliveries on their way to one target, quickly counted.

Revision ID: 0053
Revises: 0052
"""

import sqlalchemy as sa
from alembic import op

revision = "0053"
down_revision = "0052"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        "ix_delivery_open_target_id",
        "delivery",
        ["target_id"],
        postgresql_where=sa.text("status IN ('pending')"),
    )


def downgrade() -> None:
    op.drop_index("ix_delivery_open_target_id", table_name="delivery")
