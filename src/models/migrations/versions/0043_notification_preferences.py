"""Notification preferences.

Revision ID: 0043
Revises: 0042
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0043"
down_revision = "0042"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('notification_preference',
    sa.Column('user_id', sa.Uuid(), nullable=False),
    sa.Column('choices', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['user_id'], ['app_user.id'], name=op.f('fk_notification_preference_user_id_app_user')),
    sa.PrimaryKeyConstraint('user_id', name=op.f('pk_notification_preference'))
    )


def downgrade() -> None:
    op.drop_table('notification_preference')
