"""Reading time entries: one, lists, the running one, sums by day, user, target or field."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Protocol
from zoneinfo import ZoneInfo

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import TSTZMULTIRANGE, Range, aggregate_order_by

from models.content.items import queries as items
from models.core.access.queries import WorkspaceOf
from models.core.access.rules import MANAGERS, Actor, Level, Placement
from models.core.base import Id
from models.core.pagination import PageRequest
from models.data.time_entries import rules, shapes
from models.data.time_entries.tables import TimeEntry, time_entry
from models.people.users import display_name_of
from runtime.database import UnitOfWork, columns_of
from runtime.postgresql.schema import Timestamp
from runtime.postgresql.statements import PreparedStatement

_entry = time_entry.c
_place = WorkspaceOf(_entry.id)
_OWN = PreparedStatement(
    sa.select(_entry.user_id, _entry.item_id).where(
        _entry.workspace_id == sa.bindparam("workspace_id", type_=sa.Uuid),
        _entry.id == sa.bindparam("id", type_=sa.Uuid),
        _entry.deleted_at.is_(None),
    )
)


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """The filter of a list; the moments bound when entries began, `until` not included."""

    user_id: Id | None = None
    target_kind: rules.TargetKind | None = None
    target_id: Id | None = None
    database_id: Id | None = None
    field_id: Id | None = None
    status: rules.EntryStatus | None = None
    since: datetime | None = None
    until: datetime | None = None

    @property
    def conditions(self) -> list[sa.ColumnElement[bool]]:
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
    """The placement of an entry: everyone sees their own, others who see what it is for.

    What is in the trash, or gone for good, is seen by no one but owners and administrators.
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


def sees(actor: Actor) -> sa.ColumnElement[bool]:
    """The condition that an actor sees an entry, as `visible` says."""
    is_open = _entry.deleted_at.is_(None)
    if actor.role in MANAGERS:
        return is_open
    by_role: sa.ColumnElement[bool] = _entry.item_id.is_(None)
    seen = items.open_items(actor)
    return sa.and_(
        is_open, sa.or_(_entry.user_id == actor.user_id, by_role, _entry.item_id.in_(seen))
    )


def named_entries(workspace_id: Id) -> sa.Select[Any]:
    """The entries of a workspace, each with the name of its user."""
    name = display_name_of(_entry.user_id).label("user_display_name")
    return sa.select(time_entry, name).where(_entry.workspace_id == workspace_id)


async def get_entry(work: UnitOfWork, workspace_id: Id, entry_id: Id) -> shapes.TimeEntryState:
    """An entry. Raises `NotFoundError`."""
    found = await work.one(
        named_entries(workspace_id).where(_entry.id == entry_id), "entry", of=TimeEntry
    )
    return state_of(found, work.now)


async def list_entries(
    work: UnitOfWork, actor: Actor, page: PageRequest, entry_filter: EntryFilter
) -> shapes.TimeEntryList:
    """The entries that the actor sees; the one that began last comes first."""
    statement = named_entries(actor.workspace_id).where(sees(actor), *entry_filter.conditions)
    shown = await page.descending(work, statement, _entry.started_at, _entry.id, of=TimeEntry)
    return shapes.TimeEntryList(
        entries=[detail_of(row) for row in shown.items], cursor=shown.cursor, server_time=work.now
    )


async def current_entry(work: UnitOfWork, actor: Actor) -> shapes.CurrentTimeEntry:
    """The actor's entry that runs, else the one they paused last."""
    status = [rules.EntryStatus.ACTIVE.value, rules.EntryStatus.PAUSED.value]
    own = (_entry.user_id == actor.user_id, _entry.status.in_(status))
    # The active one first, for it has no paused_at.
    latest = named_entries(actor.workspace_id).where(*own).order_by(_entry.paused_at.desc())
    found = await work.first(latest.limit(1), of=TimeEntry)
    if found is None:
        return shapes.CurrentTimeEntry(
            entry=None, server_time=work.now, authoritative_elapsed_ms=None
        )
    state = state_of(found, work.now)
    return shapes.CurrentTimeEntry(
        entry=state.entry,
        server_time=state.server_time,
        authoritative_elapsed_ms=state.authoritative_elapsed_ms,
    )


def detail_of(row: TimeEntry) -> shapes.TimeEntryDetail:
    """A row with the name of its user, as the interface shows it."""
    return shapes.TimeEntryDetail.model_validate(row)


def state_of(row: TimeEntry, now: datetime) -> shapes.TimeEntryState:
    """A row, and the time it has taken."""
    return shapes.TimeEntryState(
        entry=detail_of(row),
        server_time=now,
        authoritative_elapsed_ms=rules.milliseconds(times_of(row).elapsed(now)),
    )


_KEYS: Mapping[shapes.SummaryGroup, tuple[str, ...]] = {
    shapes.SummaryGroup.DAY: ("day",),
    shapes.SummaryGroup.USER: ("user_id",),
    shapes.SummaryGroup.TARGET: ("target_kind", "target_id"),
    shapes.SummaryGroup.FIELD: ("field_id",),
}
_TITLES: Mapping[shapes.SummaryGroup, tuple[str, str]] = {
    shapes.SummaryGroup.TARGET: ("target_title", "target_title_snapshot"),
    shapes.SummaryGroup.FIELD: ("field_label", "field_label_snapshot"),
}
"""The name of a group's title, and the column whose newest value it is."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The key that is added up by, and the days of a zone it is added up for."""

    group_by: shapes.SummaryGroup
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
) -> shapes.TimeEntrySummary:
    """The time of the entries that the actor sees, day by day newest first, else longest first."""
    group_by, zone = request.group_by, request.zone
    spans = _days(request)
    sums = _sums(_counted(actor, entry_filter, spans, work.now), group_by)
    order = (*(() if group_by is shapes.SummaryGroup.DAY else ("duration_ms",)), *_KEYS[group_by])
    columns = [sums.c[name] for name in order]
    result = await page.descending(work, _named(sums, group_by), *columns, of=_Sums)
    totals = result.items[0] if result.items else None
    return shapes.TimeEntrySummary(
        group_by=group_by,
        timezone=zone.key,
        first_day=request.first.isoformat(),
        last_day=request.last.isoformat(),
        groups=[
            shapes.SummaryRow.model_validate({**_NOTHING, **columns_of(row)})
            for row in result.items
        ],
        total_duration_ms=0 if totals is None else totals.total_duration_ms,
        total_open_ms=0 if totals is None else totals.total_open_ms,
        cursor=result.cursor,
        server_time=work.now,
    )


_NOTHING = dict.fromkeys(shapes.SummaryRow.model_fields)


def _days(request: Asked) -> sa.FromClause:
    """The days as spans with their names, or all of them as one span."""
    bounds = rules.starts_of_days(request.first, request.last, request.zone)
    if request.group_by is not shapes.SummaryGroup.DAY:
        bounds = [bounds[0], bounds[-1]]
    names = [request.first + timedelta(days=place) for place in range(len(bounds) - 1)]
    return (
        sa.func.unnest(
            sa.literal([name.isoformat() for name in names], sa.ARRAY(sa.Text)),
            sa.literal(bounds[:-1], sa.ARRAY(Timestamp)),
            sa.literal(bounds[1:], sa.ARRAY(Timestamp)),
        )
        .table_valued(
            sa.column("day", sa.Text),
            sa.column("begins", Timestamp),
            sa.column("ends", Timestamp),
        )
        .render_derived(name="days")
    )


def _counted(
    actor: Actor, entry_filter: EntryFilter, spans: sa.FromClause, now: datetime
) -> sa.Subquery:
    """The time that each entry took of each span, in milliseconds."""
    day_span = span(spans.c.begins, spans.c.ends)
    took = worked(now)
    stop = sa.func.coalesce(_entry.ended_at, _entry.paused_at, sa.literal(now, Timestamp))
    return (
        sa.select(
            *(_entry.id, _entry.user_id, _entry.target_kind, _entry.target_id, _entry.field_id),
            *(_entry.target_title_snapshot, _entry.field_label_snapshot, _entry.started_at),
            (_entry.status == rules.EntryStatus.COMPLETED).label("completed"),
            spans.c.day,
            milliseconds_of(in_common(took, day_span)).label("ms"),
        )
        .select_from(time_entry)
        .join(spans, (_entry.started_at < spans.c.ends) & (stop > spans.c.begins))
        .where(
            _entry.workspace_id == actor.workspace_id,
            _entry.status != rules.EntryStatus.DISCARDED,
            sees(actor),
            *entry_filter.conditions,
        )
        .subquery("counted")
    )


def _sums(times: sa.Subquery, group_by: shapes.SummaryGroup) -> sa.Subquery:
    """The time of each group, and beside it that of all groups."""
    keys = [times.c[name] for name in _KEYS[group_by]]
    columns: list[sa.ColumnElement[Any]] = [
        _total(times.c.ms, times.c.completed).label("duration_ms"),
        _total(times.c.ms, ~times.c.completed).label("open_ms"),
        sa.func.count(times.c.id.distinct()).label("entry_count"),
    ]
    if group_by in _TITLES:
        name, snapshot = _TITLES[group_by]
        newest = aggregate_order_by(times.c[snapshot], times.c.started_at.desc())
        columns.append(sa.func.array_agg(newest, type_=sa.ARRAY(sa.Text)).label(name))
    grouped = (
        sa.select(*keys, *columns)
        .where(keys[-1].is_not(None), times.c.ms > 0)
        .group_by(*keys)
        .subquery("grouped")
    )
    totals = (
        sa.cast(sa.func.sum(grouped.c[f"{name}_ms"]).over(), sa.BigInteger).label(
            f"total_{name}_ms"
        )
        for name in ("duration", "open")
    )
    named = (
        (one[1] if isinstance(one.type, sa.ARRAY) else one).label(one.key) for one in grouped.c
    )
    return sa.select(*named, *totals).subquery("sums")


def _total(ms: sa.ColumnElement[Any], condition: sa.ColumnElement[bool]) -> sa.ColumnElement[Any]:
    return sa.cast(sa.func.coalesce(sa.func.sum(ms).filter(condition), 0), sa.BigInteger)


def _named(sums: sa.Subquery, group_by: shapes.SummaryGroup) -> sa.Select[Any]:
    if group_by is not shapes.SummaryGroup.USER:
        return sa.select(sums)
    return sa.select(*sums.c, display_name_of(sums.c.user_id).label("user_display_name"))


_SPANS = TSTZMULTIRANGE()


def worked(now: datetime) -> sa.ColumnElement[Any]:
    """The time that an entry counts, until it ended or until now: a multirange."""
    moment = sa.literal(now, Timestamp)
    running = sa.func.least(moment, _entry.due_at)
    stop = sa.func.coalesce(_entry.ended_at, _entry.paused_at, running)
    whole = span(_entry.started_at, sa.func.greatest(stop, _entry.started_at))
    return whole.op("-", return_type=_SPANS)(_entry.pauses)


def span(start: sa.ColumnElement[Any], end: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """One span as a multirange."""
    return sa.func.tstzmultirange(sa.func.tstzrange(start, end), type_=_SPANS)


def spans_of(times: rules.Times, now: datetime) -> sa.ColumnElement[Any]:
    """The time that times at hand count: the same as `worked` says of a row."""
    whole = sa.literal([Range(times.started_at, times.stop(now))], _SPANS)
    pauses = sa.literal([Range(start, end) for start, end in times.pauses], _SPANS)
    return whole.op("-", return_type=_SPANS)(pauses)


def in_common(first: sa.ColumnElement[Any], second: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """The time that two multiranges share."""
    return first.op("*", return_type=_SPANS)(second)


def milliseconds_of(spans: sa.ColumnElement[Any]) -> sa.ScalarSelect[int]:
    """The length of a multirange, as a scalar."""
    each = sa.func.unnest(spans).column_valued("span")
    length = sa.func.extract("epoch", sa.func.upper(each) - sa.func.lower(each))
    return sa.select(
        sa.cast(sa.func.coalesce(sa.func.sum(length) * 1_000, 0), sa.BigInteger)
    ).scalar_subquery()


def times_of(row: TimeEntry) -> rules.Times:
    return rules.Times(
        started_at=row.started_at,
        mode=rules.EntryMode(row.mode),
        target=rules.duration_of(row.target_duration_ms),
        paused_at=row.paused_at,
        ended_at=row.ended_at,
        pauses=tuple((span.lower, span.upper) for span in row.pauses),
    )


def values_of(times: rules.Times) -> dict[str, Any]:
    """The columns that hold times."""
    return {
        "started_at": times.started_at,
        "ended_at": times.ended_at,
        "paused_at": times.paused_at,
        "due_at": times.due_at,
        "pauses": [Range(start, end) for start, end in times.pauses],
        "accumulated_paused_ms": rules.milliseconds(times.paused),
        "target_duration_ms": None if times.target is None else rules.milliseconds(times.target),
    }
