"""History of records, and comments on them."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0008'
down_revision = '0007'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('record_change',
    sa.Column('id', sa.Uuid(), server_default=sa.text('uuidv7()'), nullable=False),
    sa.Column('workspace_id', sa.Uuid(), nullable=False),
    sa.Column('database_id', sa.Uuid(), nullable=False),
    sa.Column('record_id', sa.Uuid(), nullable=False),
    sa.Column('kind', sa.String(), nullable=False),
    sa.Column('actor_user_id', sa.Uuid(), nullable=True),
    sa.Column('principal_type', sa.String(), nullable=False),
    sa.Column('run_id', sa.Uuid(), nullable=True),
    sa.Column('before', postgresql.JSONB(astext_type=sa.Text()), nullable=True),
    sa.Column('after', postgresql.JSONB(astext_type=sa.Text()), nullable=True),
    sa.Column('omitted_keys', sa.ARRAY(sa.Text()), nullable=True),
    sa.Column('at', sa.DateTime(timezone=True), nullable=False),
    sa.CheckConstraint("kind IN ('created', 'updated', 'archived', 'restored', 'deleted')", name=op.f('ck_record_change_kind')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_record_change'))
    )
    op.create_index('ix_record_change_workspace_id_record_id_id', 'record_change', ['workspace_id', 'record_id', 'id'], unique=False)
    op.create_table('record_comment',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('workspace_id', sa.Uuid(), nullable=False),
    sa.Column('record_id', sa.Uuid(), nullable=False),
    sa.Column('parent_comment_id', sa.Uuid(), nullable=True),
    sa.Column('author_user_id', sa.Uuid(), nullable=False),
    sa.Column('body', sa.String(), nullable=False),
    sa.Column('mentions', sa.ARRAY(sa.Uuid()), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('resolved_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('deleted_at', sa.DateTime(timezone=True), nullable=True),
    sa.CheckConstraint("parent_comment_id <> id", name=op.f('ck_record_comment_not_its_own_parent')),
    sa.ForeignKeyConstraint(['workspace_id', 'record_id'], ['record.workspace_id', 'record.id'], name=op.f('fk_record_comment_workspace_id_record_id_record'), ondelete='CASCADE'),
    sa.ForeignKeyConstraint(['workspace_id', 'record_id', 'parent_comment_id'], ['record_comment.workspace_id', 'record_comment.record_id', 'record_comment.id'], name='fk_record_comment_parent', ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_record_comment')),
    sa.UniqueConstraint('workspace_id', 'record_id', 'id', name=op.f('uq_record_comment_workspace_id_record_id_id'))
    )


def downgrade() -> None:
    op.drop_table('record_comment')
    op.drop_index('ix_record_change_workspace_id_record_id_id', table_name='record_change')
    op.drop_table('record_change')
