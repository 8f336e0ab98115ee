"""The request log: one row per authenticated call (interface.md#api-request-log-entry)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from pydantic_core import to_json
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.core.access.rules import Actor
from models.core.base import Id, Moment, Nullable, Shape
from models.core.pagination import Page, PageRequest
from models.core.purging import Retention
from models.people.api_keys import user_of_key
from runtime.database import UnitOfWork
from runtime.ids import new_id
from runtime.postgresql.schema import Timestamp, table_of

IS_CHANGE = sa.text("method NOT IN ('GET', 'HEAD', 'OPTIONS') AND NOT safe")
"""The calls that are not safe (RFC 9110, 9.2.1), by their methods or by what they ask for."""


class RequestLog(SQLModel, table=True):
    """One call. It has no foreign keys: it outlives what it names, and never blocks a call."""

    __tablename__ = "request_log"
    __table_args__ = (
        sa.Index("ix_request_log_workspace_id_created_at_id", "workspace_id", "created_at", "id"),
        sa.Index("ix_request_log_created_at", "created_at"),
        sa.Index(
            "ix_request_log_changes",
            *("workspace_id", "created_at", "id"),
            postgresql_where=IS_CHANGE,
        ),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id | None = None
    principal_type: str
    principal_id: Id
    api_key_id: Id | None = None
    method: str
    path: str
    status: int
    idempotency_key: str | None = None
    error: str | None = None
    duration_ms: float
    created_at: datetime = Field(sa_type=Timestamp)
    dry_run: bool = Field(default=False, sa_column_kwargs={"server_default": sa.text("false")})
    safe: bool = Field(default=False, sa_column_kwargs={"server_default": sa.text("false")})


request_log = table_of(RequestLog)


class RequestLogBody(Shape):
    id: Id
    workspace_id: Nullable[Id]
    api_key_id: Nullable[Id]
    principal_type: str
    principal_id: Nullable[Id]
    method: str
    path: str
    status: int
    idempotency_key: Nullable[str]
    error: Nullable[str]
    duration_ms: Nullable[float]
    created_at: Nullable[Moment]
    dry_run: bool


class AuditEntryBody(Shape):
    """A write request, or a refused one, with the user who sent it or owns the API key.

    `status` and `error` have the result. `dryRun` is true for a proposal, which changes nothing
    until it is applied. Other dry runs are not listed.
    """

    id: Id
    principal_type: str
    principal_id: Id
    user_id: Id
    api_key_id: Id | None
    method: str
    path: str
    status: int
    error: str | None
    idempotency_key: str | None
    created_at: Moment
    dry_run: bool


class AuditLog(Shape):
    entries: list[AuditEntryBody]
    cursor: Nullable[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """One call as it is logged; `path` is without its query."""

    workspace_id: Id | None
    principal_type: str
    principal_id: Id
    api_key_id: Id | None
    method: str
    path: str
    status: int
    idempotency_key: str | None
    error: str | None
    duration_ms: float
    created_at: datetime
    dry_run: bool = False
    safe: bool = False
    id: Id = field(default_factory=new_id)


_ENTRIES = (
    sa.func.jsonb_to_recordset(sa.cast(sa.bindparam("entries", type_=sa.Text), JSONB))
    .table_valued(*(sa.column(one.name, one.type) for one in request_log.columns))
    .render_derived(name="entry", with_types=True)
)
_APPEND = sa.insert(request_log).from_select(list(request_log.columns.keys()), sa.select(_ENTRIES))


async def append_entries(work: UnitOfWork, entries: Sequence[LogEntry]) -> None:
    """Write a batch of rows."""
    if entries:
        await work.execute(_APPEND, {"entries": to_json(entries).decode()})


purge_request_logs = Retention(request_log, request_log.c.created_at)
"""Rows of calls."""


async def page_of_requests(
    work: UnitOfWork, actor: Actor, page: PageRequest
) -> Page[RequestLogBody]:
    """The workspace's calls, newest first; each is there shortly after its answer."""
    columns = request_log.c
    calls = sa.select(request_log).where(columns.workspace_id == actor.workspace_id)
    shown = await page.descending(work, calls, columns.created_at, columns.id, of=RequestLog)
    return Page([RequestLogBody.model_validate(row) for row in shown.items], shown.cursor)


async def list_audit_log(work: UnitOfWork, actor: Actor, page: PageRequest) -> AuditLog:
    """The calls that changed something in the workspace, or tried to, newest first."""
    columns = request_log.c
    user_id = sa.func.coalesce(user_of_key(columns.api_key_id), columns.principal_id)
    changes = sa.select(request_log, user_id.label("user_id")).where(
        columns.workspace_id == actor.workspace_id, IS_CHANGE
    )
    shown = await page.descending(work, changes, columns.created_at, columns.id, of=RequestLog)
    return AuditLog(
        entries=[AuditEntryBody.model_validate(row) for row in shown.items], cursor=shown.cursor
    )


def calls_since(workspace_id: Id, since: datetime, until: datetime | None = None) -> sa.Select[Any]:
    """The calls in a workspace from one moment on, and before another."""
    columns = request_log.c
    return sa.select(columns.id).where(
        columns.workspace_id == workspace_id,
        columns.created_at >= since,
        sa.true() if until is None else columns.created_at < until,
    )
