"""The side index of records: typed values of the fields that large databases are asked for."""

import sqlalchemy as sa
from alembic import op

revision = '0010'
down_revision = '0009'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('record_index',
    sa.Column('workspace_id', sa.Uuid(), nullable=False),
    sa.Column('record_id', sa.Uuid(), nullable=False),
    sa.Column('index_id', sa.Uuid(), nullable=False),
    sa.Column('number', sa.Numeric(), nullable=True),
    sa.Column('text', sa.Text(collation='C'), nullable=True),
    sa.Column('folded', sa.Text(collation='C'), nullable=True),
    sa.ForeignKeyConstraint(['workspace_id', 'record_id'], ['record.workspace_id', 'record.id'], name=op.f('fk_record_index_workspace_id_record_id_record'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('workspace_id', 'record_id', 'index_id', name=op.f('pk_record_index'))
    )
    op.create_index('ix_record_index_blank', 'record_index', ['workspace_id', 'index_id', 'record_id'], unique=False, postgresql_where=sa.text('number IS NULL AND text IS NULL'))
    op.create_index('ix_record_index_folded', 'record_index', ['workspace_id', 'index_id', 'folded', 'record_id'], unique=False, postgresql_where=sa.text('folded IS NOT NULL'))
    op.create_index('ix_record_index_number', 'record_index', ['workspace_id', 'index_id', 'number', 'record_id'], unique=False, postgresql_where=sa.text('number IS NOT NULL'))
    op.create_index('ix_record_index_text', 'record_index', ['workspace_id', 'index_id', 'text', 'record_id'], unique=False, postgresql_where=sa.text('text IS NOT NULL'))
    op.add_column('field', sa.Column('index_id', sa.Uuid(), nullable=True))
    op.add_column('field', sa.Column('index_ready', sa.Boolean(), server_default=sa.text('false'), nullable=False))


def downgrade() -> None:
    op.drop_column('field', 'index_ready')
    op.drop_column('field', 'index_id')
    op.drop_index('ix_record_index_text', table_name='record_index', postgresql_where=sa.text('text IS NOT NULL'))
    op.drop_index('ix_record_index_number', table_name='record_index', postgresql_where=sa.text('number IS NOT NULL'))
    op.drop_index('ix_record_index_folded', table_name='record_index', postgresql_where=sa.text('folded IS NOT NULL'))
    op.drop_index('ix_record_index_blank', table_name='record_index', postgresql_where=sa.text('number IS NULL AND text IS NULL'))
    op.drop_table('record_index')
