"""Runs of actions, the workspace log, and the secret that outgoing webhooks are signed with.

Revision ID: 0019
Revises: 0018
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from models.migrations.triggers import create_status_trigger, drop_status_trigger

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

# Copied from models.automation.action_runs.rules as of this revision: a migration never changes.
_ENDS = ("succeeded", "failed", "cancelled")
_RUN = {"started": _ENDS}
_STEP = {"pending": ("running", "skipped", *_ENDS), "running": _ENDS}


def upgrade() -> None:
    op.create_table(
        "webhook_signing_secret",
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["workspace_id"],
            ["workspace.id"],
            name=op.f("fk_webhook_signing_secret_workspace_id_workspace"),
        ),
        sa.PrimaryKeyConstraint("workspace_id", name=op.f("pk_webhook_signing_secret")),
    )
    op.create_table(
        "workspace_event",
        sa.Column("seq", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("actor_type", sa.String(), nullable=False),
        sa.Column("actor_user_id", sa.Uuid(), nullable=True),
        sa.Column("audience_user_id", sa.Uuid(), nullable=True),
        sa.Column("data", postgresql.JSONB(), nullable=False),
        sa.ForeignKeyConstraint(
            ["workspace_id"],
            ["workspace.id"],
            name=op.f("fk_workspace_event_workspace_id_workspace"),
        ),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_workspace_event")),
    )
    op.create_index("ix_workspace_event_at", "workspace_event", ["at"], unique=False)
    op.create_index(
        "ix_workspace_event_workspace_id_seq",
        "workspace_event",
        ["workspace_id", "seq"],
        unique=False,
    )
    op.create_table(
        "action_run",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("action_id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("config", postgresql.JSONB(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("input", postgresql.JSONB(), nullable=False),
        sa.Column("result", postgresql.JSONB(), nullable=True),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column("error_code", sa.String(), nullable=True),
        sa.Column("automation_run_id", sa.Uuid(), nullable=True),
        sa.Column("node_id", sa.String(), nullable=True),
        sa.Column("scope_key", sa.String(), nullable=True),
        sa.Column("chain", sa.ARRAY(sa.Uuid()), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("created_by_user_id", sa.Uuid(), nullable=True),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("completed_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "status IN ('started', 'succeeded', 'failed', 'cancelled')",
            name=op.f("ck_action_run_status"),
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id", "action_id"],
            ["action.workspace_id", "action.id"],
            name=op.f("fk_action_run_workspace_id_action_id_action"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_action_run")),
        sa.UniqueConstraint("workspace_id", "id", name=op.f("uq_action_run_workspace_id_id")),
    )
    op.create_index(
        "ix_action_run_action_id_started_at_id",
        "action_run",
        ["action_id", "started_at", "id"],
        unique=False,
    )
    op.create_index("ix_action_run_completed_at", "action_run", ["completed_at"], unique=False)
    op.create_index(
        "ix_action_run_open",
        "action_run",
        ["id"],
        unique=False,
        postgresql_where=sa.text("status = 'started'"),
    )
    op.create_table(
        "action_step",
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("step_id", sa.String(), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("result", postgresql.JSONB(), nullable=True),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column("error_code", sa.String(), nullable=True),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("completed_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "status IN ('pending', 'running', 'succeeded', 'failed', 'skipped', 'cancelled')",
            name=op.f("ck_action_step_status"),
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id", "run_id"],
            ["action_run.workspace_id", "action_run.id"],
            name=op.f("fk_action_step_workspace_id_run_id_action_run"),
        ),
        sa.PrimaryKeyConstraint("run_id", "step_id", name=op.f("pk_action_step")),
    )
    for table, transitions in (("action_run", _RUN), ("action_step", _STEP)):
        for statement in create_status_trigger(table, transitions):
            op.execute(statement)
    op.drop_index("ix_notification_user_id_workspace_id_id", table_name="notification")
    op.create_index(
        "ix_notification_user_id_created_at_id",
        "notification",
        ["user_id", "created_at", "id"],
        unique=False,
    )


def downgrade() -> None:
    op.drop_index("ix_notification_user_id_created_at_id", table_name="notification")
    op.create_index(
        "ix_notification_user_id_workspace_id_id",
        "notification",
        ["user_id", "workspace_id", "id"],
        unique=False,
    )
    for table in ("action_run", "action_step"):
        for statement in drop_status_trigger(table):
            op.execute(statement)
    op.drop_table("action_step")
    op.drop_index(
        "ix_action_run_open",
        table_name="action_run",
        postgresql_where=sa.text("status = 'started'"),
    )
    op.drop_index("ix_action_run_completed_at", table_name="action_run")
    op.drop_index("ix_action_run_action_id_started_at_id", table_name="action_run")
    op.drop_table("action_run")
    op.drop_index("ix_workspace_event_workspace_id_seq", table_name="workspace_event")
    op.drop_index("ix_workspace_event_at", table_name="workspace_event")
    op.drop_table("workspace_event")
    op.drop_table("webhook_signing_secret")
