"""The trash of items, and actions, data sources and mounts."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0004'
down_revision = '0003'
branch_labels = None
depends_on = None

_TREE = 'ix_item_workspace_id_parent_item_id_position_id'
_TREE_COLUMNS = ['workspace_id', 'parent_item_id', 'position', 'id']


def upgrade() -> None:
    op.add_column('item', sa.Column('deleted_with', sa.Uuid(), nullable=True))
    op.execute("UPDATE item SET deleted_with = id WHERE deleted_at IS NOT NULL")
    op.drop_index(_TREE, table_name='item', postgresql_where=sa.text("deleted_at IS NULL"))
    op.create_index(_TREE, 'item', _TREE_COLUMNS, unique=False)
    op.create_index('ix_item_trash', 'item', ['deleted_at', 'id'], unique=False, postgresql_where=sa.text("deleted_at IS NOT NULL"))
    op.create_index('ix_item_workspace_id_deleted_with', 'item', ['workspace_id', 'deleted_with'], unique=False, postgresql_where=sa.text("deleted_with IS NOT NULL"))
    op.create_table('action',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('workspace_id', sa.Uuid(), nullable=False),
    sa.Column('item_id', sa.Uuid(), nullable=False),
    sa.Column('key', sa.String(), nullable=False),
    sa.Column('kind', sa.String(), nullable=False),
    sa.Column('config', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('enabled', sa.Boolean(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.CheckConstraint("kind IN ('refresh_data_source', 'run_automation', 'create_record', 'update_record', 'delete_record', 'query_records', 'http_request', 'send_notification', 'send_email', 'send_webhook', 'import_resource', 'transform', 'sequence')", name=op.f('ck_action_kind')),
    sa.ForeignKeyConstraint(['workspace_id', 'item_id'], ['item.workspace_id', 'item.id'], name=op.f('fk_action_workspace_id_item_id_item')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_action')),
    sa.UniqueConstraint('item_id', name=op.f('uq_action_item_id')),
    sa.UniqueConstraint('workspace_id', 'id', name=op.f('uq_action_workspace_id_id')),
    sa.UniqueConstraint('workspace_id', 'key', name=op.f('uq_action_workspace_id_key'))
    )
    op.create_index('ix_action_workspace_id_created_at_id', 'action', ['workspace_id', 'created_at', 'id'], unique=False)
    op.create_table('data_source',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('workspace_id', sa.Uuid(), nullable=False),
    sa.Column('item_id', sa.Uuid(), nullable=False),
    sa.Column('key', sa.String(), nullable=False),
    sa.Column('kind', sa.String(), nullable=False),
    sa.Column('config', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('fields', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('target_database_id', sa.Uuid(), nullable=True),
    sa.Column('key_fields', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('write_mode', sa.String(), nullable=False),
    sa.Column('removed_rows', sa.String(), nullable=False),
    sa.Column('removal_guard_percent', sa.Integer(), nullable=False),
    sa.Column('schedule', postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
    sa.Column('enabled', sa.Boolean(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.CheckConstraint("kind IN ('http_json', 'http_csv', 'http_xlsx', 'file', 'sql', 'connection')", name=op.f('ck_data_source_kind')),
    sa.ForeignKeyConstraint(['workspace_id', 'item_id'], ['item.workspace_id', 'item.id'], name=op.f('fk_data_source_workspace_id_item_id_item')),
    sa.ForeignKeyConstraint(['workspace_id', 'target_database_id'], ['database.workspace_id', 'database.id'], name=op.f('fk_data_source_workspace_id_target_database_id_database')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_data_source')),
    sa.UniqueConstraint('item_id', name=op.f('uq_data_source_item_id')),
    sa.UniqueConstraint('workspace_id', 'id', name=op.f('uq_data_source_workspace_id_id')),
    sa.UniqueConstraint('workspace_id', 'key', name=op.f('uq_data_source_workspace_id_key'))
    )
    op.create_index('ix_data_source_workspace_id_created_at_id', 'data_source', ['workspace_id', 'created_at', 'id'], unique=False)
    op.create_index('ix_data_source_workspace_id_target_database_id', 'data_source', ['workspace_id', 'target_database_id'], unique=False)
    op.create_table('mount',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('workspace_id', sa.Uuid(), nullable=False),
    sa.Column('item_id', sa.Uuid(), nullable=False),
    sa.Column('connection_id', sa.Uuid(), nullable=True),
    sa.Column('resource', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('recursive', sa.Boolean(), nullable=False),
    sa.Column('status', sa.String(), nullable=False),
    sa.Column('last_synced_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.CheckConstraint("status IN ('active', 'stale', 'error')", name=op.f('ck_mount_status')),
    sa.ForeignKeyConstraint(['workspace_id', 'item_id'], ['item.workspace_id', 'item.id'], name=op.f('fk_mount_workspace_id_item_id_item')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_mount')),
    sa.UniqueConstraint('item_id', name=op.f('uq_mount_item_id')),
    sa.UniqueConstraint('workspace_id', 'id', name=op.f('uq_mount_workspace_id_id'))
    )


def downgrade() -> None:
    op.drop_table('mount')
    op.drop_index('ix_data_source_workspace_id_target_database_id', table_name='data_source')
    op.drop_index('ix_data_source_workspace_id_created_at_id', table_name='data_source')
    op.drop_table('data_source')
    op.drop_index('ix_action_workspace_id_created_at_id', table_name='action')
    op.drop_table('action')
    op.drop_index('ix_item_workspace_id_deleted_with', table_name='item', postgresql_where=sa.text("deleted_with IS NOT NULL"))
    op.drop_index('ix_item_trash', table_name='item', postgresql_where=sa.text("deleted_at IS NOT NULL"))
    op.drop_index(_TREE, table_name='item')
    op.create_index(_TREE, 'item', _TREE_COLUMNS, unique=False, postgresql_where=sa.text("deleted_at IS NULL"))
    op.drop_column('item', 'deleted_with')
