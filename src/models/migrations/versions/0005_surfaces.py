"""Surfaces with their blocks and comments, and forms."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0005'
down_revision = '0004'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('surface',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('workspace_id', sa.Uuid(), nullable=False),
    sa.Column('item_id', sa.Uuid(), nullable=True),
    sa.Column('database_id', sa.Uuid(), nullable=True),
    sa.Column('record_id', sa.Uuid(), nullable=True),
    sa.Column('kind', sa.String(), nullable=False),
    sa.Column('version', sa.Integer(), server_default=sa.text('1'), nullable=False),
    sa.Column('settings', postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.CheckConstraint("kind IN ('page', 'note', 'canvas', 'dashboard', 'record')", name=op.f('ck_surface_kind')),
    sa.CheckConstraint("num_nonnulls(item_id, database_id) = 1 AND (kind = 'record') = (item_id IS NULL) AND (record_id IS NULL OR database_id IS NOT NULL)", name=op.f('ck_surface_placed_once')),
    sa.ForeignKeyConstraint(['workspace_id', 'database_id'], ['database.workspace_id', 'database.id'], name=op.f('fk_surface_workspace_id_database_id_database'), ondelete='CASCADE'),
    sa.ForeignKeyConstraint(['workspace_id', 'item_id'], ['item.workspace_id', 'item.id'], name=op.f('fk_surface_workspace_id_item_id_item'), ondelete='CASCADE'),
    sa.ForeignKeyConstraint(['workspace_id', 'record_id'], ['record.workspace_id', 'record.id'], name=op.f('fk_surface_workspace_id_record_id_record'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_surface')),
    sa.UniqueConstraint('workspace_id', 'id', name=op.f('uq_surface_workspace_id_id'))
    )
    op.create_index('ix_surface_workspace_id_database_id', 'surface', ['workspace_id', 'database_id'], unique=False)
    op.create_index('uq_surface_item_id', 'surface', ['item_id'], unique=True)
    op.create_index('uq_surface_record_id', 'surface', ['record_id'], unique=True)
    op.create_table('block',
    sa.Column('surface_id', sa.Uuid(), nullable=False),
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('workspace_id', sa.Uuid(), nullable=False),
    sa.Column('parent_block_id', sa.Uuid(), nullable=True),
    sa.Column('kind', sa.String(), nullable=False),
    sa.Column('position', sa.Float(), nullable=False),
    sa.Column('content', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('x', sa.Float(), nullable=True),
    sa.Column('y', sa.Float(), nullable=True),
    sa.Column('w', sa.Float(), nullable=True),
    sa.Column('h', sa.Float(), nullable=True),
    sa.Column('byte_size', sa.Integer(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.CheckConstraint('parent_block_id <> id', name=op.f('ck_block_not_its_own_parent')),
    sa.ForeignKeyConstraint(['surface_id', 'parent_block_id'], ['block.surface_id', 'block.id'], name=op.f('fk_block_surface_id_parent_block_id_block'), ondelete='CASCADE'),
    sa.ForeignKeyConstraint(['workspace_id', 'surface_id'], ['surface.workspace_id', 'surface.id'], name=op.f('fk_block_workspace_id_surface_id_surface'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('surface_id', 'id', name=op.f('pk_block'))
    )
    op.create_index('ix_block_surface_id_parent_block_id_position_id', 'block', ['surface_id', 'parent_block_id', 'position', 'id'], unique=False)
    op.create_table('surface_comment',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('workspace_id', sa.Uuid(), nullable=False),
    sa.Column('surface_id', sa.Uuid(), nullable=False),
    sa.Column('block_id', sa.Uuid(), nullable=True),
    sa.Column('parent_comment_id', sa.Uuid(), nullable=True),
    sa.Column('author_user_id', sa.Uuid(), nullable=False),
    sa.Column('body', sa.String(), nullable=False),
    sa.Column('resolved_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('resolved_by_user_id', sa.Uuid(), nullable=True),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['surface_id', 'parent_comment_id'], ['surface_comment.surface_id', 'surface_comment.id'], name=op.f('fk_surface_comment_surface_id_parent_comment_id_surface_comment'), ondelete='CASCADE'),
    sa.ForeignKeyConstraint(['workspace_id', 'surface_id'], ['surface.workspace_id', 'surface.id'], name=op.f('fk_surface_comment_workspace_id_surface_id_surface'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_surface_comment')),
    sa.UniqueConstraint('surface_id', 'id', name=op.f('uq_surface_comment_surface_id_id'))
    )
    op.create_index('ix_surface_comment_surface_id_created_at_id', 'surface_comment', ['surface_id', 'created_at', 'id'], unique=False)
    op.create_index('ix_surface_comment_surface_id_parent_comment_id', 'surface_comment', ['surface_id', 'parent_comment_id'], unique=False)
    op.create_table('form',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('workspace_id', sa.Uuid(), nullable=False),
    sa.Column('item_id', sa.Uuid(), nullable=False),
    sa.Column('database_id', sa.Uuid(), nullable=False),
    sa.Column('title', sa.String(), nullable=True),
    sa.Column('description', sa.String(), nullable=True),
    sa.Column('fields', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('submit_label', sa.String(), nullable=False),
    sa.Column('confirmation', sa.String(), nullable=False),
    sa.Column('public', sa.Boolean(), nullable=False),
    sa.Column('accepting', sa.Boolean(), nullable=False),
    sa.Column('closes_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('max_submissions', sa.Integer(), nullable=True),
    sa.Column('submission_count', sa.Integer(), server_default=sa.text('0'), nullable=False),
    sa.Column('version', sa.Integer(), server_default=sa.text('1'), nullable=False),
    sa.Column('created_by_user_id', sa.Uuid(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['created_by_user_id'], ['app_user.id'], name=op.f('fk_form_created_by_user_id_app_user')),
    sa.ForeignKeyConstraint(['workspace_id', 'database_id'], ['database.workspace_id', 'database.id'], name=op.f('fk_form_workspace_id_database_id_database'), ondelete='CASCADE'),
    sa.ForeignKeyConstraint(['workspace_id', 'item_id'], ['item.workspace_id', 'item.id'], name=op.f('fk_form_workspace_id_item_id_item'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_form')),
    sa.UniqueConstraint('workspace_id', 'id', name=op.f('uq_form_workspace_id_id'))
    )
    op.create_index('ix_form_workspace_id_database_id', 'form', ['workspace_id', 'database_id'], unique=False)
    op.create_index('uq_form_item_id', 'form', ['item_id'], unique=True)
    op.create_table('form_submission',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('workspace_id', sa.Uuid(), nullable=False),
    sa.Column('form_id', sa.Uuid(), nullable=False),
    sa.Column('record_id', sa.Uuid(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['workspace_id', 'form_id'], ['form.workspace_id', 'form.id'], name=op.f('fk_form_submission_workspace_id_form_id_form'), ondelete='CASCADE'),
    sa.ForeignKeyConstraint(['workspace_id', 'record_id'], ['record.workspace_id', 'record.id'], name=op.f('fk_form_submission_workspace_id_record_id_record'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_form_submission'))
    )
    op.create_index('ix_form_submission_workspace_id_form_id_created_at_id', 'form_submission', ['workspace_id', 'form_id', 'created_at', 'id'], unique=False)
    op.create_index('ix_form_submission_workspace_id_record_id', 'form_submission', ['workspace_id', 'record_id'], unique=False)


def downgrade() -> None:
    op.drop_index('ix_form_submission_workspace_id_record_id', table_name='form_submission')
    op.drop_index('ix_form_submission_workspace_id_form_id_created_at_id', table_name='form_submission')
    op.drop_table('form_submission')
    op.drop_index('uq_form_item_id', table_name='form')
    op.drop_index('ix_form_workspace_id_database_id', table_name='form')
    op.drop_table('form')
    op.drop_index('ix_surface_comment_surface_id_parent_comment_id', table_name='surface_comment')
    op.drop_index('ix_surface_comment_surface_id_created_at_id', table_name='surface_comment')
    op.drop_table('surface_comment')
    op.drop_index('ix_block_surface_id_parent_block_id_position_id', table_name='block')
    op.drop_table('block')
    op.drop_index('uq_surface_record_id', table_name='surface')
    op.drop_index('uq_surface_item_id', table_name='surface')
    op.drop_index('ix_surface_workspace_id_database_id', table_name='surface')
    op.drop_table('surface')
