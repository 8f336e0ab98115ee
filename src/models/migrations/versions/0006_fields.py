"""Fields that are being removed or converted."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0006'
down_revision = '0005'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('removed_field',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('workspace_id', sa.Uuid(), nullable=False),
    sa.Column('database_id', sa.Uuid(), nullable=False),
    sa.Column('key', sa.String(), nullable=False),
    sa.Column('removed_at', sa.DateTime(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['workspace_id', 'database_id'], ['database.workspace_id', 'database.id'], name=op.f('fk_removed_field_workspace_id_database_id_database')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_removed_field')),
    sa.UniqueConstraint('workspace_id', 'database_id', 'key', name=op.f('uq_removed_field_workspace_id_database_id_key'))
    )
    op.create_table('field_conversion_value',
    sa.Column('job_id', sa.Uuid(), nullable=False),
    sa.Column('record_id', sa.Uuid(), nullable=False),
    sa.Column('workspace_id', sa.Uuid(), nullable=False),
    sa.Column('value', postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
    sa.Column('record_updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['workspace_id', 'job_id'], ['job.workspace_id', 'job.id'], name=op.f('fk_field_conversion_value_workspace_id_job_id_job'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('job_id', 'record_id', name=op.f('pk_field_conversion_value'))
    )
    op.create_index('ix_record_workspace_id_database_id_id', 'record', ['workspace_id', 'database_id', 'id'], unique=False)


def downgrade() -> None:
    op.drop_index('ix_record_workspace_id_database_id_id', table_name='record')
    op.drop_table('field_conversion_value')
    op.drop_table('removed_field')
