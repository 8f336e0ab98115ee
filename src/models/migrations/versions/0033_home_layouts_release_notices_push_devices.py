"""Home layouts, release notices and push devices.

Revision ID: 0033
Revises: 0032
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('push_device',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('user_id', sa.Uuid(), nullable=False),
    sa.Column('installation_id', sa.String(), nullable=False),
    sa.Column('platform', sa.String(), nullable=False),
    sa.Column('provider', sa.String(), nullable=False),
    sa.Column('token_digest', sa.LargeBinary(), nullable=False),
    sa.Column('sealed_token', sa.LargeBinary(), nullable=False),
    sa.Column('app_version', sa.String(), nullable=True),
    sa.Column('locale', sa.String(), nullable=True),
    sa.Column('registered_at', sa.DateTime(timezone=True), nullable=False),
    sa.CheckConstraint("platform IN ('ios', 'android', 'web')", name=op.f('ck_push_device_platform')),
    sa.CheckConstraint("provider IN ('apns', 'fcm', 'webpush')", name=op.f('ck_push_device_provider')),
    sa.ForeignKeyConstraint(['user_id'], ['app_user.id'], name=op.f('fk_push_device_user_id_app_user')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_push_device'))
    )
    op.create_index('ix_push_device_user_id', 'push_device', ['user_id', 'registered_at', 'id'], unique=False)
    op.create_index('uq_push_device_installation_id', 'push_device', ['installation_id'], unique=True)
    op.create_index('uq_push_device_token_digest', 'push_device', ['token_digest'], unique=True)
    op.create_table('release_notice',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('number', sa.BigInteger(), sa.Identity(always=True), nullable=False),
    sa.Column('channel', sa.String(), nullable=False),
    sa.Column('title', sa.String(), nullable=False),
    sa.Column('body', sa.String(), nullable=False),
    sa.Column('url', sa.String(), nullable=True),
    sa.Column('published_by_user_id', sa.Uuid(), nullable=False),
    sa.Column('published_at', sa.DateTime(timezone=True), nullable=False),
    sa.CheckConstraint("channel IN ('web', 'mobile')", name=op.f('ck_release_notice_channel')),
    sa.ForeignKeyConstraint(['published_by_user_id'], ['app_user.id'], name=op.f('fk_release_notice_published_by_user_id_app_user')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_release_notice'))
    )
    op.create_index('uq_release_notice_channel_number', 'release_notice', ['channel', 'number'], unique=True)
    op.create_table('release_watermark',
    sa.Column('user_id', sa.Uuid(), nullable=False),
    sa.Column('channel', sa.String(), nullable=False),
    sa.Column('release_id', sa.Uuid(), nullable=False),
    sa.Column('number', sa.BigInteger(), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.CheckConstraint("channel IN ('web', 'mobile')", name=op.f('ck_release_watermark_channel')),
    sa.ForeignKeyConstraint(['release_id'], ['release_notice.id'], name=op.f('fk_release_watermark_release_id_release_notice')),
    sa.ForeignKeyConstraint(['user_id'], ['app_user.id'], name=op.f('fk_release_watermark_user_id_app_user')),
    sa.PrimaryKeyConstraint('user_id', 'channel', name=op.f('pk_release_watermark'))
    )
    op.create_index('ix_release_watermark_release_id', 'release_watermark', ['release_id'], unique=False)
    op.create_table('home_layout',
    sa.Column('workspace_id', sa.Uuid(), nullable=False),
    sa.Column('user_id', sa.Uuid(), nullable=False),
    sa.Column('widgets', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['workspace_id', 'user_id'], ['workspace_member.workspace_id', 'workspace_member.user_id'], name=op.f('fk_home_layout_workspace_id_user_id_workspace_member'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('workspace_id', 'user_id', name=op.f('pk_home_layout'))
    )


def downgrade() -> None:
    op.drop_table('home_layout')
    op.drop_index('ix_release_watermark_release_id', table_name='release_watermark')
    op.drop_table('release_watermark')
    op.drop_index('uq_release_notice_channel_number', table_name='release_notice')
    op.drop_table('release_notice')
    op.drop_index('uq_push_device_token_digest', table_name='push_device')
    op.drop_index('uq_push_device_installation_id', table_name='push_device')
    op.drop_index('ix_push_device_user_id', table_name='push_device')
    op.drop_table('push_device')
