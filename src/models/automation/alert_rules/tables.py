"""Tables of alert rules, and of the times at which they fired; their retention."""

from datetime import datetime
from typing import Any

from sqlalchemy import ARRAY, ForeignKeyConstraint, Index, UniqueConstraint, Uuid
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.automation.alert_rules.rules import AlertDisabledReason, AlertState, Resolution
from models.automation.alert_rules.shapes import AlertKind
from models.core.base import Id
from models.core.purging import Retention
from runtime.postgresql.schema import Timestamp, one_of, partial_index, same_workspace, table_of


class AlertRule(SQLModel, table=True):
    """A condition under a name, and who is told when it holds.

    It sees what `saved_by_user_id` sees, who wrote or changed it last. What happened before
    `watched_since` is no silence; at `due_at` it is looked at next. It goes with the automation or
    the connection that it names.
    """

    __tablename__ = "alert_rule"
    __table_args__ = (
        UniqueConstraint("workspace_id", "id"),
        ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        ForeignKeyConstraint(["saved_by_user_id"], ["app_user.id"]),
        same_workspace("automation_id", "automation.id", ondelete="CASCADE"),
        same_workspace("connection_id", "connection.id", ondelete="CASCADE"),
        one_of("kind", AlertKind),
        one_of("state", AlertState),
        one_of("disabled_reason", AlertDisabledReason),
        Index("ix_alert_rule_workspace_id", "workspace_id", "label", "id"),
        partial_index("ix_alert_rule_due", "due_at", where="enabled"),
        partial_index(
            "ix_alert_rule_automation_id", "automation_id", where="automation_id IS NOT NULL"
        ),
        partial_index(
            "ix_alert_rule_connection_id", "connection_id", where="connection_id IS NOT NULL"
        ),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    label: str
    kind: str
    condition: dict[str, Any] = Field(sa_type=JSONB)
    automation_id: Id | None = None
    connection_id: Id | None = None
    recipient_user_ids: list[Id] = Field(sa_type=ARRAY(Uuid))
    repeat_minutes: int | None = None
    enabled: bool
    disabled_reason: str | None = None
    state: str
    problem: str | None = None
    saved_by_user_id: Id
    watched_since: datetime = Field(sa_type=Timestamp)
    pending_since: datetime | None = Field(default=None, sa_type=Timestamp)
    due_at: datetime = Field(sa_type=Timestamp)
    checked_at: datetime | None = Field(default=None, sa_type=Timestamp)
    told_at: datetime | None = Field(default=None, sa_type=Timestamp)
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)


class AlertFiring(SQLModel, table=True):
    """A time for which the condition of a rule held; without `resolved_at` it still does."""

    __tablename__ = "alert_firing"
    __table_args__ = (
        same_workspace("alert_rule_id", "alert_rule.id", ondelete="CASCADE"),
        one_of("resolution", Resolution),
        Index("ix_alert_firing_alert_rule_id", "alert_rule_id", "fired_at", "id"),
        partial_index(
            "ix_alert_firing_open", "alert_rule_id", where="resolved_at IS NULL", unique=True
        ),
        partial_index("ix_alert_firing_resolved", "resolved_at", where="resolved_at IS NOT NULL"),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    alert_rule_id: Id
    message: str
    value: int | None = None
    run_id: Id | None = None
    fired_at: datetime = Field(sa_type=Timestamp)
    resolved_at: datetime | None = Field(default=None, sa_type=Timestamp)
    resolution: str | None = None


alert_rule = table_of(AlertRule)
alert_firing = table_of(AlertFiring)

_firing = alert_firing.c


purge_firings = Retention(alert_firing, alert_firing.c.resolved_at)
"""Firings that are over."""
