"""Pauses of connections, as columns of the place whose line they hold (ADR 0097)."""

import sqlalchemy as sa
from alembic import op

revision = "0084"
down_revision = "0083"
branch_labels = None
depends_on = None


def upgrade() -> None:
    moment = sa.DateTime(timezone=True)
    op.add_column("outbound_place", sa.Column("paused_at", moment, nullable=True))
    op.add_column("outbound_place", sa.Column("pause_reason", sa.String(), nullable=True))
    op.add_column("outbound_place", sa.Column("paused_by_user_id", sa.Uuid(), nullable=True))
    op.add_column("outbound_place", sa.Column("resumed_at", moment, nullable=True))
    op.add_column("outbound_place", sa.Column("release_rate", sa.Integer(), nullable=True))


def downgrade() -> None:
    op.drop_column("outbound_place", "release_rate")
    op.drop_column("outbound_place", "resumed_at")
    op.drop_column("outbound_place", "paused_by_user_id")
    op.drop_column("outbound_place", "pause_reason")
    op.drop_column("outbound_place", "paused_at")
