"""Waits of runs: approvals and events.

Revision ID: 0015
Revises: 0014
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "automation_event",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("event_key", sa.String(), nullable=False),
        sa.Column("data", postgresql.JSONB(), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["workspace_id"],
            ["workspace.id"],
            name=op.f("fk_automation_event_workspace_id_workspace"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_automation_event")),
    )
    op.create_index(
        "ix_automation_event_created_at",
        "automation_event",
        ["workspace_id", "created_at"],
        unique=False,
    )
    op.create_index(
        "ix_automation_event_event_key",
        "automation_event",
        ["workspace_id", "event_key", "id"],
        unique=False,
    )
    op.create_table(
        "run_wait",
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("node_id", sa.String(), nullable=False),
        sa.Column("scope_key", sa.String(), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("workflow_id", sa.String(), nullable=True),
        sa.Column("event_key", sa.String(), nullable=True),
        sa.Column("terms", postgresql.JSONB(), nullable=False),
        sa.Column("said", postgresql.JSONB(), nullable=False),
        sa.Column("outcome", sa.String(), nullable=True),
        sa.Column("output", postgresql.JSONB(), nullable=True),
        sa.Column("event_id", sa.Uuid(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("resolved_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("kind IN ('approval', 'wait_event')", name=op.f("ck_run_wait_kind")),
        sa.CheckConstraint(
            "outcome IN ('approved', 'rejected', 'always', 'timeout')",
            name=op.f("ck_run_wait_outcome"),
        ),
        sa.CheckConstraint(
            "(outcome IS NULL) = (resolved_at IS NULL)", name=op.f("ck_run_wait_resolved")
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id", "run_id"],
            ["automation_run.workspace_id", "automation_run.id"],
            name=op.f("fk_run_wait_workspace_id_run_id_automation_run"),
        ),
        sa.PrimaryKeyConstraint("run_id", "node_id", "scope_key", name=op.f("pk_run_wait")),
    )
    op.create_index(
        "ix_run_wait_event_key",
        "run_wait",
        ["workspace_id", "event_key"],
        unique=False,
        postgresql_where=sa.text("event_key IS NOT NULL AND outcome IS NULL"),
    )
    op.create_table(
        "resting_execution",
        sa.Column("place", sa.String(), nullable=False),
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("below", sa.ARRAY(sa.Text()), nullable=False),
        sa.ForeignKeyConstraint(
            ["workspace_id", "run_id"],
            ["automation_run.workspace_id", "automation_run.id"],
            name=op.f("fk_resting_execution_workspace_id_run_id_automation_run"),
        ),
        sa.PrimaryKeyConstraint("place", name=op.f("pk_resting_execution")),
    )
    op.create_index("ix_resting_execution_run_id", "resting_execution", ["run_id"], unique=False)


def downgrade() -> None:
    op.drop_index("ix_resting_execution_run_id", table_name="resting_execution")
    op.drop_table("resting_execution")
    op.drop_index(
        "ix_run_wait_event_key",
        table_name="run_wait",
        postgresql_where=sa.text("event_key IS NOT NULL AND outcome IS NULL"),
    )
    op.drop_table("run_wait")
    op.drop_index("ix_automation_event_event_key", table_name="automation_event")
    op.drop_index("ix_automation_event_created_at", table_name="automation_event")
    op.drop_table("automation_event")
