"""Alert rules, and what they watch: failed runs by time, and connections that fail (ADR 0100).

Incidents get the records that their runs were about.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0081"
down_revision = "0080"
branch_labels = None
depends_on = None

KINDS = (
    "mention", "comment", "assignment", "approval_request", "automation_failed", "automation_loop",
    "data_source_failed", "import_finished", "legacy_import", "share", "timer_done", "system",
)  # fmt: skip
"""The kinds of notifications before."""
FAILED = sa.text("status IN ('failed', 'timed_out')")


def upgrade() -> None:
    _create_rules()
    _create_firings()
    op.create_table(
        "failing_connection",
        sa.Column("connection_id", sa.Uuid(), primary_key=True),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("failures", sa.BigInteger(), nullable=False),
        sa.Column("failing_since", sa.DateTime(timezone=True), nullable=False),
        sa.Column("failed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("message", sa.String(), nullable=False),
        _of("failing_connection", "connection", cascades=True),
    )
    op.create_table(
        "incident_record",
        sa.Column("incident_id", sa.Uuid(), primary_key=True),
        sa.Column("record_id", sa.Uuid(), primary_key=True),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("runs", sa.BigInteger(), nullable=False),
        sa.Column("last_failed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_run_id", sa.Uuid(), nullable=False),
        _of("incident_record", "incident"),
    )
    op.create_index(
        "ix_incident_record_failed",
        "incident_record",
        ["incident_id", "last_failed_at", "record_id"],
    )
    op.create_index(
        "ix_incident_record_workspace_id_record_id",
        "incident_record",
        ["workspace_id", "record_id"],
    )
    op.create_index(
        "ix_automation_run_failed",
        "automation_run",
        ["workspace_id", "completed_at"],
        postgresql_where=FAILED,
    )
    _allow_kinds((*KINDS[:6], "alert", *KINDS[6:]))


def _create_rules() -> None:
    op.create_table(
        "alert_rule",
        sa.Column("id", sa.Uuid(), primary_key=True),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("label", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("condition", postgresql.JSONB(), nullable=False),
        sa.Column("automation_id", sa.Uuid()),
        sa.Column("connection_id", sa.Uuid()),
        sa.Column("recipient_user_ids", postgresql.ARRAY(sa.Uuid()), nullable=False),
        sa.Column("repeat_minutes", sa.Integer()),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("disabled_reason", sa.String()),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("problem", sa.String()),
        sa.Column("saved_by_user_id", sa.Uuid(), nullable=False),
        sa.Column("watched_since", sa.DateTime(timezone=True), nullable=False),
        sa.Column("pending_since", sa.DateTime(timezone=True)),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("checked_at", sa.DateTime(timezone=True)),
        sa.Column("told_at", sa.DateTime(timezone=True)),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.UniqueConstraint("workspace_id", "id", name="uq_alert_rule_workspace_id_id"),
        sa.CheckConstraint(
            "kind IN ('failures', 'silence', 'duration', 'queue_age', 'worker_gone',"
            " 'connection_failing')",
            name="ck_alert_rule_kind",
        ),
        sa.CheckConstraint("state IN ('ok', 'firing')", name="ck_alert_rule_state"),
        sa.CheckConstraint(
            "disabled_reason IN ('manual', 'saver_left', 'rights_lost')",
            name="ck_alert_rule_disabled_reason",
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspace.id"], name="fk_alert_rule_workspace_id_workspace"
        ),
        sa.ForeignKeyConstraint(
            ["saved_by_user_id"], ["app_user.id"], name="fk_alert_rule_saved_by_user_id_app_user"
        ),
        _of("alert_rule", "automation", cascades=True),
        _of("alert_rule", "connection", cascades=True),
    )
    op.create_index("ix_alert_rule_workspace_id", "alert_rule", ["workspace_id", "label", "id"])
    enabled = sa.text("enabled")
    op.create_index("ix_alert_rule_due", "alert_rule", ["due_at"], postgresql_where=enabled)
    for column in ("automation_id", "connection_id"):
        there = sa.text(f"{column} IS NOT NULL")
        op.create_index(f"ix_alert_rule_{column}", "alert_rule", [column], postgresql_where=there)


def _create_firings() -> None:
    op.create_table(
        "alert_firing",
        sa.Column("id", sa.Uuid(), primary_key=True),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("alert_rule_id", sa.Uuid(), nullable=False),
        sa.Column("message", sa.String(), nullable=False),
        sa.Column("value", sa.Integer()),
        sa.Column("run_id", sa.Uuid()),
        sa.Column("fired_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("resolved_at", sa.DateTime(timezone=True)),
        sa.Column("resolution", sa.String()),
        sa.CheckConstraint(
            "resolution IN ('over', 'changed', 'disabled')", name="ck_alert_firing_resolution"
        ),
        _of("alert_firing", "alert_rule", cascades=True),
    )
    op.create_index(
        "ix_alert_firing_alert_rule_id", "alert_firing", ["alert_rule_id", "fired_at", "id"]
    )
    op.create_index(
        "ix_alert_firing_open",
        "alert_firing",
        ["alert_rule_id"],
        unique=True,
        postgresql_where=sa.text("resolved_at IS NULL"),
    )
    op.create_index(
        "ix_alert_firing_resolved",
        "alert_firing",
        ["resolved_at"],
        postgresql_where=sa.text("resolved_at IS NOT NULL"),
    )


def _of(table: str, noun: str, *, cascades: bool = False) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["workspace_id", f"{noun}_id"],
        [f"{noun}.workspace_id", f"{noun}.id"],
        name=f"fk_{table}_workspace_id_{noun}_id_{noun}",
        ondelete="CASCADE" if cascades else None,
    )


def _allow_kinds(kinds: tuple[str, ...]) -> None:
    # The convention for names would put another prefix before it.
    name = op.f("ck_notification_kind")
    op.drop_constraint(name, "notification")
    listed = ", ".join(f"'{kind}'" for kind in kinds)
    op.create_check_constraint(name, "notification", f"kind IN ({listed})")


def downgrade() -> None:
    op.execute("DELETE FROM notification WHERE kind = 'alert'")
    _allow_kinds(KINDS)
    op.drop_index("ix_automation_run_failed", table_name="automation_run")
    for table in ("incident_record", "failing_connection", "alert_firing", "alert_rule"):
        op.drop_table(table)
