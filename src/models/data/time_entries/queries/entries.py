"""Reading time entries: one, the entries of a list, and the one that runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, Uuid, and_, bindparam, or_, select

from models.content.items import queries as items
from models.core.access.placement import Placement
from models.core.access.queries import WorkspaceOf
from models.core.access.rules import MANAGERS, Actor, Level
from models.core.base import Id
from models.core.pagination import PageRequest
from models.data.time_entries.rows import times_of
from models.data.time_entries.rules.kinds import EntryStatus, TargetKind
from models.data.time_entries.rules.times import milliseconds
from models.data.time_entries.shapes import (
    CurrentTimeEntry,
    TimeEntryDetail,
    TimeEntryList,
    TimeEntryState,
)
from models.data.time_entries.tables import TimeEntry, time_entry
from models.people.users.queries import display_name_of
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError
from runtime.prepared_statement import PreparedStatement

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
    found = await work.first(named_entries(workspace_id).where(_entry.id == entry_id), of=TimeEntry)
    if found is None:
        raise NotFoundError("entry")
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
