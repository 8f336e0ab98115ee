"""Change sets, and which model plans them.

Revision ID: 0047
Revises: 0046
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from models.migrations.triggers import create_status_trigger, drop_status_trigger

revision = "0047"
down_revision = "0046"
branch_labels = None
depends_on = None

WAITING = {"applying", "rejected", "expired"}
STATUSES = {
    "planned": WAITING,
    "awaiting_approval": WAITING,
    "applying": {"awaiting_approval", "applied", "partially_applied", "failed"},
}


def upgrade() -> None:
    op.create_table('change_set',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('workspace_id', sa.Uuid(), nullable=False),
    sa.Column('source', sa.String(), nullable=False),
    sa.Column('title', sa.String(), nullable=False),
    sa.Column('instruction', sa.String(), nullable=True),
    sa.Column('status', sa.String(), nullable=False),
    sa.Column('operations', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('outcomes', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('names', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('rejected_reason', sa.String(), nullable=True),
    sa.Column('created_by_user_id', sa.Uuid(), nullable=False),
    sa.Column('expires_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('completed_at', sa.DateTime(timezone=True), nullable=True),
    sa.CheckConstraint("source IN ('model', 'rules', 'hand')", name=op.f('ck_change_set_source')),
    sa.CheckConstraint("status IN ('planned', 'awaiting_approval', 'applying', 'applied', 'partially_applied', 'failed', 'rejected', 'expired')", name=op.f('ck_change_set_status')),
    sa.ForeignKeyConstraint(['workspace_id'], ['workspace.id'], name=op.f('fk_change_set_workspace_id_workspace')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_change_set')),
    sa.UniqueConstraint('workspace_id', 'id', name=op.f('uq_change_set_workspace_id_id'))
    )
    op.create_index('ix_change_set_completed_at', 'change_set', ['completed_at'], unique=False)
    op.create_index('ix_change_set_expires_at', 'change_set', ['expires_at'], unique=False, postgresql_where=sa.text("status IN ('planned', 'awaiting_approval')"))
    op.create_index('ix_change_set_workspace_id_created_at_id', 'change_set', ['workspace_id', 'created_at', 'id'], unique=False)
    for statement in create_status_trigger("change_set", STATUSES):
        op.execute(statement)
    op.create_table('model_settings',
    sa.Column('workspace_id', sa.Uuid(), nullable=False),
    sa.Column('base_url', sa.String(), nullable=False),
    sa.Column('model', sa.String(), nullable=False),
    sa.Column('sealed_api_key', sa.LargeBinary(), nullable=True),
    sa.Column('enabled', sa.Boolean(), nullable=False),
    sa.Column('timeout_seconds', sa.Integer(), nullable=False),
    sa.Column('updated_by_user_id', sa.Uuid(), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['workspace_id'], ['workspace.id'], name=op.f('fk_model_settings_workspace_id_workspace')),
    sa.PrimaryKeyConstraint('workspace_id', name=op.f('pk_model_settings'))
    )


def downgrade() -> None:
    op.drop_table("model_settings")
    for statement in drop_status_trigger("change_set"):
        op.execute(statement)
    op.drop_table("change_set")
