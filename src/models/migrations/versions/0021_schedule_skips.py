"""Due times of schedules that had no run.

Revision ID: 0021
Revises: 0020
"""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name in ("skipped_fires", "missed_fires"):
        op.add_column(
            "automation", sa.Column(name, sa.Integer(), server_default="0", nullable=False)
        )


def downgrade() -> None:
    for name in ("missed_fires", "skipped_fires"):
        op.drop_column("automation", name)
