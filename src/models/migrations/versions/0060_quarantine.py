"""Suspects: which process executes them, and since when they are quarantined.

Revision ID: 0060
Revises: 0059
"""

import sqlalchemy as sa
from alembic import op

revision = "0060"
down_revision = "0059"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("work_suspect", sa.Column("held_by", sa.String(), nullable=True))
    op.add_column(
        "work_suspect", sa.Column("quarantined_at", sa.DateTime(timezone=True), nullable=True)
    )


def downgrade() -> None:
    op.drop_column("work_suspect", "quarantined_at")
    op.drop_column("work_suspect", "held_by")
