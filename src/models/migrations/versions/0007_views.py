"""Views and record templates; a database without a place while it is being copied."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0007'
down_revision = '0006'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('view',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('workspace_id', sa.Uuid(), nullable=False),
    sa.Column('database_id', sa.Uuid(), nullable=False),
    sa.Column('item_id', sa.Uuid(), nullable=True),
    sa.Column('key', sa.String(), nullable=False),
    sa.Column('label', sa.String(), nullable=False),
    sa.Column('kind', sa.String(), nullable=False),
    sa.Column('placement', sa.String(), nullable=False),
    sa.Column('manifest', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('relation_field_id', sa.Uuid(), nullable=True),
    sa.Column('owner_user_id', sa.Uuid(), nullable=True),
    sa.Column('scope', sa.String(), nullable=False),
    sa.Column('locked', sa.Boolean(), nullable=False),
    sa.Column('definition_version', sa.Integer(), nullable=False),
    sa.Column('position', sa.Float(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.CheckConstraint("kind IN ('table', 'board', 'list', 'gallery', 'calendar', 'timeline', 'chart', 'form')", name=op.f('ck_view_kind')),
    sa.CheckConstraint("placement IN ('database', 'relation', 'item', 'dashboard')", name=op.f('ck_view_placement')),
    sa.CheckConstraint("scope IN ('shared', 'personal')", name=op.f('ck_view_scope')),
    sa.CheckConstraint("(scope = 'personal') = (owner_user_id IS NOT NULL)", name=op.f('ck_view_owner')),
    sa.CheckConstraint("(placement = 'item') = (item_id IS NOT NULL)", name=op.f('ck_view_item')),
    sa.ForeignKeyConstraint(['owner_user_id'], ['app_user.id'], name=op.f('fk_view_owner_user_id_app_user')),
    sa.ForeignKeyConstraint(['relation_field_id'], ['field.id'], name=op.f('fk_view_relation_field_id_field'), ondelete='SET NULL'),
    sa.ForeignKeyConstraint(['workspace_id', 'database_id'], ['database.workspace_id', 'database.id'], name=op.f('fk_view_workspace_id_database_id_database')),
    sa.ForeignKeyConstraint(['workspace_id', 'item_id'], ['item.workspace_id', 'item.id'], name=op.f('fk_view_workspace_id_item_id_item')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_view')),
    sa.UniqueConstraint('workspace_id', 'database_id', 'key', name=op.f('uq_view_workspace_id_database_id_key')),
    sa.UniqueConstraint('workspace_id', 'id', name=op.f('uq_view_workspace_id_id'))
    )
    op.create_index('ix_view_relation_field_id', 'view', ['relation_field_id'], unique=False, postgresql_where=sa.text('relation_field_id IS NOT NULL'))
    op.create_table('record_template',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('workspace_id', sa.Uuid(), nullable=False),
    sa.Column('database_id', sa.Uuid(), nullable=False),
    sa.Column('label', sa.String(), nullable=False),
    sa.Column('description', sa.String(), nullable=True),
    sa.Column('icon', sa.String(), nullable=True),
    sa.Column('data', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('relations', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('content_surface_id', sa.Uuid(), nullable=False),
    sa.Column('is_default', sa.Boolean(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.CheckConstraint("jsonb_typeof(data) = 'object'", name=op.f('ck_record_template_data_is_object')),
    sa.CheckConstraint("jsonb_typeof(relations) = 'object'", name=op.f('ck_record_template_relations_is_object')),
    sa.ForeignKeyConstraint(['workspace_id', 'content_surface_id'], ['surface.workspace_id', 'surface.id'], name=op.f('fk_record_template_workspace_id_content_surface_id_surface')),
    sa.ForeignKeyConstraint(['workspace_id', 'database_id'], ['database.workspace_id', 'database.id'], name=op.f('fk_record_template_workspace_id_database_id_database')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_record_template')),
    sa.UniqueConstraint('workspace_id', 'id', name=op.f('uq_record_template_workspace_id_id'))
    )
    op.create_index('ix_record_template_label', 'record_template', ['workspace_id', 'database_id', 'label', 'id'], unique=False)
    op.create_index('uq_record_template_default', 'record_template', ['workspace_id', 'database_id'], unique=True, postgresql_where=sa.text('is_default'))
    op.alter_column('database', 'item_id', existing_type=sa.Uuid(), nullable=True)
    # Every database has a view that all can see; those made before views existed get it here.
    op.execute(
        "INSERT INTO view (id, workspace_id, database_id, key, label, kind, placement, manifest,"
        " scope, locked, definition_version, position, created_at, updated_at)"
        " SELECT gen_random_uuid(), workspace_id, id, 'all_records', 'All records', 'table',"
        " 'database', '{}', 'shared', false, 1, 0, created_at, created_at FROM database"
    )


def downgrade() -> None:
    op.alter_column('database', 'item_id', existing_type=sa.Uuid(), nullable=False)
    op.drop_index('uq_record_template_default', table_name='record_template', postgresql_where=sa.text('is_default'))
    op.drop_index('ix_record_template_label', table_name='record_template')
    op.drop_table('record_template')
    op.drop_index('ix_view_relation_field_id', table_name='view', postgresql_where=sa.text('relation_field_id IS NOT NULL'))
    op.drop_table('view')
