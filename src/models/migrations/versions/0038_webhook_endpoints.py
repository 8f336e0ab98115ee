"""Webhook endpoints.

Revision ID: 0038
Revises: 0037
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0038'
down_revision = '0037'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('webhook_endpoint',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('workspace_id', sa.Uuid(), nullable=False),
    sa.Column('url', sa.String(), nullable=False),
    sa.Column('description', sa.String(), nullable=True),
    sa.Column('event_types', postgresql.ARRAY(sa.Text()), nullable=False),
    sa.Column('enabled', sa.Boolean(), nullable=False),
    sa.Column('disabled_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('disabled_reason', sa.String(), nullable=True),
    sa.Column('failing_since', sa.DateTime(timezone=True), nullable=True),
    sa.Column('sealed_secret', sa.LargeBinary(), nullable=False),
    sa.Column('sealed_previous_secret', sa.LargeBinary(), nullable=True),
    sa.Column('previous_secret_until', sa.DateTime(timezone=True), nullable=True),
    sa.Column('told_until', sa.BigInteger(), nullable=False),
    sa.Column('created_by_user_id', sa.Uuid(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.CheckConstraint("disabled_reason IN ('manual', 'gone', 'failing')", name=op.f('ck_webhook_endpoint_disabled_reason')),
    sa.ForeignKeyConstraint(['created_by_user_id'], ['app_user.id'], name=op.f('fk_webhook_endpoint_created_by_user_id_app_user')),
    sa.ForeignKeyConstraint(['workspace_id'], ['workspace.id'], name=op.f('fk_webhook_endpoint_workspace_id_workspace')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_webhook_endpoint'))
    )
    op.create_index('ix_webhook_endpoint_enabled', 'webhook_endpoint', ['workspace_id'], unique=False, postgresql_where=sa.text('enabled'))
    op.create_index('ix_webhook_endpoint_workspace_id_created_at_id', 'webhook_endpoint', ['workspace_id', 'created_at', 'id'], unique=False)


def downgrade() -> None:
    op.drop_table('webhook_endpoint')
