"""Jobs, and grants on items."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from models.migrations.triggers import create_status_trigger, drop_status_trigger

revision = '0003'
down_revision = '0002'
branch_labels = None
depends_on = None


# Copied from models.messages.jobs.rules as of this revision: a migration never changes.
_JOB = {
    "queued": ("running", "failed", "cancelled"),
    "running": ("succeeded", "failed", "cancelled"),
}


def upgrade() -> None:
    op.create_table('job',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('workspace_id', sa.Uuid(), nullable=False),
    sa.Column('family', sa.String(), nullable=False),
    sa.Column('subject_id', sa.Uuid(), nullable=False),
    sa.Column('actor_user_id', sa.Uuid(), nullable=False),
    sa.Column('status', sa.String(), nullable=False),
    sa.Column('input', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('progress', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('result', postgresql.JSONB(astext_type=sa.Text()), nullable=True),
    sa.Column('error', sa.String(), nullable=True),
    sa.Column('error_code', sa.String(), nullable=True),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('started_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('completed_at', sa.DateTime(timezone=True), nullable=True),
    sa.CheckConstraint("status IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')", name=op.f('ck_job_status')),
    sa.ForeignKeyConstraint(['workspace_id'], ['workspace.id'], name=op.f('fk_job_workspace_id_workspace')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_job')),
    sa.UniqueConstraint('workspace_id', 'id', name=op.f('uq_job_workspace_id_id'))
    )
    op.create_index('ix_job_open', 'job', ['id'], unique=False, postgresql_where=sa.text("status IN ('queued', 'running')"))
    op.create_index('ix_job_workspace_id_family_subject_id', 'job', ['workspace_id', 'family', 'subject_id'], unique=False)
    op.create_table('item_grant',
    sa.Column('workspace_id', sa.Uuid(), nullable=False),
    sa.Column('item_id', sa.Uuid(), nullable=False),
    sa.Column('user_id', sa.Uuid(), nullable=False),
    sa.Column('level', sa.Integer(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.CheckConstraint('level BETWEEN 1 AND 5', name=op.f('ck_item_grant_level')),
    sa.ForeignKeyConstraint(['workspace_id', 'item_id'], ['item.workspace_id', 'item.id'], name=op.f('fk_item_grant_workspace_id_item_id_item'), ondelete='CASCADE'),
    sa.ForeignKeyConstraint(['workspace_id', 'user_id'], ['workspace_member.workspace_id', 'workspace_member.user_id'], name=op.f('fk_item_grant_workspace_id_user_id_workspace_member'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('workspace_id', 'item_id', 'user_id', name=op.f('pk_item_grant'))
    )
    op.create_index('ix_item_grant_workspace_id_user_id', 'item_grant', ['workspace_id', 'user_id'], unique=False)
    for statement in create_status_trigger("job", _JOB):
        op.execute(statement)


def downgrade() -> None:
    for statement in drop_status_trigger("job"):
        op.execute(statement)
    op.drop_index('ix_item_grant_workspace_id_user_id', table_name='item_grant')
    op.drop_table('item_grant')
    op.drop_index('ix_job_workspace_id_family_subject_id', table_name='job')
    op.drop_index('ix_job_open', table_name='job', postgresql_where=sa.text("status IN ('queued', 'running')"))
    op.drop_table('job')
