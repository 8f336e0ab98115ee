"""initial"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql
revision = '0001'
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('app_user',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('issuer', sa.String(), nullable=False),
    sa.Column('subject', sa.String(), nullable=False),
    sa.Column('email', sa.String(), nullable=True),
    sa.Column('name', sa.String(), nullable=True),
    sa.Column('platform_admin', sa.Boolean(), server_default=sa.text('false'), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_app_user')),
    sa.UniqueConstraint('issuer', 'subject', name=op.f('uq_app_user_issuer_subject'))
    )
    op.create_index('ix_app_user_email', 'app_user', [sa.literal_column('lower(email)')], unique=False)
    op.create_table('idempotency_reply',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('fingerprint', postgresql.BYTEA(), nullable=False),
    sa.Column('request_hash', postgresql.BYTEA(), nullable=False),
    sa.Column('status', sa.Integer(), nullable=True),
    sa.Column('reply', postgresql.BYTEA(), nullable=True),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('expires_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_idempotency_reply')),
    sa.UniqueConstraint('fingerprint', name=op.f('uq_idempotency_reply_fingerprint'))
    )
    op.create_index('ix_idempotency_reply_expires_at', 'idempotency_reply', ['expires_at'], unique=False)
    op.create_table('outbox',
    sa.Column('id', sa.BigInteger(), sa.Identity(always=True), nullable=False),
    sa.Column('workspace_id', sa.Uuid(), nullable=False),
    sa.Column('intent', sa.String(), nullable=False),
    sa.Column('family', sa.String(), nullable=False),
    sa.Column('subject_id', sa.Uuid(), nullable=False),
    sa.Column('facts', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('claimed_until', sa.DateTime(timezone=True), nullable=True),
    sa.Column('attempts', sa.Integer(), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_outbox'))
    )
    op.create_index('ix_outbox_subject_id', 'outbox', ['subject_id'], unique=False)
    op.create_index('ix_outbox_workspace_id_id', 'outbox', ['workspace_id', 'id'], unique=False)
    op.create_table('request_log',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('workspace_id', sa.Uuid(), nullable=True),
    sa.Column('principal_type', sa.String(), nullable=False),
    sa.Column('principal_id', sa.Uuid(), nullable=False),
    sa.Column('api_key_id', sa.Uuid(), nullable=True),
    sa.Column('method', sa.String(), nullable=False),
    sa.Column('path', sa.String(), nullable=False),
    sa.Column('status', sa.Integer(), nullable=False),
    sa.Column('idempotency_key', sa.String(), nullable=True),
    sa.Column('error', sa.String(), nullable=True),
    sa.Column('duration_ms', sa.Float(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_request_log'))
    )
    op.create_index('ix_request_log_created_at', 'request_log', ['created_at'], unique=False)
    op.create_index('ix_request_log_workspace_id_created_at_id', 'request_log', ['workspace_id', 'created_at', 'id'], unique=False)
    op.create_table('workspace',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('name', sa.String(), nullable=False),
    sa.Column('slug', sa.String(), nullable=False),
    sa.Column('icon', sa.String(), nullable=True),
    sa.Column('created_by_user_id', sa.Uuid(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('deleted_at', sa.DateTime(timezone=True), nullable=True),
    sa.ForeignKeyConstraint(['created_by_user_id'], ['app_user.id'], name=op.f('fk_workspace_created_by_user_id_app_user')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_workspace'))
    )
    op.create_index('uq_workspace_slug', 'workspace', ['slug'], unique=True, postgresql_where=sa.text('deleted_at IS NULL'))
    op.create_table('api_key',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('workspace_id', sa.Uuid(), nullable=False),
    sa.Column('name', sa.String(), nullable=False),
    sa.Column('prefix', sa.String(), nullable=False),
    sa.Column('digest', postgresql.BYTEA(), nullable=False),
    sa.Column('scopes', postgresql.ARRAY(sa.Text()), nullable=False),
    sa.Column('bound_user_id', sa.Uuid(), nullable=False),
    sa.Column('created_by_user_id', sa.Uuid(), nullable=False),
    sa.Column('last_used_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('expires_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('revoked_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['bound_user_id'], ['app_user.id'], name=op.f('fk_api_key_bound_user_id_app_user')),
    sa.ForeignKeyConstraint(['created_by_user_id'], ['app_user.id'], name=op.f('fk_api_key_created_by_user_id_app_user')),
    sa.ForeignKeyConstraint(['workspace_id'], ['workspace.id'], name=op.f('fk_api_key_workspace_id_workspace')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_api_key')),
    sa.UniqueConstraint('digest', name=op.f('uq_api_key_digest')),
    sa.UniqueConstraint('workspace_id', 'id', name=op.f('uq_api_key_workspace_id_id'))
    )
    op.create_index('ix_api_key_workspace_id_created_at_id', 'api_key', ['workspace_id', 'created_at', 'id'], unique=False)
    op.create_table('item',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('workspace_id', sa.Uuid(), nullable=False),
    sa.Column('parent_item_id', sa.Uuid(), nullable=True),
    sa.Column('kind', sa.String(), nullable=False),
    sa.Column('target_id', sa.Uuid(), nullable=True),
    sa.Column('title', sa.String(), nullable=False),
    sa.Column('icon', sa.String(), nullable=True),
    sa.Column('color', sa.String(), nullable=True),
    sa.Column('position', sa.Float(), nullable=False),
    sa.Column('archived', sa.Boolean(), server_default=sa.text('false'), nullable=False),
    sa.Column('access_mode', sa.String(), server_default=sa.text("'open'"), nullable=False),
    sa.Column('metadata', postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('deleted_at', sa.DateTime(timezone=True), nullable=True),
    sa.CheckConstraint("access_mode IN ('open', 'restricted')", name=op.f('ck_item_access_mode')),
    sa.CheckConstraint("kind IN ('folder', 'page', 'note', 'dashboard', 'canvas', 'view', 'form', 'database', 'file', 'data_source', 'action', 'automation', 'external_resource')", name=op.f('ck_item_kind')),
    sa.CheckConstraint('parent_item_id <> id', name=op.f('ck_item_not_its_own_parent')),
    sa.ForeignKeyConstraint(['workspace_id', 'parent_item_id'], ['item.workspace_id', 'item.id'], name=op.f('fk_item_workspace_id_parent_item_id_item')),
    sa.ForeignKeyConstraint(['workspace_id'], ['workspace.id'], name=op.f('fk_item_workspace_id_workspace')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_item')),
    sa.UniqueConstraint('workspace_id', 'id', name=op.f('uq_item_workspace_id_id'))
    )
    op.create_index('ix_item_closed', 'item', ['workspace_id', 'id'], unique=False, postgresql_where=sa.text("deleted_at IS NOT NULL OR access_mode = 'restricted'"))
    op.create_index('ix_item_workspace_id_parent_item_id_position_id', 'item', ['workspace_id', 'parent_item_id', 'position', 'id'], unique=False, postgresql_where=sa.text('deleted_at IS NULL'))
    op.create_table('workspace_member',
    sa.Column('workspace_id', sa.Uuid(), nullable=False),
    sa.Column('user_id', sa.Uuid(), nullable=False),
    sa.Column('role', sa.String(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.CheckConstraint("role IN ('owner', 'admin', 'editor', 'commenter', 'viewer', 'guest')", name=op.f('ck_workspace_member_role')),
    sa.ForeignKeyConstraint(['user_id'], ['app_user.id'], name=op.f('fk_workspace_member_user_id_app_user')),
    sa.ForeignKeyConstraint(['workspace_id'], ['workspace.id'], name=op.f('fk_workspace_member_workspace_id_workspace')),
    sa.PrimaryKeyConstraint('workspace_id', 'user_id', name=op.f('pk_workspace_member'))
    )
    op.create_index('ix_workspace_member_user_id', 'workspace_member', ['user_id'], unique=False)
    op.create_table('automation',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('workspace_id', sa.Uuid(), nullable=False),
    sa.Column('item_id', sa.Uuid(), nullable=False),
    sa.Column('key', sa.String(), nullable=False),
    sa.Column('label', sa.String(), nullable=False),
    sa.Column('enabled', sa.Boolean(), nullable=False),
    sa.Column('draft_version_id', sa.Uuid(), nullable=True),
    sa.Column('published_version_id', sa.Uuid(), nullable=True),
    sa.Column('last_version', sa.Integer(), nullable=False),
    sa.Column('webhook_token', sa.String(), nullable=False),
    sa.Column('sealed_webhook_secret', sa.LargeBinary(), nullable=False),
    sa.Column('next_run_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['workspace_id', 'item_id'], ['item.workspace_id', 'item.id'], name=op.f('fk_automation_workspace_id_item_id_item')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_automation')),
    sa.UniqueConstraint('webhook_token', name=op.f('uq_automation_webhook_token')),
    sa.UniqueConstraint('workspace_id', 'id', name=op.f('uq_automation_workspace_id_id')),
    sa.UniqueConstraint('workspace_id', 'key', name=op.f('uq_automation_workspace_id_key'))
    )
    op.create_index('ix_automation_workspace_id_created_at_id', 'automation', ['workspace_id', 'created_at', 'id'], unique=False)
    op.create_table('database',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('workspace_id', sa.Uuid(), nullable=False),
    sa.Column('item_id', sa.Uuid(), nullable=False),
    sa.Column('key', sa.String(), nullable=False),
    sa.Column('label', sa.String(), nullable=False),
    sa.Column('description', sa.String(), nullable=True),
    sa.Column('settings', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('record_layout', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('next_number', sa.BigInteger(), server_default=sa.text('1'), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['workspace_id', 'item_id'], ['item.workspace_id', 'item.id'], name=op.f('fk_database_workspace_id_item_id_item')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_database')),
    sa.UniqueConstraint('item_id', name=op.f('uq_database_item_id')),
    sa.UniqueConstraint('workspace_id', 'id', name=op.f('uq_database_workspace_id_id')),
    sa.UniqueConstraint('workspace_id', 'key', name=op.f('uq_database_workspace_id_key'))
    )
    op.create_index('ix_database_workspace_id_created_at_id', 'database', ['workspace_id', 'created_at', 'id'], unique=False)
    op.create_table('automation_graph',
    sa.Column('automation_id', sa.Uuid(), nullable=False),
    sa.Column('checksum', sa.String(), nullable=False),
    sa.Column('workspace_id', sa.Uuid(), nullable=False),
    sa.Column('trigger_config', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('graph', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('plan', postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
    sa.ForeignKeyConstraint(['workspace_id', 'automation_id'], ['automation.workspace_id', 'automation.id'], name=op.f('fk_automation_graph_workspace_id_automation_id_automation')),
    sa.PrimaryKeyConstraint('automation_id', 'checksum', name=op.f('pk_automation_graph'))
    )
    op.create_table('automation_run',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('workspace_id', sa.Uuid(), nullable=False),
    sa.Column('automation_id', sa.Uuid(), nullable=False),
    sa.Column('automation_version_id', sa.Uuid(), nullable=False),
    sa.Column('graph_checksum', sa.String(), nullable=False),
    sa.Column('status', sa.String(), nullable=False),
    sa.Column('source', sa.String(), nullable=False),
    sa.Column('trigger_payload', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('options', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('output', postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
    sa.Column('error', sa.String(), nullable=True),
    sa.Column('start_node_id', sa.String(), nullable=True),
    sa.Column('replay_of_run_id', sa.Uuid(), nullable=True),
    sa.Column('created_by_user_id', sa.Uuid(), nullable=True),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('started_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('completed_at', sa.DateTime(timezone=True), nullable=True),
    sa.ForeignKeyConstraint(['workspace_id', 'automation_id'], ['automation.workspace_id', 'automation.id'], name=op.f('fk_automation_run_workspace_id_automation_id_automation')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_automation_run')),
    sa.UniqueConstraint('workspace_id', 'id', name=op.f('uq_automation_run_workspace_id_id'))
    )
    op.create_index('ix_automation_run_automation_id_id', 'automation_run', ['automation_id', 'id'], unique=False)
    op.create_index('ix_automation_run_open', 'automation_run', ['workspace_id', 'status', 'id'], unique=False, postgresql_where=sa.text("status IN ('queued', 'running', 'waiting')"))
    op.create_table('field',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('workspace_id', sa.Uuid(), nullable=False),
    sa.Column('database_id', sa.Uuid(), nullable=False),
    sa.Column('key', sa.String(), nullable=False),
    sa.Column('label', sa.String(), nullable=False),
    sa.Column('kind', sa.String(), nullable=False),
    sa.Column('required', sa.Boolean(), nullable=False),
    sa.Column('default_value', sa.String(), nullable=True),
    sa.Column('options', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('settings', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('position', sa.Float(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['workspace_id', 'database_id'], ['database.workspace_id', 'database.id'], name=op.f('fk_field_workspace_id_database_id_database')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_field')),
    sa.UniqueConstraint('workspace_id', 'database_id', 'key', name=op.f('uq_field_workspace_id_database_id_key'))
    )
    op.create_table('record',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('workspace_id', sa.Uuid(), nullable=False),
    sa.Column('database_id', sa.Uuid(), nullable=False),
    sa.Column('content_surface_id', sa.Uuid(), nullable=True),
    sa.Column('title', sa.String(), nullable=False),
    sa.Column('data', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('number', sa.BigInteger(), nullable=True),
    sa.Column('archived', sa.Boolean(), nullable=False),
    sa.Column('created_by_user_id', sa.Uuid(), nullable=True),
    sa.Column('updated_by_user_id', sa.Uuid(), nullable=True),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('deleted_at', sa.DateTime(timezone=True), nullable=True),
    sa.CheckConstraint("NOT data ? 'title'", name=op.f('ck_record_title_has_its_column')),
    sa.CheckConstraint("jsonb_typeof(data) = 'object'", name=op.f('ck_record_data_is_object')),
    sa.ForeignKeyConstraint(['workspace_id', 'database_id'], ['database.workspace_id', 'database.id'], name=op.f('fk_record_workspace_id_database_id_database')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_record')),
    sa.UniqueConstraint('workspace_id', 'id', name=op.f('uq_record_workspace_id_id'))
    )
    op.create_index('ix_record_workspace_id_database_id_archived_created_at_id', 'record', ['workspace_id', 'database_id', 'archived', sa.literal_column('created_at DESC'), sa.literal_column('id DESC')], unique=False, postgresql_where=sa.text('deleted_at IS NULL'))
    op.create_table('automation_version',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('workspace_id', sa.Uuid(), nullable=False),
    sa.Column('automation_id', sa.Uuid(), nullable=False),
    sa.Column('version', sa.Integer(), nullable=False),
    sa.Column('status', sa.String(), nullable=False),
    sa.Column('trigger', sa.String(), nullable=False),
    sa.Column('checksum', sa.String(), nullable=False),
    sa.Column('note', sa.String(), nullable=True),
    sa.Column('created_by_user_id', sa.Uuid(), nullable=True),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('published_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('restored_from_version_id', sa.Uuid(), nullable=True),
    sa.ForeignKeyConstraint(['automation_id', 'checksum'], ['automation_graph.automation_id', 'automation_graph.checksum'], name=op.f('fk_automation_version_automation_id_checksum_automation_graph')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_automation_version')),
    sa.UniqueConstraint('automation_id', 'version', name=op.f('uq_automation_version_automation_id_version'))
    )
    op.create_index('uq_automation_version_draft', 'automation_version', ['automation_id'], unique=True, postgresql_where=sa.text("status = 'draft'"))
    op.create_index('uq_automation_version_published', 'automation_version', ['automation_id'], unique=True, postgresql_where=sa.text("status = 'published'"))
    op.create_table('node_run',
    sa.Column('run_id', sa.Uuid(), nullable=False),
    sa.Column('node_id', sa.String(), nullable=False),
    sa.Column('scope_key', sa.String(), nullable=False),
    sa.Column('workspace_id', sa.Uuid(), nullable=False),
    sa.Column('node_kind', sa.String(), nullable=False),
    sa.Column('status', sa.String(), nullable=False),
    sa.Column('attempt', sa.Integer(), nullable=False),
    sa.Column('outcome', sa.String(), nullable=True),
    sa.Column('case_key', sa.String(), nullable=True),
    sa.Column('input', postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
    sa.Column('output', postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
    sa.Column('error', sa.String(), nullable=True),
    sa.Column('error_code', sa.String(), nullable=True),
    sa.Column('due_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('attempt_started_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('started_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('completed_at', sa.DateTime(timezone=True), nullable=True),
    sa.ForeignKeyConstraint(['workspace_id', 'run_id'], ['automation_run.workspace_id', 'automation_run.id'], name=op.f('fk_node_run_workspace_id_run_id_automation_run')),
    sa.PrimaryKeyConstraint('run_id', 'node_id', 'scope_key', name=op.f('pk_node_run'))
    )
    op.create_table('node_run_attempt',
    sa.Column('run_id', sa.Uuid(), nullable=False),
    sa.Column('node_id', sa.String(), nullable=False),
    sa.Column('scope_key', sa.String(), nullable=False),
    sa.Column('attempt', sa.Integer(), nullable=False),
    sa.Column('workspace_id', sa.Uuid(), nullable=False),
    sa.Column('error', sa.String(), nullable=False),
    sa.Column('error_code', sa.String(), nullable=False),
    sa.Column('started_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('completed_at', sa.DateTime(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['run_id', 'node_id', 'scope_key'], ['node_run.run_id', 'node_run.node_id', 'node_run.scope_key'], name=op.f('fk_node_run_attempt_run_id_node_id_scope_key_node_run')),
    sa.PrimaryKeyConstraint('run_id', 'node_id', 'scope_key', 'attempt', name=op.f('pk_node_run_attempt'))
    )


def downgrade() -> None:
    op.drop_table('node_run_attempt')
    op.drop_table('node_run')
    op.drop_index('uq_automation_version_published', table_name='automation_version', postgresql_where=sa.text("status = 'published'"))
    op.drop_index('uq_automation_version_draft', table_name='automation_version', postgresql_where=sa.text("status = 'draft'"))
    op.drop_table('automation_version')
    op.drop_index('ix_record_workspace_id_database_id_archived_created_at_id', table_name='record', postgresql_where=sa.text('deleted_at IS NULL'))
    op.drop_table('record')
    op.drop_table('field')
    op.drop_index('ix_automation_run_open', table_name='automation_run', postgresql_where=sa.text("status IN ('queued', 'running', 'waiting')"))
    op.drop_index('ix_automation_run_automation_id_id', table_name='automation_run')
    op.drop_table('automation_run')
    op.drop_table('automation_graph')
    op.drop_index('ix_database_workspace_id_created_at_id', table_name='database')
    op.drop_table('database')
    op.drop_index('ix_automation_workspace_id_created_at_id', table_name='automation')
    op.drop_table('automation')
    op.drop_index('ix_workspace_member_user_id', table_name='workspace_member')
    op.drop_table('workspace_member')
    op.drop_index('ix_item_workspace_id_parent_item_id_position_id', table_name='item', postgresql_where=sa.text('deleted_at IS NULL'))
    op.drop_index('ix_item_closed', table_name='item', postgresql_where=sa.text("deleted_at IS NOT NULL OR access_mode = 'restricted'"))
    op.drop_table('item')
    op.drop_index('ix_api_key_workspace_id_created_at_id', table_name='api_key')
    op.drop_table('api_key')
    op.drop_index('uq_workspace_slug', table_name='workspace', postgresql_where=sa.text('deleted_at IS NULL'))
    op.drop_table('workspace')
    op.drop_index('ix_request_log_workspace_id_created_at_id', table_name='request_log')
    op.drop_index('ix_request_log_created_at', table_name='request_log')
    op.drop_table('request_log')
    op.drop_index('ix_outbox_workspace_id_id', table_name='outbox')
    op.drop_index('ix_outbox_subject_id', table_name='outbox')
    op.drop_table('outbox')
    op.drop_index('ix_idempotency_reply_expires_at', table_name='idempotency_reply')
    op.drop_table('idempotency_reply')
    op.drop_index('ix_app_user_email', table_name='app_user')
    op.drop_table('app_user')
