"""Starts of the next deliveries: in order in each line, in turn between lines (ADR 0070).

A delivery that waits is a row alone. One that is started gets an execution for one attempt.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    CTE,
    ColumnElement,
    DateTime,
    FromClause,
    Integer,
    Select,
    Uuid,
    and_,
    bindparam,
    case,
    cast,
    exists,
    func,
    literal,
    or_,
    select,
    true,
    tuple_,
    update,
)

from models.core.base import Id
from models.messages.deliveries.commands import end_unsent, request_of
from models.messages.deliveries.rules import EXPIRED, DeliveryChannel
from models.messages.deliveries.tables import (
    EXECUTING,
    WAITING,
    Delivery,
    delivery,
    delivery_line,
)
from runtime.database import UnitOfWork, Work
from runtime.postgresql.schema import is_among, skip_scan
from runtime.postgresql.statements import PreparedStatement
from runtime.temporal import outbox
from runtime.temporal.families import Family

LINE_ROOM = 8
"""Executions at once for a receiver whose latest answer was a success; any other has one."""
WORKSPACE_ROOM = 32
"""Executions of deliveries at once in one workspace."""
MOST_EXPIRED = 500
"""Deliveries that one call ends because their time is over."""
MOST_WORKSPACES = 1_000

_one, _line = delivery.c, delivery_line.c
_NOW: ColumnElement[Any] = bindparam("now", type_=DateTime(timezone=True))


def _lines(own: ColumnElement[bool]) -> CTE:
    """The lines that deliveries wait in."""
    return skip_scan("line", (_one.workspace_id, _one.channel, _one.target_id), WAITING, own)


def _of(line: CTE, table: FromClause) -> ColumnElement[bool]:
    return and_(
        table.c.workspace_id == line.c.workspace_id,
        table.c.channel == line.c.channel,
        table.c.target_id == line.c.target_id,
    )


def _starts_due() -> ColumnElement[bool]:
    """True while deliveries wait in a line whose circuit may be tried."""
    line = _lines(true())
    paused = exists(_line.target_id).where(_of(line, delivery_line), _line.retry_at > func.now())
    return exists(select(literal(1)).select_from(line).where(~paused.correlate(line)))


STARTS_DUE = _starts_due()


def _next_of_lines(own: ColumnElement[bool]) -> Select[Any]:
    """The deliveries that their lines have room for, and the `turn` of each in its line."""
    line = _lines(own)
    works_well = (_line.failures == 0) & _line.succeeded_at.is_not(None)
    line_limit = case(
        (_line.retry_at > _NOW, 0),
        (_line.retry_at.is_not(None), 1),
        (works_well, bindparam("line_room", type_=Integer)),
        else_=1,
    )
    under_way = select(func.count()).where(EXECUTING, _of(line, delivery)).correlate(line)
    room = (
        select(line_limit.label("most"), under_way.scalar_subquery().label("under_way"))
        .select_from(
            select(literal(1)).subquery().outerjoin(delivery_line, _of(line, delivery_line))
        )
        .correlate(line)
        .lateral("room")
    )
    due = (
        select(_one.id, _one.created_at)
        .where(
            WAITING,
            _of(line, delivery),
            or_(_one.next_attempt_at.is_(None), _one.next_attempt_at <= _NOW),
            _one.expires_at > _NOW,
        )
        .order_by(_one.created_at, _one.id)
        .limit(func.greatest(room.c.most - room.c.under_way, 0))
        .correlate(line, room)
        .lateral("due")
    )
    place = func.row_number().over(
        partition_by=tuple_(*line.c), order_by=(due.c.created_at, due.c.id)
    )
    return select(
        line.c.workspace_id,
        due.c.id,
        due.c.created_at,
        (place + room.c.under_way).label("turn"),
    ).select_from(line.join(room, true()).join(due, true()))


def _behind() -> Select[Any]:
    following = _next_of_lines(true()).subquery()
    return select(following.c.workspace_id).distinct().limit(MOST_WORKSPACES)


def _next_of_workspace() -> Select[Any]:
    here = bindparam("workspace_id", type_=Uuid)
    following = _next_of_lines(_one.workspace_id == here).subquery()
    under_way = select(func.count()).where(EXECUTING, _one.workspace_id == here)
    room = cast(bindparam("workspace_room", type_=Integer), Integer) - under_way.scalar_subquery()
    batch = (
        select(following.c.id, following.c.turn)
        .order_by(following.c.turn, following.c.created_at, following.c.id)
        .limit(func.greatest(room, 0))
        .cte("chosen")
    )
    columns = (_one.id, _one.workspace_id, _one.channel, _one.subject_id, _one.executions)
    return (
        select(*columns)
        .join(batch, batch.c.id == _one.id)
        # The join alone may go through all open deliveries for each of the batch.
        .where(WAITING, is_among(_one.id, select(batch.c.id)))
        .order_by(batch.c.turn, _one.created_at, _one.id)
        .with_for_update(of=delivery, skip_locked=True)
    )


_BEHIND, _NEXT = PreparedStatement(_behind()), PreparedStatement(_next_of_workspace(), Delivery)


async def workspaces_to_start(work: Work) -> Sequence[Id]:
    """Workspaces with a delivery that is due in a line that has room."""
    parameters = {"now": work.now, "line_room": LINE_ROOM}
    return [row.workspace_id for row in await _BEHIND.rows(work, parameters)]


async def start_deliveries(work: UnitOfWork, workspace_id: Id) -> int:
    """Have the next deliveries of a workspace attempted; returns their number.

    What another worker is about to start is left to it.
    """
    place = func.hashtextextended(f"deliveries/{workspace_id}", 0)
    if not await work.scalar(select(func.pg_try_advisory_xact_lock(place))):
        return 0
    parameters = {
        "workspace_id": workspace_id,
        "now": work.now,
        "line_room": LINE_ROOM,
        "workspace_room": WORKSPACE_ROOM,
    }
    following = await _NEXT.rows(work, parameters)
    if not following:
        return 0
    await work.execute(
        update(delivery)
        .where(_one.id.in_([row.id for row in following]))
        .values(executing=True, executions=_one.executions + 1)
    )
    intents: list[outbox.IntentArguments] = [
        {
            "intent": outbox.Intent.START,
            "family": Family.DELIVERY,
            "workspace_id": workspace_id,
            "subject_id": row.id,
            "request": request_of(DeliveryChannel(row.channel), row.subject_id, row.executions + 1),
        }
        for row in following
    ]
    await outbox.append_all(work, intents)
    return len(following)


async def expire_deliveries(work: UnitOfWork) -> int:
    """End deliveries that waited until their time was over; to be called until it gives 0."""
    over = (
        select(_one.id)
        .where(WAITING, _one.expires_at <= work.now)
        .order_by(_one.expires_at)
        .limit(MOST_EXPIRED)
        .with_for_update(skip_locked=True)
    )
    ids = [row.id for row in await work.rows(over)]
    return await end_unsent(work, ids, EXPIRED)
