"""Schedules of data sources: when each is refreshed next, and the due times that made no run."""

import sqlalchemy as sa
from alembic import op

revision = '0028'
down_revision = '0027'
branch_labels = None
depends_on = None

COUNTS = ("skipped_fires", "missed_fires", "joined_fires")
MOMENTS = ("next_run_at", "last_joined_at")


def upgrade() -> None:
    for name in COUNTS:
        op.add_column('data_source', sa.Column(name, sa.Integer(), server_default=sa.text('0'), nullable=False))
    for name in MOMENTS:
        op.add_column('data_source', sa.Column(name, sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    for name in (*MOMENTS, *COUNTS):
        op.drop_column('data_source', name)
