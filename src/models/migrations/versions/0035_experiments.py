"""Experiments, the units that met their variants, and audience segments.

Revision ID: 0035
Revises: 0034
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from models.migrations.triggers import create_status_trigger, drop_status_trigger

revision = '0035'
down_revision = '0034'
branch_labels = None
depends_on = None

# What is scheduled runs, and ends, by the clock: its row may be written when both have happened.
STATUSES = {
    "draft": {"scheduled", "archived"},
    "scheduled": {"running", "paused", "completed", "archived"},
    "running": {"paused", "completed", "archived"},
    "paused": {"running", "completed", "archived"},
    "completed": {"archived"},
}


def upgrade() -> None:
    op.create_table('audience_segment',
    sa.Column('key', sa.String(), nullable=False),
    sa.Column('label', sa.String(), nullable=False),
    sa.Column('description', sa.String(), nullable=True),
    sa.Column('rule', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('created_by_user_id', sa.Uuid(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['created_by_user_id'], ['app_user.id'], name=op.f('fk_audience_segment_created_by_user_id_app_user')),
    sa.PrimaryKeyConstraint('key', name=op.f('pk_audience_segment'))
    )
    op.create_table('experiment',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('name', sa.String(), nullable=False),
    sa.Column('hypothesis', sa.String(), nullable=True),
    sa.Column('target_type', sa.String(), nullable=False),
    sa.Column('target_key', sa.String(), nullable=True),
    sa.Column('flag_key', sa.String(), nullable=True),
    sa.Column('audience', sa.String(), nullable=False),
    sa.Column('assignment_unit', sa.String(), nullable=False),
    sa.Column('primary_metric', sa.String(), nullable=True),
    sa.Column('guardrail_metric', sa.String(), nullable=True),
    sa.Column('status', sa.String(), nullable=False),
    sa.Column('allocation', sa.Float(), nullable=False),
    sa.Column('started_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('ends_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('winner', sa.String(), nullable=True),
    sa.Column('variants', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('created_by_user_id', sa.Uuid(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.CheckConstraint("assignment_unit IN ('workspace', 'user', 'device')", name=op.f('ck_experiment_assignment_unit')),
    sa.CheckConstraint("status IN ('draft', 'scheduled', 'running', 'paused', 'completed', 'archived')", name=op.f('ck_experiment_status')),
    sa.CheckConstraint("target_type IN ('flag', 'starter_template', 'onboarding', 'release_notice', 'automation_version')", name=op.f('ck_experiment_target_type')),
    sa.ForeignKeyConstraint(['created_by_user_id'], ['app_user.id'], name=op.f('fk_experiment_created_by_user_id_app_user')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_experiment'))
    )
    op.create_index('ix_experiment_assigning', 'experiment', ['id'], unique=False, postgresql_where=sa.text("status IN ('scheduled', 'running')"))
    op.create_index('ix_experiment_created_at_id', 'experiment', ['created_at', 'id'], unique=False)
    op.create_index('uq_experiment_flag_key', 'experiment', ['flag_key'], unique=True, postgresql_where=sa.text("status <> 'archived'"))
    op.create_index('uq_experiment_target', 'experiment', ['target_type', 'target_key'], unique=True, postgresql_where=sa.text("status <> 'archived'"))
    op.create_table('experiment_unit',
    sa.Column('experiment_id', sa.Uuid(), nullable=False),
    sa.Column('unit', postgresql.BYTEA(), nullable=False),
    sa.Column('variant', sa.String(), nullable=False),
    sa.Column('exposed_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('converted_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('failed_at', sa.DateTime(timezone=True), nullable=True),
    sa.ForeignKeyConstraint(['experiment_id'], ['experiment.id'], name=op.f('fk_experiment_unit_experiment_id_experiment'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('experiment_id', 'unit', name=op.f('pk_experiment_unit'))
    )
    op.create_index('ix_experiment_unit_experiment_id_variant', 'experiment_unit', ['experiment_id', 'variant'], unique=False)
    for statement in create_status_trigger("experiment", STATUSES):
        op.execute(statement)


def downgrade() -> None:
    for statement in drop_status_trigger("experiment"):
        op.execute(statement)
    op.drop_table('experiment_unit')
    op.drop_table('experiment')
    op.drop_table('audience_segment')
