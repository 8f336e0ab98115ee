"""Looking for dates that were reached: one subscription and one transaction at a time.

Whatever a look finds becomes an event each, so that many dates of one day are answered in turn
with everything else.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from sqlalchemy import ColumnElement, bindparam, func, insert, literal, select, update
from sqlalchemy.dialects.postgresql import JSONB

from models.automation.automation_runs.run_header import automation_actor
from models.automation.triggers.listening import listener
from models.automation.triggers.rules.moments import LONGEST_WINDOW, DateWatch
from models.core.filters.conditions import Condition, Range
from models.data.databases.queries import load_schema
from models.data.databases.rules.fields import FieldSpec, Schema
from models.data.records.index import request_indexes
from models.data.records.rules.query.extraction import extract
from models.data.records.rules.query.filters import Leaf
from models.data.records.rules.query.ordering import NEWEST_FIRST
from models.data.records.rules.query.query import Query
from models.data.records.rules.query.routes import Route, candidates, matching
from models.data.records.tables import record
from models.messages.events.rules import EventKind
from models.messages.events.tables import automation_subscription, trigger_event
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError
from runtime.prepared_statement import PreparedStatement
from runtime.schema import Timestamp

log = structlog.get_logger()

HORIZON = timedelta(minutes=1)
"""How far a look sees ahead. Changes that no event tells of wait for the next look."""
SOON = timedelta(milliseconds=200)
"""When to look again while changes wait that may have moved dates."""

_table = automation_subscription.c
_NEXT = PreparedStatement(
    select(automation_subscription)
    .where(_table.look_at <= bindparam("now", type_=Timestamp))
    .order_by(_table.look_at)
    .limit(1)
    .with_for_update(key_share=True, skip_locked=True)
)
_WAITING = PreparedStatement(
    select(func.min(trigger_event.c.created_at).label("oldest")).where(
        trigger_event.c.workspace_id == bindparam("workspace_id"),
        trigger_event.c.kind == EventKind.RECORD_CHANGED.value,
        trigger_event.c.subject_id == bindparam("subject_id"),
        trigger_event.c.attempts == 0,
    )
)
_LOOKED = PreparedStatement(
    update(automation_subscription)
    .where(_table.automation_id == bindparam("automation"))
    .values(
        reached_at=bindparam("reached", type_=Timestamp),
        look_at=bindparam("look", type_=Timestamp),
    )
)


class _OvertakenError(Exception):
    """A change was committed while the look went on; it may have moved a date out of its sight."""


async def look_for_dates(work: UnitOfWork) -> bool:
    """Take one look that is due; False when none is."""
    held = await _NEXT.first(work, {"now": work.now})
    if held is None:
        return False
    reached, look = work.now, work.now + HORIZON
    until = await _seen_until(work, held)
    view = await _view(work, held)
    # Moments that pass while the automation or its database is away are nobody's.
    if view is not None:
        try:
            async with work.savepoint():
                look = await _look(work, held, view, until)
            reached = max(until, held.reached_at)
        except _OvertakenError:
            reached, look = held.reached_at, work.now + SOON
        except Exception:
            # One automation must not keep the others from looking.
            log.exception("a look failed", automation_id=str(held.automation_id))
            reached = held.reached_at
    parameters = {"automation": held.automation_id, "reached": reached, "look": look}
    await _LOOKED.execute(work, parameters)
    return True


async def _seen_until(work: UnitOfWork, held: Any) -> datetime:
    """Up to which moment the records say what was so: until the first change still to be heard."""
    named = {"workspace_id": held.workspace_id, "subject_id": held.subject_id}
    (waiting,) = await _WAITING.rows(work, named)
    if waiting.oldest is None:
        return work.now
    oldest: datetime = waiting.oldest
    return min(work.now, oldest - timedelta(milliseconds=1))


@dataclass(frozen=True, slots=True)
class _View:
    """Where the dates of a trigger stand."""

    schema: Schema
    spec: FieldSpec
    watch: DateWatch

    def conditions(self, test: Condition) -> Sequence[ColumnElement[Any]]:
        """The conditions of the records whose date passes a test, through the side index."""
        query = self.query(test)
        route = Route()
        if self.spec.index_ready:
            route = Route(among=next(iter(candidates(self.schema, query)), None))
        return matching(self.schema, query, route)

    def query(self, test: Condition) -> Query:
        return Query(
            required=(Leaf(self.spec, test),),
            further=(),
            with_archived=False,
            order=NEWEST_FIRST,
            levels=(),
            figures=(),
            shown_fields={},
        )


async def _view(work: UnitOfWork, held: Any) -> _View | None:
    found = await listener(work, held, held.workspace_id)
    if found is None:
        return None
    try:
        schema = await load_schema(work, held.workspace_id, held.subject_id)
    except NotFoundError:
        return None
    spec = schema.fields.get(found.config["fieldKey"])
    watch = DateWatch.of(found.config, None if spec is None else spec.kind)
    if spec is None or watch is None:
        return None
    return _View(schema, spec, watch)


async def _look(work: UnitOfWork, held: Any, view: _View, until: datetime) -> datetime:
    """Emit the dates reached since the last look; gives when the next one is due.

    Raises _OvertakenError.
    """
    after = max(held.reached_at, until - LONGEST_WINDOW)
    await _want_index(work, held, view)
    test = _between(view.watch, after, until)
    if test is not None and after < until:
        await _emit(work, held, view, test)
    if await _seen_until(work, held) < until:
        raise _OvertakenError
    if until < work.now:
        return work.now + SOON
    if view.watch.whole_days:
        return view.watch.next_day(until) or work.now + HORIZON
    return await _next_moment(work, view, until)


def _between(watch: DateWatch, after: datetime, until: datetime) -> Condition | None:
    """The test that values pass which are due after one moment and until another."""
    if not watch.whole_days:
        return Range(after - watch.offset, until - watch.offset, with_low=False)
    days = watch.days(after, until)
    return Range(days[0].isoformat(), days[-1].isoformat()) if days else None


async def _want_index(work: UnitOfWork, held: Any, view: _View) -> None:
    """Have the field indexed, if its database is large and that was not done yet."""
    if view.spec.index_id is None:
        actor = automation_actor(held.workspace_id, held.automation_id)
        day = held.reached_at.date().isoformat() if view.watch.whole_days else held.reached_at
        await request_indexes(work, actor, view.schema, view.query(Range(low=day)))


async def _emit(work: UnitOfWork, held: Any, view: _View, test: Condition) -> None:
    value = extract(view.spec).expression
    payload = func.jsonb_build_object("recordId", record.c.id, "value", value, type_=JSONB)
    event = {
        "event_id": func.uuidv7(),
        "workspace_id": literal(held.workspace_id),
        "kind": literal(EventKind.RECORD_DATE_REACHED.value),
        "subject_id": literal(held.automation_id),
        "payload": payload,
        "chain": literal([], trigger_event.c.chain.type),
        "attempts": literal(0),
        "created_at": literal(work.now, Timestamp),
        "due_at": literal(work.now, Timestamp),
    }
    reached = select(*event.values()).where(*view.conditions(test)).order_by(value, record.c.id)
    emitted = await work.execute(insert(trigger_event).from_select(list(event), reached))
    if emitted.rowcount:
        work.notify_workers = True


async def _next_moment(work: UnitOfWork, view: _View, until: datetime) -> datetime:
    """When the first date within the horizon is due, or the horizon."""
    horizon = until + HORIZON
    test = _between(view.watch, until, horizon)
    assert test is not None, "moments have no days without any"
    first = func.min(extract(view.spec).expression)
    value = await work.scalar(select(first).where(*view.conditions(test)))
    due = view.watch.due(value.isoformat() if isinstance(value, datetime) else value)
    return horizon if due is None else due
