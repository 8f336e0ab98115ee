"""Connections to providers."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0029'
down_revision = '0028'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        'connection',
        sa.Column('id', sa.Uuid(), nullable=False),
        sa.Column('workspace_id', sa.Uuid(), nullable=False),
        sa.Column('provider', sa.String(), nullable=False),
        sa.Column('label', sa.String(), nullable=False),
        sa.Column('config', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column('sealed_credentials', sa.LargeBinary(), nullable=False),
        sa.Column('shared', sa.Boolean(), nullable=False),
        sa.Column('created_by_user_id', sa.Uuid(), nullable=False),
        sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
        sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("provider IN ('http', 'postgresql', 'mysql', 'sqlite')", name=op.f('ck_connection_provider')),
        sa.ForeignKeyConstraint(['workspace_id'], ['workspace.id'], name=op.f('fk_connection_workspace_id_workspace')),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_connection')),
        sa.UniqueConstraint('workspace_id', 'id', name=op.f('uq_connection_workspace_id_id')),
    )
    op.create_index('ix_connection_workspace_id_created_at_id', 'connection', ['workspace_id', 'created_at', 'id'])


def downgrade() -> None:
    op.drop_table('connection')
