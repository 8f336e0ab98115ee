"""What the automation engine stands on: chains, slots, events, notifications.

Revision ID: 0014
Revises: 0013
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "trigger_event",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("event_id", sa.Uuid(), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("subject_id", sa.Uuid(), nullable=False),
        sa.Column("payload", postgresql.JSONB(), nullable=False),
        sa.Column("chain", sa.ARRAY(sa.Uuid()), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_trigger_event")),
        sa.UniqueConstraint("event_id", name=op.f("uq_trigger_event_event_id")),
    )
    op.create_index("ix_trigger_event_due_at_id", "trigger_event", ["due_at", "id"], unique=False)
    op.create_table(
        "notification",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("body", sa.String(), nullable=False),
        sa.Column("item_id", sa.Uuid(), nullable=True),
        sa.Column("record_id", sa.Uuid(), nullable=True),
        sa.Column("run_id", sa.Uuid(), nullable=True),
        sa.Column("actor_user_id", sa.Uuid(), nullable=True),
        sa.Column("data", postgresql.JSONB(), nullable=False),
        sa.Column("read_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("archived_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "kind IN ('mention', 'comment', 'assignment', 'approval_request', 'automation_failed', 'automation_loop', 'data_source_failed', 'import_finished', 'legacy_import', 'share', 'timer_done', 'system')",
            name=op.f("ck_notification_kind"),
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["app_user.id"], name=op.f("fk_notification_user_id_app_user")
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspace.id"], name=op.f("fk_notification_workspace_id_workspace")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notification")),
    )
    op.create_index(
        "ix_notification_unread",
        "notification",
        ["user_id", "workspace_id", "id"],
        unique=False,
        postgresql_where=sa.text("read_at IS NULL AND archived_at IS NULL"),
    )
    op.create_index(
        "ix_notification_user_id_workspace_id_id",
        "notification",
        ["user_id", "workspace_id", "id"],
        unique=False,
    )
    op.create_table(
        "automation_subscription",
        sa.Column("automation_id", sa.Uuid(), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("subject_id", sa.Uuid(), nullable=True),
        sa.ForeignKeyConstraint(
            ["workspace_id", "automation_id"],
            ["automation.workspace_id", "automation.id"],
            name=op.f("fk_automation_subscription_workspace_id_automation_id_automation"),
        ),
        sa.PrimaryKeyConstraint("automation_id", name=op.f("pk_automation_subscription")),
    )
    op.create_index(
        "ix_automation_subscription_listens",
        "automation_subscription",
        ["workspace_id", "kind", "subject_id"],
        unique=False,
    )
    op.add_column("automation_run", sa.Column("parent_run_id", sa.Uuid(), nullable=True))
    op.add_column(
        "automation_run",
        sa.Column("chain", sa.ARRAY(sa.Uuid()), server_default=sa.text("'{}'"), nullable=False),
    )
    op.add_column("automation_run", sa.Column("concurrency_key", sa.String(), nullable=True))
    op.add_column(
        "automation_run", sa.Column("admitted_at", sa.DateTime(timezone=True), nullable=True)
    )
    op.create_index(
        "ix_automation_run_concurrency",
        "automation_run",
        ["automation_id", "concurrency_key", "id"],
        unique=False,
        postgresql_where=sa.text(
            "concurrency_key IS NOT NULL AND status IN ('queued', 'running', 'waiting')"
        ),
    )
    op.create_index(
        "ix_automation_run_parent",
        "automation_run",
        ["parent_run_id"],
        unique=False,
        postgresql_where=sa.text("parent_run_id IS NOT NULL"),
    )
    # Before there were slots, every run was admitted when it was accepted.
    op.execute("UPDATE automation_run SET admitted_at = created_at")


def downgrade() -> None:
    op.drop_index(
        "ix_automation_run_parent",
        table_name="automation_run",
        postgresql_where=sa.text("parent_run_id IS NOT NULL"),
    )
    op.drop_index(
        "ix_automation_run_concurrency",
        table_name="automation_run",
        postgresql_where=sa.text(
            "concurrency_key IS NOT NULL AND status IN ('queued', 'running', 'waiting')"
        ),
    )
    op.drop_column("automation_run", "admitted_at")
    op.drop_column("automation_run", "concurrency_key")
    op.drop_column("automation_run", "chain")
    op.drop_column("automation_run", "parent_run_id")
    op.drop_index("ix_automation_subscription_listens", table_name="automation_subscription")
    op.drop_table("automation_subscription")
    op.drop_index("ix_notification_user_id_workspace_id_id", table_name="notification")
    op.drop_index(
        "ix_notification_unread",
        table_name="notification",
        postgresql_where=sa.text("read_at IS NULL AND archived_at IS NULL"),
    )
    op.drop_table("notification")
    op.drop_index("ix_trigger_event_due_at_id", table_name="trigger_event")
    op.drop_table("trigger_event")
