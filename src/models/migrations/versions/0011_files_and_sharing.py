"""Stored files, and share links."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0011'
down_revision = '0010'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index('ix_item_workspace_id_target_id', 'item', ['workspace_id', 'target_id'], unique=False, postgresql_where=sa.text('target_id IS NOT NULL'))
    op.create_table('file',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('workspace_id', sa.Uuid(), nullable=False),
    sa.Column('name', sa.String(), nullable=False),
    sa.Column('mime_type', sa.String(), nullable=False),
    sa.Column('byte_size', sa.BigInteger(), nullable=False),
    sa.Column('sha256', postgresql.BYTEA(), nullable=False),
    sa.Column('object_key', sa.String(), nullable=False),
    sa.Column('created_by_user_id', sa.Uuid(), nullable=False),
    sa.Column('private', sa.Boolean(), server_default=sa.text('false'), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('deleted_at', sa.DateTime(timezone=True), nullable=True),
    sa.CheckConstraint('byte_size >= 0', name=op.f('ck_file_byte_size')),
    sa.CheckConstraint('octet_length(sha256) = 32', name=op.f('ck_file_sha256')),
    sa.ForeignKeyConstraint(['created_by_user_id'], ['app_user.id'], name=op.f('fk_file_created_by_user_id_app_user')),
    sa.ForeignKeyConstraint(['workspace_id'], ['workspace.id'], name=op.f('fk_file_workspace_id_workspace')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_file')),
    sa.UniqueConstraint('workspace_id', 'id', name=op.f('uq_file_workspace_id_id'))
    )
    op.create_index('ix_file_object_key', 'file', ['object_key'], unique=False)
    op.create_index('ix_file_deleted_at', 'file', ['deleted_at'], unique=False, postgresql_where=sa.text('deleted_at IS NOT NULL'))
    op.create_index('ix_file_workspace_id_created_at_id', 'file', ['workspace_id', 'created_at', 'id'], unique=False, postgresql_where=sa.text('deleted_at IS NULL'))
    op.create_table('share_link',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('workspace_id', sa.Uuid(), nullable=False),
    sa.Column('workspace_item_id', sa.Uuid(), nullable=False),
    sa.Column('kind', sa.String(), nullable=False),
    sa.Column('digest', postgresql.BYTEA(), nullable=False),
    sa.Column('expires_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('max_uses', sa.Integer(), nullable=True),
    sa.Column('use_count', sa.Integer(), server_default=sa.text('0'), nullable=False),
    sa.Column('allow_download', sa.Boolean(), nullable=False),
    sa.Column('created_by_user_id', sa.Uuid(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('revoked_at', sa.DateTime(timezone=True), nullable=True),
    sa.CheckConstraint('use_count >= 0 AND use_count <= max_uses', name=op.f('ck_share_link_use_count')),
    sa.ForeignKeyConstraint(['created_by_user_id'], ['app_user.id'], name=op.f('fk_share_link_created_by_user_id_app_user')),
    sa.ForeignKeyConstraint(['workspace_id', 'workspace_item_id'], ['item.workspace_id', 'item.id'], name=op.f('fk_share_link_workspace_id_workspace_item_id_item'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_share_link')),
    sa.UniqueConstraint('workspace_id', 'id', name=op.f('uq_share_link_workspace_id_id'))
    )
    op.create_index('ix_share_link_workspace_id_workspace_item_id_created_at_id', 'share_link', ['workspace_id', 'workspace_item_id', 'created_at', 'id'], unique=False)


def downgrade() -> None:
    op.drop_index('ix_share_link_workspace_id_workspace_item_id_created_at_id', table_name='share_link')
    op.drop_table('share_link')
    op.drop_index('ix_file_workspace_id_created_at_id', table_name='file', postgresql_where=sa.text('deleted_at IS NULL'))
    op.drop_index('ix_file_object_key', table_name='file')
    op.drop_index('ix_file_deleted_at', table_name='file', postgresql_where=sa.text('deleted_at IS NOT NULL'))
    op.drop_table('file')
    op.drop_index('ix_item_workspace_id_target_id', table_name='item', postgresql_where=sa.text('target_id IS NOT NULL'))
