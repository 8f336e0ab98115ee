"""Reading the request log."""

from sqlalchemy import select

from models.core.access.rules import Actor
from models.people.request_logs.shapes import RequestLogBody
from models.people.request_logs.tables import request_log
from runtime.database import UnitOfWork


async def list_request_logs(work: UnitOfWork, actor: Actor, limit: int) -> list[RequestLogBody]:
    """The workspace's newest calls; a call shows up a fraction of a second after its answer."""
    rows = await work.rows(
        select(request_log)
        .where(request_log.c.workspace_id == actor.workspace_id)
        .order_by(request_log.c.created_at.desc(), request_log.c.id.desc())
        .limit(limit)
    )
    return [RequestLogBody.model_validate(row) for row in rows]
