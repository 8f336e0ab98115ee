"""Deliveries.

Revision ID: 0037
Revises: 0036
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from models.migrations.triggers import create_status_trigger, drop_status_trigger

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None

STATUSES = {"pending": {"delivered", "undeliverable", "failed", "cancelled"}}


def upgrade() -> None:
    op.create_table('delivery',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('workspace_id', sa.Uuid(), nullable=False),
    sa.Column('channel', sa.String(), nullable=False),
    sa.Column('subject_id', sa.Uuid(), nullable=False),
    sa.Column('target_id', sa.Uuid(), nullable=False),
    sa.Column('input', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('status', sa.String(), nullable=False),
    sa.Column('attempts', sa.Integer(), nullable=False),
    sa.Column('next_attempt_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('answer_status', sa.Integer(), nullable=True),
    sa.Column('error', sa.String(), nullable=True),
    sa.Column('error_code', sa.String(), nullable=True),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('completed_at', sa.DateTime(timezone=True), nullable=True),
    sa.CheckConstraint("channel IN ('push', 'mail', 'webhook')", name=op.f('ck_delivery_channel')),
    sa.CheckConstraint("status IN ('pending', 'delivered', 'undeliverable', 'failed', 'cancelled')", name=op.f('ck_delivery_status')),
    sa.ForeignKeyConstraint(['workspace_id'], ['workspace.id'], name=op.f('fk_delivery_workspace_id_workspace')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_delivery'))
    )
    op.create_index('ix_delivery_completed_at', 'delivery', ['completed_at'], unique=False)
    op.create_index('ix_delivery_open', 'delivery', ['id'], unique=False, postgresql_where=sa.text("status IN ('pending')"))
    op.create_index('ix_delivery_target_id', 'delivery', ['workspace_id', 'target_id', 'created_at', 'id'], unique=False)
    for statement in create_status_trigger("delivery", STATUSES):
        op.execute(statement)


def downgrade() -> None:
    for statement in drop_status_trigger("delivery"):
        op.execute(statement)
    op.drop_index('ix_delivery_target_id', table_name='delivery')
    op.drop_index('ix_delivery_open', table_name='delivery', postgresql_where=sa.text("status IN ('pending')"))
    op.drop_index('ix_delivery_completed_at', table_name='delivery')
    op.drop_table('delivery')
