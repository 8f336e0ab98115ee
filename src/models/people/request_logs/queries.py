"""Reading the request log."""

from datetime import datetime
from typing import Any

from sqlalchemy import Select, func, select, true

from models.core.access.rules import Actor
from models.core.base import Id
from models.core.pagination import Page, PageRequest
from models.people.api_keys.queries import user_of_key
from models.people.request_logs.shapes import AuditEntryBody, AuditLog, RequestLogBody
from models.people.request_logs.tables import IS_CHANGE, RequestLog, request_log
from runtime.database import UnitOfWork


async def page_of_requests(
    work: UnitOfWork, actor: Actor, page: PageRequest
) -> Page[RequestLogBody]:
    """The workspace's calls, newest first; each is there shortly after its answer."""
    columns = request_log.c
    calls = select(request_log).where(columns.workspace_id == actor.workspace_id)
    shown = await page.descending(work, calls, columns.created_at, columns.id, of=RequestLog)
    return Page([RequestLogBody.model_validate(row) for row in shown.items], shown.cursor)


async def list_audit_log(work: UnitOfWork, actor: Actor, page: PageRequest) -> AuditLog:
    """The calls that changed something in the workspace, or tried to, newest first."""
    columns = request_log.c
    user_id = func.coalesce(user_of_key(columns.api_key_id), columns.principal_id)
    changes = select(request_log, user_id.label("user_id")).where(
        columns.workspace_id == actor.workspace_id, IS_CHANGE
    )
    shown = await page.descending(work, changes, columns.created_at, columns.id, of=RequestLog)
    return AuditLog(
        entries=[AuditEntryBody.model_validate(row) for row in shown.items], cursor=shown.cursor
    )


def calls_since(workspace_id: Id, since: datetime, until: datetime | None = None) -> Select[Any]:
    """The calls in a workspace from one moment on, and before another."""
    columns = request_log.c
    return select(columns.id).where(
        columns.workspace_id == workspace_id,
        columns.created_at >= since,
        true() if until is None else columns.created_at < until,
    )
