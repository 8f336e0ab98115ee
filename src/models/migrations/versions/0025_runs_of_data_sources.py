"""Runs that bring rows in, the rows they stage, and the rows that records came from."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from models.migrations.triggers import create_status_trigger, drop_status_trigger

revision = '0025'
down_revision = '0024'
branch_labels = None
depends_on = None

STATUSES = {
    "queued": {"running", "failed", "cancelled"},
    "running": {"succeeded", "failed", "cancelled"},
}


def upgrade() -> None:
    op.create_table('staged_row',
    sa.Column('run_id', sa.Uuid(), nullable=False),
    sa.Column('position', sa.BigInteger(), nullable=False),
    sa.Column('identity', postgresql.BYTEA(), nullable=False),
    sa.Column('digest', postgresql.BYTEA(), nullable=False),
    sa.Column('title', sa.String(), nullable=False),
    sa.Column('data', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('record_id', sa.Uuid(), nullable=True),
    sa.Column('change', sa.String(), nullable=True),
    sa.PrimaryKeyConstraint('run_id', 'position', name=op.f('pk_staged_row')),
    prefixes=['UNLOGGED']
    )
    op.create_table('data_source_run',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('workspace_id', sa.Uuid(), nullable=False),
    sa.Column('data_source_id', sa.Uuid(), nullable=True),
    sa.Column('database_id', sa.Uuid(), nullable=True),
    sa.Column('status', sa.String(), nullable=False),
    sa.Column('trigger', sa.String(), nullable=False),
    sa.Column('actor_user_id', sa.Uuid(), nullable=True),
    sa.Column('client_mutation_id', sa.String(), nullable=True),
    sa.Column('plan', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('progress', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('stats', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('result', postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
    sa.Column('error', sa.String(), nullable=True),
    sa.Column('error_kind', sa.String(), nullable=True),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('started_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('completed_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('reverted_at', sa.DateTime(timezone=True), nullable=True),
    sa.CheckConstraint("status IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')", name=op.f('ck_data_source_run_status')),
    sa.CheckConstraint("trigger IN ('manual', 'schedule', 'action', 'automation', 'import', 'retry')", name=op.f('ck_data_source_run_trigger')),
    sa.ForeignKeyConstraint(['workspace_id', 'data_source_id'], ['data_source.workspace_id', 'data_source.id'], name=op.f('fk_data_source_run_workspace_id_data_source_id_data_source')),
    sa.ForeignKeyConstraint(['workspace_id'], ['workspace.id'], name=op.f('fk_data_source_run_workspace_id_workspace')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_data_source_run')),
    sa.UniqueConstraint('workspace_id', 'id', name=op.f('uq_data_source_run_workspace_id_id'))
    )
    op.create_index('ix_data_source_run_open', 'data_source_run', ['id'], unique=False, postgresql_where=sa.text("status IN ('queued', 'running')"))
    op.create_index('ix_data_source_run_workspace_id_data_source_id_id', 'data_source_run', ['workspace_id', 'data_source_id', 'id'], unique=False)
    op.create_index('uq_data_source_run_client_mutation_id', 'data_source_run', ['workspace_id', 'client_mutation_id'], unique=True, postgresql_where=sa.text("status NOT IN ('failed', 'cancelled')"))
    op.create_index('uq_data_source_run_open_of_source', 'data_source_run', ['data_source_id'], unique=True, postgresql_where=sa.text("status IN ('queued', 'running')"))
    op.create_table('source_row',
    sa.Column('workspace_id', sa.Uuid(), nullable=False),
    sa.Column('source_id', sa.Uuid(), nullable=False),
    sa.Column('identity', postgresql.BYTEA(), nullable=False),
    sa.Column('record_id', sa.Uuid(), nullable=False),
    sa.Column('digest', postgresql.BYTEA(), nullable=False),
    sa.Column('run_id', sa.Uuid(), nullable=False),
    sa.Column('removed', sa.Boolean(), nullable=False),
    sa.ForeignKeyConstraint(['workspace_id', 'record_id'], ['record.workspace_id', 'record.id'], name=op.f('fk_source_row_workspace_id_record_id_record'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('workspace_id', 'source_id', 'identity', name=op.f('pk_source_row'))
    )
    op.create_index('ix_source_row_run_id', 'source_row', ['run_id'], unique=False)
    op.create_index('ix_source_row_workspace_id_record_id', 'source_row', ['workspace_id', 'record_id'], unique=False)
    op.add_column('data_source', sa.Column('created_by_user_id', sa.Uuid(), nullable=True))
    for statement in create_status_trigger("data_source_run", STATUSES):
        op.execute(statement)


def downgrade() -> None:
    for statement in drop_status_trigger("data_source_run"):
        op.execute(statement)
    op.drop_column('data_source', 'created_by_user_id')
    op.drop_index('ix_source_row_workspace_id_record_id', table_name='source_row')
    op.drop_index('ix_source_row_run_id', table_name='source_row')
    op.drop_table('source_row')
    op.drop_index('uq_data_source_run_open_of_source', table_name='data_source_run', postgresql_where=sa.text("status IN ('queued', 'running')"))
    op.drop_index('uq_data_source_run_client_mutation_id', table_name='data_source_run', postgresql_where=sa.text("status NOT IN ('failed', 'cancelled')"))
    op.drop_index('ix_data_source_run_workspace_id_data_source_id_id', table_name='data_source_run')
    op.drop_index('ix_data_source_run_open', table_name='data_source_run', postgresql_where=sa.text("status IN ('queued', 'running')"))
    op.drop_table('data_source_run')
    op.drop_table('staged_row')
