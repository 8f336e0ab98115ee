"""The calls of work that wait: for the resume of a connection, for a limit, or for an answer."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Protocol

from sqlalchemy import func, or_, select

from models.core.base import Id, JsonObject
from models.core.pauses.rules import PauseCause
from models.core.pauses.shapes import WaitCause, WaitKind
from models.sources.outbound_limits.tables import outbound_call, outbound_place
from models.sources.outbound_limits.turns import HAS_LINE
from runtime.database import UnitOfWork
from runtime.timestamps import wire_timestamp

_place, _call = outbound_place.c, outbound_call.c


class _Wait(Protocol):
    work_id: Id
    host: str | None
    connection_id: Id | None
    entered_at: datetime
    go_at: datetime | None
    pause_reason: str | None
    paused_at: datetime | None
    resumed_at: datetime | None
    asked_to_wait: bool | None


async def waits_of(
    work: UnitOfWork, workspace_id: Id, work_ids: Collection[Id]
) -> Mapping[Id, JsonObject]:
    """The `waitingFor` of work of which a call waits, by the id of the work."""
    if not work_ids:
        return {}
    asked_to_wait = _place.paused_until > func.clock_timestamp()
    rows = await work.rows(
        select(
            _call.work_id,
            _place.host,
            _place.connection_id,
            _call.entered_at,
            _call.go_at,
            _place.pause_reason,
            _place.paused_at,
            _place.resumed_at,
            asked_to_wait.label("asked_to_wait"),
        )
        .join(outbound_place, _place.id == _call.place_id)
        .where(
            _call.workspace_id == workspace_id,
            _call.work_id.in_(sorted(work_ids)),
            ~_call.gone,
            or_(HAS_LINE, asked_to_wait),
        )
        .order_by(_call.position.desc()),
        of=_Wait,
    )
    return {row.work_id: _waiting_for(row) for row in rows}


def _waiting_for(row: _Wait) -> JsonObject:
    if row.connection_id is None:
        place: JsonObject = {"subject": "host", "host": row.host}
    else:
        place = {"subject": "connection", "subjectId": str(row.connection_id)}
    if row.paused_at is not None:
        return {
            "kind": WaitKind.PAUSED,
            **place,
            "cause": PauseCause.PERSON,
            "reason": row.pause_reason or "",
            "since": wire_timestamp(row.paused_at),
            "resuming": row.resumed_at is not None,
        }
    return {
        "kind": WaitKind.LIMITED,
        **place,
        "cause": WaitCause.ANSWER if row.asked_to_wait else WaitCause.LIMIT,
        "since": wire_timestamp(row.entered_at),
        **({} if row.go_at is None else {"until": wire_timestamp(row.go_at)}),
    }
