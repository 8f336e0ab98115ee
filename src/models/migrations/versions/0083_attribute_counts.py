"""Counts of ended runs by the attributes that metrics tell (ADR 0095)."""

import sqlalchemy as sa
from alembic import op

revision = "0083"
down_revision = "0081"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "attribute_count",
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("value", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("runs", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key", "value", "status", name="pk_attribute_count"),
    )


def downgrade() -> None:
    op.drop_table("attribute_count")
