"""The inbox on the wire, and reading it; an event is shown by the automations that the actor sees.

A list reads the newest events that its indexed filters leave, ten thousand at a time, and looks
through them for the rest. A page that found too little ends there, and its cursor continues.
"""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Protocol, Self

import sqlalchemy as sa
from pydantic import ConfigDict, Field
from pydantic_core import to_jsonable_python
from sqlalchemy.dialects.postgresql import aggregate_order_by
from typing_extensions import override

from models.automation.automations import runnable_versions
from models.automation.automations.queries import AUTOMATION, automation_of, open_automations
from models.automation.inbox.rules import REASONS, WITH_RUN, EventOutcome, EventSource, KeptEvent
from models.automation.inbox.store import inbox_event, inbox_outcome
from models.core.access.rules import Actor, Level
from models.core.base import Id, Input, InputId, JsonObject, Moment, Shape
from models.core.pagination import Listed, Page, PageRequest
from models.core.values import InputMoment
from runtime.clock import wire_timestamp
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError
from runtime.redaction import MAX_PATHS, REDACTED, redacted_paths

WINDOW = 10_000
"""Events that one page of a search, and one summary, looks through."""
GLANCE = 1_000
"""Events that a page without a search looks through."""
_MOST_OUTCOMES = 20
_MOST_OF_ONE = 500
_SUMMARY = ("id", "source", "subject_id", "payload_bytes", "received_at")
_event, _outcome = inbox_event.c, inbox_outcome.c


class EventOutcomeShape(Shape):
    """The outcome of an event for one automation, with its reason; a replay has one of its own.

    `detail` is the term of a filter with the value it met, the slot, or the like.
    """

    id: Id
    automation_id: Id
    automation_label: str
    outcome: EventOutcome
    reason: str
    run_id: Id | None
    detail: JsonObject | None
    replay: bool
    judged_at: Moment


class TriggerEventSummary(Shape):
    """An event that reached automations; `payloadBytes` is the size of its payload.

    `subjectId` is a database, form, data source or automation. Of the outcomes a list has 20.
    """

    id: Id
    source: EventSource
    subject_id: Id
    payload_bytes: int
    received_at: Moment
    outcomes: list[EventOutcomeShape]


class TriggerEventList(Listed):
    """A page of events, newest first. One that a filter has searched may end early, or be empty."""

    events: list[TriggerEventSummary]


class TriggerEventDetail(TriggerEventSummary):
    """One event with its payload, without credentials; a payload over 64 KiB is left out.

    `redactedPaths` are the places, 20 at most, where `[redacted]` is in place of what came. A
    replay has what came only where the automation has a run of the event.
    """

    payload: JsonObject | None
    redacted_paths: list[str]


class ReasonCount(Shape):
    """The events of an automation with one outcome; `eventId` is the newest of them."""

    outcome: EventOutcome
    reason: str
    events: int
    last_at: Moment
    event_id: Id


class WhyNot(Shape):
    """The outcomes of an automation's events since a moment, the most frequent first.

    Replays are not counted. `blocked` is the reason why no trigger starts it now. With
    `more`, only the newest 10,000 events and replays were looked at.
    """

    automation_id: Id
    since: Moment
    blocked: runnable_versions.Dormancy | None
    events: int
    runs: int
    more: bool
    reasons: list[ReasonCount]


class _Row(Protocol):
    id: Id
    source: str
    subject_id: Id
    payload_bytes: int
    received_at: datetime


class _CountRow(Protocol):
    outcome: str
    outcomes: int
    events: int
    last_at: datetime
    event_id: Id


class _OutcomeRow(Protocol):
    id: Id
    event_id: Id
    automation_id: Id
    automation_label: str
    outcome: str
    run_id: Id | None
    detail: JsonObject | None
    replay: bool
    judged_at: datetime


class EventQuery(Input):
    """The events that a list holds; `until` is not included."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    source: EventSource | None = None
    outcome: EventOutcome | None = None
    subject_id: InputId | None = None
    """A database, form, data source or automation."""
    since: InputMoment | None = None
    until: InputMoment | None = None
    text: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """A part of the payload, as it is written, in any case."""

    @property
    def wire(self) -> JsonObject:
        """The filters that are set, as JSON."""
        names = {*WorkspaceEventQuery.model_fields}
        values = self.model_dump(by_alias=True, exclude_none=True, include=names)
        return {
            name: wire_timestamp(one) if isinstance(one, datetime) else to_jsonable_python(one)
            for name, one in values.items()
        }

    def until_at_most(self, now: datetime) -> Self:
        """The same query, without what comes after a moment."""
        until = now + timedelta(milliseconds=1)
        return self.model_copy(
            update={"until": until if self.until is None else min(until, self.until)}
        )

    def judged(self) -> list[sa.ColumnElement[bool]]:
        """The conditions on outcomes."""
        return [] if self.outcome is None else [_outcome.outcome == self.outcome]

    def searches(self) -> list[sa.ColumnElement[bool]]:
        """The conditions on events that no index answers."""
        bounds = ((_event.source, self.source), (_event.subject_id, self.subject_id))
        conditions = [column == value for column, value in bounds if value is not None]
        return conditions if self.text is None else [*conditions, _contains(self.text)]


class WorkspaceEventQuery(EventQuery):
    """The events that a list of a whole workspace holds."""

    automation_id: InputId | None = None

    @override
    def judged(self) -> list[sa.ColumnElement[bool]]:
        if self.automation_id is None:
            return super().judged()
        return [*super().judged(), _outcome.automation_id == self.automation_id]


async def list_events(
    work: UnitOfWork, actor: Actor, page: PageRequest, query: WorkspaceEventQuery
) -> TriggerEventList:
    """The events that concerned automations which the actor sees, newest first.

    Raises NotFoundError for a filter by an automation that the actor does not see.
    """
    if query.automation_id is not None:
        await work.one(
            open_automations(actor, Level.VIEW).where(AUTOMATION.id == query.automation_id),
            "automation",
        )
    size = WINDOW if query.searches() else GLANCE
    # Read first: PostgreSQL would rather join all events than follow the index of these few.
    window = await work.rows(_window(actor, page, query, size), of=_Position)
    rows = await work.rows(
        _events_among(actor, query, [place.id for place in window])
        .order_by(_event.received_at.desc(), _event.id.desc())
        .limit(page.fetch),
        of=_Row,
    )
    events = page.of(rows, lambda row: (row.received_at, row.id))
    if events.cursor is None and len(window) == size:
        last = window[-1]
        events = Page(events.items, page.cursor_behind(last.received_at, last.id))
    outcomes = await _outcomes(work, actor, [row.id for row in events.items], _MOST_OUTCOMES)
    return TriggerEventList.of(
        events, lambda row: TriggerEventSummary(**_summary(row), outcomes=outcomes.get(row.id, []))
    )


def _events_among(actor: Actor, query: WorkspaceEventQuery, ids: Sequence[Id]) -> sa.Select[Any]:
    """The events of these ids that fit the query and concerned an automation the actor sees."""
    # By the limit each event is asked by the index, and never all outcomes for a join.
    visible_outcome = (
        sa.select(_outcome.id)
        .where(
            _outcome.workspace_id == actor.workspace_id,
            _outcome.event_id == _event.id,
            _outcome.automation_id.in_(open_automations(actor, Level.VIEW)),
            *query.judged(),
        )
        .limit(1)
        .scalar_subquery()
    )
    return sa.select(*(_event[name] for name in _SUMMARY)).where(
        _event.workspace_id == actor.workspace_id,
        _event.id == sa.any_(sa.literal(list(dict.fromkeys(ids)), sa.ARRAY(sa.Uuid))),
        visible_outcome.is_not(None),
        *query.searches(),
    )


class _Position(Protocol):
    received_at: datetime
    id: Id


def _window(
    actor: Actor, page: PageRequest, query: WorkspaceEventQuery, size: int
) -> sa.Select[Any]:
    """The newest events by what an index answers: their automation, their outcome, their time.

    One with several outcomes may be there several times.
    """
    judged = query.judged()
    table, event_id = (inbox_outcome, _outcome.event_id) if judged else (inbox_event, _event.id)
    moment = table.c.received_at
    conditions = [table.c.workspace_id == actor.workspace_id, *judged]
    if query.since is not None:
        conditions.append(moment >= query.since)
    if query.until is not None:
        conditions.append(moment < query.until)
    if page.after is not None:
        conditions.append(sa.tuple_(moment, event_id) < sa.tuple_(*page.after))
    return (
        sa.select(moment.label("received_at"), event_id.label("id"))
        .where(*conditions)
        .order_by(moment.desc(), event_id.desc())
        .limit(size)
    )


def _contains(text: str) -> sa.ColumnElement[bool]:
    """True of events with a text in their payload, in any case; it has no special signs."""
    payload = sa.func.lower(sa.cast(_event.payload, sa.Text))
    spellings = {text, json.dumps(text, ensure_ascii=False)[1:-1]}
    return sa.or_(
        *(sa.func.strpos(payload, sa.func.lower(sa.literal(one))) > 0 for one in sorted(spellings))
    )


async def get_event(work: UnitOfWork, actor: Actor, event_id: Id) -> TriggerEventDetail:
    """One event. Raises NotFoundError when it concerned no automation that the actor sees."""
    row = await find_event(work, actor, event_id)
    outcomes = await _outcomes(work, actor, [event_id], _MOST_OF_ONE)
    if event_id not in outcomes:
        raise NotFoundError("event")
    return TriggerEventDetail(
        **_summary(row),
        outcomes=outcomes[event_id],
        payload=row.payload,
        redacted_paths=redacted_paths(row.payload),
    )


async def find_event(work: UnitOfWork, actor: Actor, event_id: Id) -> KeptEvent:
    """The row of an event of the workspace. Raises NotFoundError."""
    this = _event.workspace_id == actor.workspace_id, _event.id == event_id
    return await work.one(sa.select(inbox_event).where(*this), "event", of=KeptEvent)


def concerned_events(actor: Actor, automation_id: Id, query: EventQuery) -> sa.Select[Any]:
    """The events of a query that concerned an automation, each once: `received_at` and `id`."""
    conditions = [
        _outcome.workspace_id == actor.workspace_id,
        _outcome.automation_id == automation_id,
        ~_outcome.replay,
        *query.judged(),
    ]
    if query.since is not None:
        conditions.append(_outcome.received_at >= query.since)
    if query.until is not None:
        conditions.append(_outcome.received_at < query.until)
    kept = sa.and_(_event.workspace_id == _outcome.workspace_id, _event.id == _outcome.event_id)
    return (
        sa.select(_event.received_at, _event.id)
        .select_from(inbox_outcome)
        .join(inbox_event, kept)
        .where(*conditions, *query.searches())
    )


MOST_EXAMINED = 1_000
"""Events whose payloads are searched for what was redacted: the newest."""


async def redacted_among(
    work: UnitOfWork, events: sa.Select[Any], automation_id: Id
) -> tuple[int, int, list[str]]:
    """The numbers of examined events and of events that would lack values, and the paths.

    The newest are examined. An event of which the automation has a run lacks nothing.
    """
    newest = (
        events.order_by(_event.received_at.desc(), _event.id.desc()).limit(MOST_EXAMINED).subquery()
    )
    has_run = sa.exists().where(
        _outcome.workspace_id == _event.workspace_id,
        _outcome.event_id == _event.id,
        _outcome.automation_id == automation_id,
        _outcome.run_id.is_not(None),
        ~_outcome.replay,
    )
    is_redacted = sa.func.strpos(sa.cast(_event.payload, sa.Text), REDACTED) > 0
    rows = await work.rows(
        sa.select(sa.case((sa.and_(is_redacted, ~has_run), _event.payload)).label("payload"))
        .select_from(newest)
        .join(inbox_event, _event.id == newest.c.id)
    )
    lacking = [row.payload for row in rows if row.payload is not None]
    paths = dict.fromkeys(path for payload in lacking for path in redacted_paths(payload))
    return len(rows), len(lacking), list(paths)[:MAX_PATHS]


async def runs_of_event(work: UnitOfWork, event: KeptEvent, automation_id: Id) -> Sequence[Id]:
    """The runs of an event by an automation, the first first; some may be deleted."""
    rows = await work.rows(
        sa.select(_outcome.run_id)
        .where(
            _outcome.workspace_id == event.workspace_id,
            _outcome.event_id == event.id,
            _outcome.automation_id == automation_id,
            _outcome.run_id.is_not(None),
        )
        .order_by(_outcome.replay, _outcome.judged_at)
        .limit(_MOST_OUTCOMES)
    )
    return [row.run_id for row in rows]


def _summary(row: _Row | KeptEvent) -> dict[str, Any]:
    return {name: getattr(row, name) for name in _SUMMARY}


async def _outcomes(
    work: UnitOfWork, actor: Actor, event_ids: Sequence[Id], most: int
) -> dict[Id, list[EventOutcomeShape]]:
    """The outcomes that the actor sees of some events, at most `most` of each, the first first."""
    if not event_ids:
        return {}
    place = sa.func.row_number().over(
        partition_by=_outcome.event_id, order_by=(_outcome.judged_at, _outcome.id)
    )
    numbered = (
        sa.select(inbox_outcome, AUTOMATION.label.label("automation_label"), place.label("place"))
        .join(*automation_of(inbox_outcome))
        .where(
            _outcome.workspace_id == actor.workspace_id,
            _outcome.event_id.in_(event_ids),
            _outcome.automation_id.in_(open_automations(actor, Level.VIEW)),
        )
        .subquery()
    )
    rows = await work.rows(
        sa.select(numbered).where(numbered.c.place <= most).order_by(numbered.c.place),
        of=_OutcomeRow,
    )
    shown: dict[Id, list[EventOutcomeShape]] = {}
    for row in rows:
        shown.setdefault(row.event_id, []).append(_shape(row))
    return shown


def _shape(row: _OutcomeRow) -> EventOutcomeShape:
    outcome = EventOutcome(row.outcome)
    return EventOutcomeShape(
        id=row.id,
        automation_id=row.automation_id,
        automation_label=row.automation_label,
        outcome=outcome,
        reason=REASONS[outcome],
        run_id=row.run_id,
        detail=row.detail,
        replay=row.replay,
        judged_at=row.judged_at,
    )


async def why_not(
    work: UnitOfWork, actor: Actor, automation_id: Id, since: InputMoment | None = None
) -> WhyNot:
    """The outcomes of an automation's events since a moment, by default of a day."""
    start = since or work.now - timedelta(days=1)
    newest = (
        sa.select(_outcome.outcome, _outcome.received_at, _outcome.event_id, _outcome.replay)
        .where(
            _outcome.workspace_id == actor.workspace_id,
            _outcome.automation_id == automation_id,
            _outcome.received_at >= start,
        )
        .order_by(_outcome.received_at.desc(), _outcome.event_id.desc())
        .limit(WINDOW)
        .subquery("newest")
    )
    events = sa.func.count().filter(~newest.c.replay)
    latest = sa.func.array_agg(
        aggregate_order_by(newest.c.event_id, newest.c.received_at.desc(), newest.c.event_id.desc())
    )
    rows = await work.rows(
        sa.select(
            newest.c.outcome,
            sa.func.count().label("outcomes"),
            events.label("events"),
            sa.func.max(newest.c.received_at).filter(~newest.c.replay).label("last_at"),
            latest.filter(~newest.c.replay)[1].label("event_id"),
        )
        .group_by(newest.c.outcome)
        .order_by(events.desc(), newest.c.outcome),
        of=_CountRow,
    )
    return WhyNot(
        automation_id=automation_id,
        since=start,
        blocked=await runnable_versions.blocked(work, actor, automation_id),
        events=sum(row.events for row in rows),
        runs=sum(row.events for row in rows if row.outcome in WITH_RUN),
        more=sum(row.outcomes for row in rows) >= WINDOW,
        reasons=[_counted(row) for row in rows if row.events],
    )


def _counted(row: _CountRow) -> ReasonCount:
    outcome = EventOutcome(row.outcome)
    return ReasonCount(
        outcome=outcome,
        reason=REASONS[outcome],
        events=row.events,
        last_at=row.last_at,
        event_id=row.event_id,
    )
