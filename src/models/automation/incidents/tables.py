"""Tables of incidents, of what is part of them, of failures not yet grouped; retention."""

from datetime import datetime

import sqlalchemy as sa
from sqlmodel import Field, SQLModel

from models.automation.incidents.rules import CloseReason
from models.core.base import Id
from models.core.purging import MAX_ROWS, Retention
from runtime.database import UnitOfWork
from runtime.postgresql import schema

_IS_OPEN = sa.text("closed_at IS NULL")
_OF_INCIDENT = (["workspace_id", "incident_id"], ["incident.workspace_id", "incident.id"])


class UngroupedFailure(SQLModel, table=True):
    """A failed run that is not yet part of an incident.

    A trigger of the runs writes it with the end, so no one waits for the row of an incident. It
    refers to nothing by a constraint: each end would pay for the look.
    """

    __tablename__ = "ungrouped_failure"
    __table_args__ = (sa.Index("ix_ungrouped_failure_workspace_id", "workspace_id"),)

    run_id: Id = Field(primary_key=True)
    workspace_id: Id


class Incident(SQLModel, table=True):
    """The failed runs of an automation that share a fingerprint; tests are not among them.

    A failure after it was closed opens it again: `openings` counts that, and `runs_before` are the
    runs of the openings before this one. What happens after `watched_since` may close it.
    """

    __tablename__ = "incident"
    __table_args__ = (
        sa.UniqueConstraint("workspace_id", "id"),
        sa.UniqueConstraint("automation_id", "fingerprint"),
        schema.same_workspace("automation_id", "automation.id"),
        sa.ForeignKeyConstraint(["assignee_user_id"], ["app_user.id"]),
        sa.ForeignKeyConstraint(["closed_by_user_id"], ["app_user.id"]),
        schema.one_of("close_reason", CloseReason),
        sa.Index("ix_incident_all", "workspace_id", "opened_at", "id"),
        sa.Index("ix_incident_open", "workspace_id", "opened_at", "id", postgresql_where=_IS_OPEN),
        sa.Index("ix_incident_checked", "checked_at", postgresql_where=_IS_OPEN),
        schema.partial_index("ix_incident_closed", "closed_at", where="closed_at IS NOT NULL"),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    automation_id: Id
    fingerprint: bytes = Field(sa_type=sa.LargeBinary)
    node_id: str | None = None
    error_code: str | None = None
    message: str
    runs: int = Field(sa_type=sa.BigInteger)
    runs_before: int = Field(sa_type=sa.BigInteger)
    openings: int
    first_failed_at: datetime = Field(sa_type=schema.Timestamp)
    last_failed_at: datetime = Field(sa_type=schema.Timestamp)
    last_run_id: Id
    last_version_id: Id
    opened_at: datetime = Field(sa_type=schema.Timestamp)
    watched_since: datetime = Field(sa_type=schema.Timestamp)
    checked_at: datetime = Field(sa_type=schema.Timestamp)
    closed_at: datetime | None = Field(default=None, sa_type=schema.Timestamp)
    close_reason: str | None = None
    closed_by_user_id: Id | None = None
    assignee_user_id: Id | None = None
    muted: bool
    note: str


class IncidentRun(SQLModel, table=True):
    """A run of an incident. It refers to no run by a constraint: runs are purged on their own."""

    __tablename__ = "incident_run"
    __table_args__ = (
        sa.ForeignKeyConstraint(*_OF_INCIDENT),
        sa.Index("ix_incident_run_incident_id", "incident_id", "failed_at", "run_id"),
        sa.Index("ix_incident_run_failed_at", "failed_at"),
    )

    run_id: Id = Field(primary_key=True)
    workspace_id: Id
    incident_id: Id
    failed_at: datetime = Field(sa_type=schema.Timestamp)


class IncidentVersion(SQLModel, table=True):
    """The runs of an incident by the version that they ran on."""

    __tablename__ = "incident_version"
    __table_args__ = (sa.ForeignKeyConstraint(*_OF_INCIDENT),)

    incident_id: Id = Field(primary_key=True)
    automation_version_id: Id = Field(primary_key=True)
    workspace_id: Id
    runs: int = Field(sa_type=sa.BigInteger)


class IncidentRecord(SQLModel, table=True):
    """A record that failed runs of an incident were about, or that they wrote before they failed.

    It refers to no record by a constraint: records are purged on their own.
    """

    __tablename__ = "incident_record"
    __table_args__ = (
        sa.ForeignKeyConstraint(*_OF_INCIDENT),
        sa.Index("ix_incident_record_failed", "incident_id", "last_failed_at", "record_id"),
        sa.Index("ix_incident_record_workspace_id_record_id", "workspace_id", "record_id"),
        {"info": {schema.BELONGS_TO: {"record": ("workspace_id", "record_id")}}},
    )

    incident_id: Id = Field(primary_key=True)
    record_id: Id = Field(primary_key=True)
    workspace_id: Id
    runs: int = Field(sa_type=sa.BigInteger)
    last_failed_at: datetime = Field(sa_type=schema.Timestamp)
    last_run_id: Id


ungrouped_failure = schema.table_of(UngroupedFailure)
incident = schema.table_of(Incident)
incident_run = schema.table_of(IncidentRun)
incident_version = schema.table_of(IncidentVersion)
incident_record = schema.table_of(IncidentRecord)


_purge_failures = Retention(incident_run, incident_run.c.failed_at)
_purge_closed = Retention(incident, incident.c.closed_at)


async def purge_incidents(work: UnitOfWork, before: datetime, limit: int = MAX_ROWS) -> int:
    """Remove a batch of runs that failed, then of incidents that were closed, before a moment."""
    return await _purge_failures(work, before, limit) or await _purge_closed(work, before, limit)
