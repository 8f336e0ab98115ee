"""Runs of data sources in the order of their making, and the automations that led to them."""

import sqlalchemy as sa
from alembic import op

revision = '0027'
down_revision = '0026'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column('data_source_run', sa.Column('chain', sa.ARRAY(sa.Uuid()), server_default=sa.text("'{}'"), nullable=False))
    op.drop_index('ix_data_source_run_workspace_id_data_source_id_id', table_name='data_source_run')
    op.create_index('ix_data_source_run_workspace_id_data_source_id_created_at', 'data_source_run', ['workspace_id', 'data_source_id', 'created_at'], unique=False)
    op.create_index('ix_data_source_run_completed_at', 'data_source_run', ['completed_at'], unique=False)


def downgrade() -> None:
    op.drop_index('ix_data_source_run_completed_at', table_name='data_source_run')
    op.drop_index('ix_data_source_run_workspace_id_data_source_id_created_at', table_name='data_source_run')
    op.create_index('ix_data_source_run_workspace_id_data_source_id_id', 'data_source_run', ['workspace_id', 'data_source_id', 'id'], unique=False)
    op.drop_column('data_source_run', 'chain')
