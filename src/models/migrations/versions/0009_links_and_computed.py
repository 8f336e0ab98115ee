"""Links between records, and computed values."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0009'
down_revision = '0008'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column('record', sa.Column('computed', postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False))
    op.create_table('record_link',
    sa.Column('workspace_id', sa.Uuid(), nullable=False),
    sa.Column('record_id', sa.Uuid(), nullable=False),
    sa.Column('field_id', sa.Uuid(), nullable=False),
    sa.Column('target_id', sa.Uuid(), nullable=False),
    sa.Column('position', sa.BigInteger(), nullable=False),
    sa.Column('target_position', sa.BigInteger(), nullable=False),
    sa.ForeignKeyConstraint(['field_id'], ['field.id'], name=op.f('fk_record_link_field_id_field'), ondelete='CASCADE'),
    sa.ForeignKeyConstraint(['workspace_id', 'record_id'], ['record.workspace_id', 'record.id'], name=op.f('fk_record_link_workspace_id_record_id_record'), ondelete='CASCADE'),
    sa.ForeignKeyConstraint(['workspace_id', 'target_id'], ['record.workspace_id', 'record.id'], name=op.f('fk_record_link_workspace_id_target_id_record'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('workspace_id', 'record_id', 'field_id', 'target_id', name=op.f('pk_record_link'))
    )
    op.create_index('ix_record_link_workspace_id_target_id_field_id', 'record_link', ['workspace_id', 'target_id', 'field_id'], unique=False)
    op.create_index('ix_record_link_field_id', 'record_link', ['field_id'], unique=False)


def downgrade() -> None:
    op.drop_index('ix_record_link_field_id', table_name='record_link')
    op.drop_index('ix_record_link_workspace_id_target_id_field_id', table_name='record_link')
    op.drop_table('record_link')
    op.drop_column('record', 'computed')
