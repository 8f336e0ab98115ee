"""Reading time entries: one, lists, the running one, sums by day, user, target or field."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Protocol
from zoneinfo import ZoneInfo

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    FromClause,
    ScalarSelect,
    Select,
    Subquery,
    Text,
    Uuid,
    and_,
    bindparam,
    cast,
    func,
    literal,
    or_,
    select,
)
from sqlalchemy import column as sql_column
from sqlalchemy.dialects.postgresql import TSTZMULTIRANGE, Range, aggregate_order_by

from models.content.items import queries as items
from models.core.access.queries import WorkspaceOf
from models.core.access.rules import MANAGERS, Actor, Level, Placement
from models.core.base import Id
from models.core.pagination import PageRequest
from models.data.time_entries.rules import (
    EntryMode,
    EntryStatus,
    TargetKind,
    Times,
    duration_of,
    milliseconds,
    starts_of_days,
)
from models.data.time_entries.shapes import (
    CurrentTimeEntry,
    SummaryGroup,
    SummaryRow,
    TimeEntryDetail,
    TimeEntryList,
    TimeEntryState,
    TimeEntrySummary,
)
from models.data.time_entries.tables import TimeEntry, time_entry
from models.people.users import display_name_of
from runtime.database import UnitOfWork, columns_of
from runtime.postgresql.schema import Timestamp
from runtime.postgresql.statements import PreparedStatement

_entry = time_entry.c
_place = WorkspaceOf(_entry.id)
_OWN = PreparedStatement(
    select(_entry.user_id, _entry.item_id).where(
        _entry.workspace_id == bindparam("workspace_id", type_=Uuid),
        _entry.id == bindparam("id", type_=Uuid),
        _entry.deleted_at.is_(None),
    )
)


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """The filter of a list; the moments bound when entries began, `until` not included."""

    user_id: Id | None = None
    target_kind: TargetKind | None = None
    target_id: Id | None = None
    database_id: Id | None = None
    field_id: Id | None = None
    status: EntryStatus | None = None
    since: datetime | None = None
    until: datetime | None = None

    @property
    def conditions(self) -> list[ColumnElement[bool]]:
        """The conditions that rows must meet."""
        names = ("user_id", "target_kind", "target_id", "database_id", "field_id", "status")
        wanted = ((name, getattr(self, name)) for name in names)
        found = [_entry[name] == value for name, value in wanted if value is not None]
        if self.since is not None:
            found.append(_entry.started_at >= self.since)
        if self.until is not None:
            found.append(_entry.started_at < self.until)
        return found


async def visible(
    work: UnitOfWork, workspace_ids: Sequence[Id], entry_id: Id, user_id: Id
) -> Placement | None:
    """The placement of an entry: everybody sees their own, others who see what it is for.

    What is in the trash, or gone for good, is seen by nobody but owners and administrators.
    """
    place = await _place(work, workspace_ids, entry_id, user_id)
    if place is None:
        return None
    row = await _OWN.first(work, {"workspace_id": place.workspace_id, "id": entry_id})
    if row is None:
        return None
    if row.user_id == user_id:
        return Placement(place.workspace_id, granted=Level.MANAGE)
    if row.item_id is None:
        return place
    item = await items.placement(work, [place.workspace_id], row.item_id, user_id)
    return item or Placement(place.workspace_id, row.item_id, restricted=True)


def sees(actor: Actor) -> ColumnElement[bool]:
    """The condition that an actor sees an entry, as `visible` says."""
    shown = _entry.deleted_at.is_(None)
    if actor.role in MANAGERS:
        return shown
    by_role: ColumnElement[bool] = _entry.item_id.is_(None)
    seen = items.open_items(actor)
    return and_(shown, or_(_entry.user_id == actor.user_id, by_role, _entry.item_id.in_(seen)))


def named_entries(workspace_id: Id) -> Select[Any]:
    """The entries of a workspace, each with the name of its user."""
    name = display_name_of(_entry.user_id).label("user_display_name")
    return select(time_entry, name).where(_entry.workspace_id == workspace_id)


async def get_entry(work: UnitOfWork, workspace_id: Id, entry_id: Id) -> TimeEntryState:
    """An entry. Raises `NotFoundError`."""
    found = await work.one(
        named_entries(workspace_id).where(_entry.id == entry_id), "entry", of=TimeEntry
    )
    return state_of(found, work.now)


async def list_entries(
    work: UnitOfWork, actor: Actor, page: PageRequest, entry_filter: EntryFilter
) -> TimeEntryList:
    """The entries that the actor sees; the one that began last comes first."""
    statement = named_entries(actor.workspace_id).where(sees(actor), *entry_filter.conditions)
    shown = await page.descending(work, statement, _entry.started_at, _entry.id, of=TimeEntry)
    return TimeEntryList(
        entries=[detail_of(row) for row in shown.items], cursor=shown.cursor, server_time=work.now
    )


async def current_entry(work: UnitOfWork, actor: Actor) -> CurrentTimeEntry:
    """The actor's entry that runs, else the one they paused last."""
    status = [EntryStatus.ACTIVE.value, EntryStatus.PAUSED.value]
    own = (_entry.user_id == actor.user_id, _entry.status.in_(status))
    # The active one first, for it has no paused_at.
    latest = named_entries(actor.workspace_id).where(*own).order_by(_entry.paused_at.desc())
    found = await work.first(latest.limit(1), of=TimeEntry)
    if found is None:
        return CurrentTimeEntry(entry=None, server_time=work.now, authoritative_elapsed_ms=None)
    state = state_of(found, work.now)
    return CurrentTimeEntry(
        entry=state.entry,
        server_time=state.server_time,
        authoritative_elapsed_ms=state.authoritative_elapsed_ms,
    )


def detail_of(row: TimeEntry) -> TimeEntryDetail:
    """A row with the name of its user, as the interface shows it."""
    return TimeEntryDetail.model_validate(row)


def state_of(row: TimeEntry, now: datetime) -> TimeEntryState:
    """A row, and the time it has taken."""
    return TimeEntryState(
        entry=detail_of(row),
        server_time=now,
        authoritative_elapsed_ms=milliseconds(times_of(row).elapsed(now)),
    )


_KEYS: Mapping[SummaryGroup, tuple[str, ...]] = {
    SummaryGroup.DAY: ("day",),
    SummaryGroup.USER: ("user_id",),
    SummaryGroup.TARGET: ("target_kind", "target_id"),
    SummaryGroup.FIELD: ("field_id",),
}
_TITLES: Mapping[SummaryGroup, tuple[str, str]] = {
    SummaryGroup.TARGET: ("target_title", "target_title_snapshot"),
    SummaryGroup.FIELD: ("field_label", "field_label_snapshot"),
}
"""The name of a group's title, and the column whose newest value it is."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The key that is added up by, and the days of a zone it is added up for."""

    group_by: SummaryGroup
    zone: ZoneInfo
    first: date
    last: date


class _Sums(Protocol):
    """A group, with the totals of all."""

    total_duration_ms: int
    total_open_ms: int


async def summarize(
    work: UnitOfWork,
    actor: Actor,
    page: PageRequest,
    entry_filter: EntryFilter,
    request: Asked,
) -> TimeEntrySummary:
    """The time of the entries that the actor sees, day by day newest first, else longest first."""
    group_by, zone = request.group_by, request.zone
    spans = _days(request)
    sums = _sums(_counted(actor, entry_filter, spans, work.now), group_by)
    order = (*(() if group_by is SummaryGroup.DAY else ("duration_ms",)), *_KEYS[group_by])
    columns = [sums.c[name] for name in order]
    result = await page.descending(work, _named(sums, group_by), *columns, of=_Sums)
    totals = result.items[0] if result.items else None
    return TimeEntrySummary(
        group_by=group_by,
        timezone=zone.key,
        first_day=request.first.isoformat(),
        last_day=request.last.isoformat(),
        groups=[SummaryRow.model_validate({**_NOTHING, **columns_of(row)}) for row in result.items],
        total_duration_ms=0 if totals is None else totals.total_duration_ms,
        total_open_ms=0 if totals is None else totals.total_open_ms,
        cursor=result.cursor,
        server_time=work.now,
    )


_NOTHING = dict.fromkeys(SummaryRow.model_fields)


def _days(request: Asked) -> FromClause:
    """The days as spans with their names, or all of them as one span."""
    bounds = starts_of_days(request.first, request.last, request.zone)
    if request.group_by is not SummaryGroup.DAY:
        bounds = [bounds[0], bounds[-1]]
    names = [request.first + timedelta(days=place) for place in range(len(bounds) - 1)]
    return (
        func.unnest(
            literal([name.isoformat() for name in names], ARRAY(Text)),
            literal(bounds[:-1], ARRAY(Timestamp)),
            literal(bounds[1:], ARRAY(Timestamp)),
        )
        .table_valued(
            sql_column("day", Text),
            sql_column("begins", Timestamp),
            sql_column("ends", Timestamp),
        )
        .render_derived(name="days")
    )


def _counted(actor: Actor, entry_filter: EntryFilter, spans: FromClause, now: datetime) -> Subquery:
    """The time that each entry took of each span, in milliseconds."""
    day_span = span(spans.c.begins, spans.c.ends)
    took = worked(now)
    stop = func.coalesce(_entry.ended_at, _entry.paused_at, literal(now, Timestamp))
    return (
        select(
            *(_entry.id, _entry.user_id, _entry.target_kind, _entry.target_id, _entry.field_id),
            *(_entry.target_title_snapshot, _entry.field_label_snapshot, _entry.started_at),
            (_entry.status == EntryStatus.COMPLETED).label("completed"),
            spans.c.day,
            milliseconds_of(in_common(took, day_span)).label("ms"),
        )
        .select_from(time_entry)
        .join(spans, (_entry.started_at < spans.c.ends) & (stop > spans.c.begins))
        .where(
            _entry.workspace_id == actor.workspace_id,
            _entry.status != EntryStatus.DISCARDED,
            sees(actor),
            *entry_filter.conditions,
        )
        .subquery("counted")
    )


def _sums(times: Subquery, group_by: SummaryGroup) -> Subquery:
    """The time of each group, and beside it that of all groups."""
    keys = [times.c[name] for name in _KEYS[group_by]]
    columns: list[ColumnElement[Any]] = [
        _total(times.c.ms, times.c.completed).label("duration_ms"),
        _total(times.c.ms, ~times.c.completed).label("open_ms"),
        func.count(times.c.id.distinct()).label("entry_count"),
    ]
    if group_by in _TITLES:
        name, snapshot = _TITLES[group_by]
        newest = aggregate_order_by(times.c[snapshot], times.c.started_at.desc())
        columns.append(func.array_agg(newest, type_=ARRAY(Text)).label(name))
    grouped = (
        select(*keys, *columns)
        .where(keys[-1].is_not(None), times.c.ms > 0)
        .group_by(*keys)
        .subquery("grouped")
    )
    totals = (
        cast(func.sum(grouped.c[f"{name}_ms"]).over(), BigInteger).label(f"total_{name}_ms")
        for name in ("duration", "open")
    )
    named = ((one[1] if isinstance(one.type, ARRAY) else one).label(one.key) for one in grouped.c)
    return select(*named, *totals).subquery("sums")


def _total(ms: ColumnElement[Any], condition: ColumnElement[bool]) -> ColumnElement[Any]:
    return cast(func.coalesce(func.sum(ms).filter(condition), 0), BigInteger)


def _named(sums: Subquery, group_by: SummaryGroup) -> Select[Any]:
    if group_by is not SummaryGroup.USER:
        return select(sums)
    return select(*sums.c, display_name_of(sums.c.user_id).label("user_display_name"))


_SPANS = TSTZMULTIRANGE()


def worked(now: datetime) -> ColumnElement[Any]:
    """The time that an entry counts, until it ended or until now: a multirange."""
    moment = literal(now, Timestamp)
    running = func.least(moment, _entry.due_at)
    stop = func.coalesce(_entry.ended_at, _entry.paused_at, running)
    whole = span(_entry.started_at, func.greatest(stop, _entry.started_at))
    return whole.op("-", return_type=_SPANS)(_entry.pauses)


def span(start: ColumnElement[Any], end: ColumnElement[Any]) -> ColumnElement[Any]:
    """One span as a multirange."""
    return func.tstzmultirange(func.tstzrange(start, end), type_=_SPANS)


def spans_of(times: Times, now: datetime) -> ColumnElement[Any]:
    """The time that times at hand count: the same as `worked` says of a row."""
    whole = literal([Range(times.started_at, times.stop(now))], _SPANS)
    pauses = literal([Range(start, end) for start, end in times.pauses], _SPANS)
    return whole.op("-", return_type=_SPANS)(pauses)


def in_common(first: ColumnElement[Any], second: ColumnElement[Any]) -> ColumnElement[Any]:
    """The time that two multiranges share."""
    return first.op("*", return_type=_SPANS)(second)


def milliseconds_of(spans: ColumnElement[Any]) -> ScalarSelect[int]:
    """The length of a multirange, as a scalar."""
    each = func.unnest(spans).column_valued("span")
    length = func.extract("epoch", func.upper(each) - func.lower(each))
    return select(cast(func.coalesce(func.sum(length) * 1_000, 0), BigInteger)).scalar_subquery()


def times_of(row: TimeEntry) -> Times:
    """The times of an entry."""
    return Times(
        started_at=row.started_at,
        mode=EntryMode(row.mode),
        target=duration_of(row.target_duration_ms),
        paused_at=row.paused_at,
        ended_at=row.ended_at,
        pauses=tuple((span.lower, span.upper) for span in row.pauses),
    )


def values_of(times: Times) -> dict[str, Any]:
    """The columns that hold times."""
    return {
        "started_at": times.started_at,
        "ended_at": times.ended_at,
        "paused_at": times.paused_at,
        "due_at": times.due_at,
        "pauses": [Range(start, end) for start, end in times.pauses],
        "accumulated_paused_ms": milliseconds(times.paused),
        "target_duration_ms": None if times.target is None else milliseconds(times.target),
    }
