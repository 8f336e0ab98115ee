"""Adding up time entries by day, user, target or field (decisions C16)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Protocol
from zoneinfo import ZoneInfo

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    FromClause,
    Select,
    Subquery,
    Text,
    cast,
    func,
    literal,
    select,
)
from sqlalchemy import column as sql_column
from sqlalchemy.dialects.postgresql import aggregate_order_by

from models.core.access.rules import Actor
from models.core.pagination import PageRequest
from models.data.time_entries.queries.entries import EntryFilter, sees
from models.data.time_entries.queries.spans import in_common, milliseconds_of, span, worked
from models.data.time_entries.rules.days import starts
from models.data.time_entries.rules.kinds import EntryStatus
from models.data.time_entries.shapes import SummaryGroup, SummaryRow, TimeEntrySummary
from models.data.time_entries.tables import time_entry
from models.people.users.queries import display_name_of
from runtime.database import UnitOfWork, columns_of
from runtime.schema import Timestamp

_entry = time_entry.c
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
    bounds = starts(request.first, request.last, request.zone)
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
