"""Legacy import runs, and the workspaces in them.

Revision ID: 0046
Revises: 0045
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from models.migrations.triggers import create_status_trigger, drop_status_trigger

revision = "0046"
down_revision = "0045"
branch_labels = None
depends_on = None

STATUSES = {
    "uploaded": {"validating", "failed", "cancelled"},
    "validating": {"dry_running", "failed", "cancelled"},
    "dry_running": {"awaiting_review", "failed", "cancelled"},
    "awaiting_review": {"dry_running", "approved", "failed", "cancelled"},
    "approved": {"importing", "failed", "cancelled"},
    "importing": {"verifying", "failed", "cancelling"},
    "verifying": {
        "importing",
        "completed",
        "completed_with_warnings",
        "failed",
        "cancelling",
    },
    "cancelling": {"cancelled", "failed"},
    "completed": {"rolling_back"},
    "completed_with_warnings": {"importing", "rolling_back"},
    "failed": {"importing", "rolling_back"},
    "cancelled": {"rolling_back"},
    "rolling_back": {"rolled_back", "rollback_failed"},
    "rolled_back": {"rolling_back"},
    "rollback_failed": {"rolling_back"},
}


def upgrade() -> None:
    op.create_table('legacy_import_run',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('bundle_object_key', sa.String(), nullable=False),
    sa.Column('bundle_checksum', sa.String(), nullable=False),
    sa.Column('uploaded', sa.Boolean(), nullable=False),
    sa.Column('status', sa.String(), nullable=False),
    sa.Column('mode', sa.String(), nullable=False),
    sa.Column('execution', sa.String(), server_default='', nullable=False),
    sa.Column('executions', sa.Integer(), server_default='0', nullable=False),
    sa.Column('source_snapshot_timestamp', sa.String(), nullable=True),
    sa.Column('source_version', sa.String(), nullable=True),
    sa.Column('converter_version', sa.String(), nullable=True),
    sa.Column('source_counts', postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'"), nullable=False),
    sa.Column('warnings', sa.ARRAY(sa.Text()), server_default=sa.text("'{}'"), nullable=False),
    sa.Column('errors', sa.ARRAY(sa.Text()), server_default=sa.text("'{}'"), nullable=False),
    sa.Column('approved_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('approved_by_user_id', sa.Uuid(), nullable=True),
    sa.Column('approval_note', sa.String(), nullable=True),
    sa.Column('canceled_by_user_id', sa.Uuid(), nullable=True),
    sa.Column('cancellation_reason', sa.String(), nullable=True),
    sa.Column('rollback_requested_by_user_id', sa.Uuid(), nullable=True),
    sa.Column('rollback_reason', sa.String(), nullable=True),
    sa.Column('rollback_force', sa.Boolean(), server_default=sa.text('false'), nullable=False),
    sa.Column('created_by_user_id', sa.Uuid(), nullable=False),
    sa.Column('started_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('completed_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.CheckConstraint("mode IN ('dry_run', 'apply')", name=op.f('ck_legacy_import_run_mode')),
    sa.CheckConstraint("status IN ('uploaded', 'validating', 'dry_running', 'awaiting_review', 'approved', 'importing', 'verifying', 'completed', 'completed_with_warnings', 'failed', 'cancelling', 'cancelled', 'rolling_back', 'rolled_back', 'rollback_failed')", name=op.f('ck_legacy_import_run_status')),
    sa.ForeignKeyConstraint(['created_by_user_id'], ['app_user.id'], name=op.f('fk_legacy_import_run_created_by_user_id_app_user')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_legacy_import_run'))
    )
    op.create_index('ix_legacy_import_run_completed_at', 'legacy_import_run', ['completed_at'], unique=False)
    op.create_index('ix_legacy_import_run_created_at', 'legacy_import_run', ['created_at', 'id'], unique=False)
    op.create_index('ix_legacy_import_run_open', 'legacy_import_run', ['id'], unique=False, postgresql_where=sa.text("status IN ('uploaded', 'validating', 'dry_running', 'awaiting_review', 'approved', 'importing', 'verifying', 'cancelling', 'rolling_back')"))
    op.create_table('legacy_import_workspace',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('run_id', sa.Uuid(), nullable=False),
    sa.Column('position', sa.Integer(), nullable=False),
    sa.Column('source_workspace_id', sa.String(), nullable=False),
    sa.Column('source_name', sa.String(), nullable=False),
    sa.Column('source_counts', postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'"), nullable=False),
    sa.Column('target_workspace_id', sa.Uuid(), nullable=True),
    sa.Column('creates', sa.Boolean(), nullable=False),
    sa.Column('selected', sa.Boolean(), nullable=False),
    sa.Column('stage', sa.String(), nullable=False),
    sa.Column('lifecycle_state', sa.String(), nullable=False),
    sa.Column('counts', postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'"), nullable=False),
    sa.Column('warnings', sa.ARRAY(sa.Text()), server_default=sa.text("'{}'"), nullable=False),
    sa.Column('errors', sa.ARRAY(sa.Text()), server_default=sa.text("'{}'"), nullable=False),
    sa.Column('verification', postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'"), nullable=False),
    sa.Column('progress', postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'"), nullable=False),
    sa.Column('rollback_state', sa.String(), nullable=False),
    sa.Column('attempt', sa.Integer(), server_default='0', nullable=False),
    sa.Column('last_error', sa.String(), nullable=True),
    sa.Column('imported_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.CheckConstraint("lifecycle_state IN ('pending', 'hidden', 'live', 'removed')", name=op.f('ck_legacy_import_workspace_lifecycle_state')),
    sa.CheckConstraint("rollback_state IN ('none', 'requested', 'running', 'completed', 'partial', 'failed', 'expired')", name=op.f('ck_legacy_import_workspace_rollback_state')),
    sa.CheckConstraint("stage IN ('queued', 'validating', 'dry_run', 'ready', 'blocked', 'creating', 'schema', 'records', 'relations', 'files', 'content', 'automations', 'verifying', 'done', 'failed', 'skipped', 'cancelled')", name=op.f('ck_legacy_import_workspace_stage')),
    sa.ForeignKeyConstraint(['run_id'], ['legacy_import_run.id'], name=op.f('fk_legacy_import_workspace_run_id_legacy_import_run'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_legacy_import_workspace')),
    sa.UniqueConstraint('run_id', 'source_workspace_id', name=op.f('uq_legacy_import_workspace_run_id_source_workspace_id'))
    )
    for statement in create_status_trigger("legacy_import_run", STATUSES):
        op.execute(statement)


def downgrade() -> None:
    for statement in drop_status_trigger("legacy_import_run"):
        op.execute(statement)
    op.drop_table('legacy_import_workspace')
    op.drop_index('ix_legacy_import_run_open', table_name='legacy_import_run', postgresql_where=sa.text("status IN ('uploaded', 'validating', 'dry_running', 'awaiting_review', 'approved', 'importing', 'verifying', 'cancelling', 'rolling_back')"))
    op.drop_index('ix_legacy_import_run_created_at', table_name='legacy_import_run')
    op.drop_index('ix_legacy_import_run_completed_at', table_name='legacy_import_run')
    op.drop_table('legacy_import_run')
