"""Time that people spend on things.

Revision ID: 0031
Revises: 0030
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from models.migrations.triggers import create_status_trigger, drop_status_trigger

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None

STATUSES = {
    "active": {"paused", "completed", "discarded"},
    "paused": {"active", "completed", "discarded"},
}


def upgrade() -> None:
    op.create_table('time_entry',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('workspace_id', sa.Uuid(), nullable=False),
    sa.Column('user_id', sa.Uuid(), nullable=False),
    sa.Column('target_kind', sa.String(), nullable=False),
    sa.Column('target_id', sa.Uuid(), nullable=False),
    sa.Column('target_title_snapshot', sa.String(), nullable=True),
    sa.Column('item_id', sa.Uuid(), nullable=True),
    sa.Column('database_id', sa.Uuid(), nullable=True),
    sa.Column('field_id', sa.Uuid(), nullable=True),
    sa.Column('field_label_snapshot', sa.String(), nullable=True),
    sa.Column('source', sa.String(), nullable=False),
    sa.Column('mode', sa.String(), nullable=False),
    sa.Column('status', sa.String(), nullable=False),
    sa.Column('started_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('ended_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('paused_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('due_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('pauses', postgresql.TSTZMULTIRANGE(), server_default=sa.text("'{}'"), nullable=False),
    sa.Column('accumulated_paused_ms', sa.BigInteger(), nullable=False),
    sa.Column('duration_ms', sa.BigInteger(), nullable=True),
    sa.Column('counted_ms', sa.BigInteger(), nullable=True),
    sa.Column('target_duration_ms', sa.BigInteger(), nullable=True),
    sa.Column('summary', sa.String(), nullable=True),
    sa.Column('sound_id', sa.String(), nullable=False),
    sa.Column('completed_by', sa.String(), nullable=True),
    sa.Column('client_mutation_id', sa.String(), nullable=True),
    sa.Column('mutation_digest', postgresql.BYTEA(), nullable=True),
    sa.Column('update_mutation_id', sa.String(), nullable=True),
    sa.Column('created_by_user_id', sa.Uuid(), nullable=False),
    sa.Column('updated_by_user_id', sa.Uuid(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('closed_at', sa.DateTime(timezone=True), nullable=True),
    sa.CheckConstraint("(status = 'paused') = (paused_at IS NOT NULL) AND (status = 'completed') <= (ended_at IS NOT NULL AND duration_ms IS NOT NULL) AND (status IN ('completed', 'discarded')) = (closed_at IS NOT NULL)", name=op.f('ck_time_entry_times_of_status')),
    sa.CheckConstraint("completed_by IN ('user', 'timer', 'system', 'admin')", name=op.f('ck_time_entry_completed_by')),
    sa.CheckConstraint("mode IN ('stopwatch', 'countdown', 'pomodoro', 'fixed')", name=op.f('ck_time_entry_mode')),
    sa.CheckConstraint("sound_id IN ('none', 'chime', 'bell', 'digital', 'gong', 'soft')", name=op.f('ck_time_entry_sound_id')),
    sa.CheckConstraint("source IN ('timer', 'manual', 'import', 'automation')", name=op.f('ck_time_entry_source')),
    sa.CheckConstraint("status IN ('active', 'paused', 'completed', 'discarded')", name=op.f('ck_time_entry_status')),
    sa.CheckConstraint("target_kind IN ('database_record', 'item', 'workspace')", name=op.f('ck_time_entry_target_kind')),
    sa.CheckConstraint('accumulated_paused_ms >= 0 AND duration_ms >= 0', name=op.f('ck_time_entry_not_negative')),
    sa.CheckConstraint('ended_at >= started_at', name=op.f('ck_time_entry_ends_after_start')),
    sa.ForeignKeyConstraint(['user_id'], ['app_user.id'], name=op.f('fk_time_entry_user_id_app_user')),
    sa.ForeignKeyConstraint(['workspace_id'], ['workspace.id'], name=op.f('fk_time_entry_workspace_id_workspace')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_time_entry'))
    )
    op.create_index('ix_time_entry_discarded', 'time_entry', ['closed_at', 'id'], unique=False, postgresql_where=sa.text("status = 'discarded'"))
    op.create_index('ix_time_entry_started_at', 'time_entry', ['workspace_id', 'started_at', 'id'], unique=False)
    op.create_index('ix_time_entry_target_id_field_id', 'time_entry', ['workspace_id', 'target_id', 'field_id'], unique=False)
    op.create_index('ix_time_entry_open', 'time_entry', ['id'], unique=False, postgresql_where=sa.text("status IN ('active', 'paused')"))
    op.create_index('ix_time_entry_user_started_at', 'time_entry', ['workspace_id', 'user_id', 'started_at', 'id'], unique=False)
    op.create_index('uq_time_entry_active', 'time_entry', ['workspace_id', 'user_id'], unique=True, postgresql_where=sa.text("status = 'active'"))
    op.create_index('uq_time_entry_client_mutation_id', 'time_entry', ['workspace_id', 'user_id', 'client_mutation_id'], unique=True, postgresql_where=sa.text('client_mutation_id IS NOT NULL'))
    for statement in create_status_trigger("time_entry", STATUSES):
        op.execute(statement)


def downgrade() -> None:
    for statement in drop_status_trigger("time_entry"):
        op.execute(statement)
    op.drop_table("time_entry")
