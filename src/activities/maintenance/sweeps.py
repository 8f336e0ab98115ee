"""Sweeps: expired rows and objects go, sums, incidents and alert rules are brought up to date.

What works with objects of the store removes them when it ends. A process that dies, an execution
that is terminated, and the purge of a workspace leave some. The key of each says which row it is
for."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import TypeAlias

from temporalio import activity

from activities.data_source_runs.inputs import PAGES
from activities.heartbeats import heartbeats
from activities.jobs.exports import PARTS
from activities.parts import Periods
from models.automation.action_runs.tables import purge_action_runs
from models.automation.alert_rules.commands import evaluate_rules
from models.automation.alert_rules.queries import purge_firings
from models.automation.automation_runs.tables import purge_runs
from models.automation.inbox.store import purge_inbox
from models.automation.incidents.closing import close_recovered
from models.automation.incidents.tables import purge_incidents
from models.automation.run_operations.queries import purge_operations
from models.automation.run_statistics import purge_sums, settle_runs
from models.automation.webhooks.commands import purge_receipts
from models.content.files.commands import OBJECTS as FILES
from models.content.files.commands import UPLOAD_TIME, keys_of_files, purge_files, purge_trash
from models.core.base import Id
from models.core.idempotency import purge_replies
from models.data.forms.queries import purge_quotas
from models.data.records.commands import purge_records
from models.data.records.queries import merge_counts
from models.data.time_entries.writes import purge_discarded
from models.messages.deliveries.lines import purge_deliveries
from models.messages.jobs.store import open_jobs, purge_jobs
from models.messages.realtime import purge_tabs, purge_tickets
from models.messages.webhook_endpoints.deliveries import expire_untold
from models.messages.workspace_events.log import purge_events
from models.people.credentials import purge_sessions
from models.people.experiments.commands import purge_units
from models.people.request_logs import purge_request_logs
from models.sources.authorizations.store import purge_authorizations
from models.sources.data_source_runs.tables import (
    open_runs,
    purge_data_source_runs,
    purge_rejections,
)
from models.sources.data_sources.commands import purge_previews
from models.sources.provider_calls import purge_calls, purge_mirror
from models.workspace.bundles.unpacking import UNPACKED
from models.workspace.changes.commands import expire_changes, purge_changes
from models.workspace.legacy_imports.commands import OBJECTS as BUNDLES
from models.workspace.legacy_imports.executions import purge_legacy_imports
from models.workspace.legacy_imports.queries import known_runs, named_bundles
from models.workspace.system import merge_ended_work
from models.workspace.usage import settle_totals
from runtime.clock import utc_now
from runtime.database import Database, UnitOfWork
from runtime.object_store import PROBES, ObjectStore

_Needed: TypeAlias = Callable[[UnitOfWork, Collection[str]], Awaitable[Collection[str]]]
"""The keys among these that something needs."""
_NeededIds: TypeAlias = Callable[[UnitOfWork, Collection[Id]], Awaitable[Collection[Id]]]


async def _by_id(
    needed: _NeededIds, place: int, work: UnitOfWork, object_keys: Collection[str]
) -> Collection[str]:
    """The keys whose part at a place is the id of something that is needed.

    A key of another form is not ours, so it stays.
    """
    keys_by_id: dict[Id, list[str]] = {}
    foreign_keys: list[str] = []
    for key in object_keys:
        try:
            keys_by_id.setdefault(Id(key.split("/")[place]), []).append(key)
        except (IndexError, ValueError):
            foreign_keys.append(key)
    found = await needed(work, keys_by_id) if keys_by_id else ()
    return {*foreign_keys, *(key for each in found for key in keys_by_id[each])}


async def _none(_work: UnitOfWork, _keys: Collection[str]) -> Collection[str]:
    return ()


_NEEDED: Mapping[str, _Needed] = {
    FILES: keys_of_files,
    PAGES: partial(_by_id, open_runs, 2),
    PARTS: partial(_by_id, open_jobs, 2),
    # A run that ended may be tried again with them until its row is purged.
    UNPACKED: partial(_by_id, known_runs, 1),
    BUNDLES: named_bundles,
    PROBES: _none,
}
"""The objects that are needed, by the prefix of their keys."""


async def sweep_orphans(database: Database, store: ObjectStore, now: datetime) -> int:
    """Remove objects that are a day old and belong to nothing; returns their number.

    Such an object is what is left of an upload or of work whose process died, or whose commit had
    no answer.
    """
    count = 0
    before = now - UPLOAD_TIME
    await store.drop_unfinished(before)
    for prefix, needed in _NEEDED.items():
        async for object_keys in store.older_than(prefix, before):
            if not object_keys:
                continue
            async with database.reading() as work:
                orphans = {*object_keys} - {*await needed(work, object_keys)}
            for key in orphans:
                await store.delete(key)
            count += len(orphans)
    return count


_MARGIN = timedelta(hours=1)
"""More than promised, for clocks that differ and for restores that begin at the last moment."""


class Expired(StrEnum):
    """The kinds that can be past their time. Files precede items, which wait for them."""

    FILES = "files"
    ITEMS = "items"
    RECORDS = "records"
    TIME_ENTRIES = "time entries"
    REPLIES = "replies"
    REQUEST_LOGS = "request logs"
    JOBS = "jobs"
    RUNS = "runs"


class RetentionActivities:
    """The activities of a sweep."""

    def __init__(self, database: Database, store: ObjectStore, periods: Periods) -> None:
        self._database = database
        self._store = store
        self._periods = periods

    @activity.defn(name="purge_expired")
    async def purge(self, kind: Expired) -> int:
        """Remove a batch; returns the number of rows, 0 when nothing is left. Safe to repeat.

        A pause as long as the batch follows, which is left to requests.
        """
        async with heartbeats():
            started = time.monotonic()
            removed = await self._batch(kind)
            if removed:
                await asyncio.sleep(time.monotonic() - started)
            return removed

    async def _batch(self, kind: Expired) -> int:
        if kind is Expired.FILES:
            # It has a transaction of its own: objects are removed after their rows are committed as
            # removed.
            return await purge_files(self._database, self._store, self._emptied(utc_now()))
        async with self._database.transaction() as work:
            removed = await self._rows(work, kind)
        if removed or kind is not Expired.RUNS:
            return removed
        before = utc_now() - self._periods.runs
        return await purge_legacy_imports(self._database, self._store, before)

    async def _rows(self, work: UnitOfWork, what: Expired) -> int:
        match what:
            case Expired.ITEMS:
                return await purge_trash(work, self._emptied(work.now))
            case Expired.RECORDS:
                return await purge_records(work, self._emptied(work.now))
            case Expired.TIME_ENTRIES:
                return await purge_discarded(work, self._emptied(work.now))
            case Expired.REPLIES:
                return (
                    await purge_replies(work)
                    or await purge_receipts(work)
                    or await purge_quotas(work)
                    or await purge_mirror(work)
                    or await purge_calls(work)
                    or await purge_previews(work)
                    or await purge_authorizations(work)
                    or await purge_tickets(work)
                    or await purge_tabs(work)
                    or await purge_sessions(work)
                )
            case Expired.REQUEST_LOGS:
                before = work.now - self._periods.request_logs
                return (
                    await purge_request_logs(work, before)
                    or await expire_untold(work, before)
                    or await purge_events(work, before)
                    or await purge_inbox(work, work.now - self._periods.inbox)
                )
            case Expired.JOBS:
                before = work.now - self._periods.jobs
                return (
                    await purge_jobs(work, before)
                    or await purge_deliveries(work, before)
                    or await expire_changes(work)
                    or await purge_changes(work, before)
                )
            case Expired.RUNS:
                return await _purge_runs(work, work.now - self._periods.runs)
            case _:
                raise AssertionError(what)

    def _emptied(self, now: datetime) -> datetime:
        """The time before which everything deleted goes."""
        return now - self._periods.trash - _MARGIN

    @activity.defn(name="remove_orphaned_objects")
    async def remove_orphans(self) -> int:
        """Remove objects that belong to nothing; returns their number. Safe to repeat."""
        async with heartbeats():
            return await sweep_orphans(self._database, self._store, utc_now())


async def _purge_runs(work: UnitOfWork, before: datetime) -> int:
    """Remove what ended before a moment, and the sums that are past their own time."""
    return (
        await purge_runs(work, before)
        or await purge_sums(work)
        or await purge_operations(work, before)
        or await purge_incidents(work, before)
        or await purge_firings(work, before)
        or await purge_action_runs(work, before)
        or await purge_rejections(work)
        or await purge_data_source_runs(work, before)
        or await purge_units(work, before)
    )


MOST_TURNS = 50
"""Transactions of one sweep; the next one continues."""


class UsageMaintenance:
    """Keeps the totals of workspaces near the present."""

    def __init__(self, database: Database, counted_attributes: Mapping[str, Sequence[str]]) -> None:
        self._database = database
        self._counted_attributes = counted_attributes

    @activity.defn(name="settle_usage")
    async def settle_usage(self) -> dict[str, int]:
        """Bring totals up to date. Safe to repeat: a total continues from its own position."""
        sweeps: Mapping[str, Callable[[UnitOfWork], Awaitable[int]]] = {
            "workspaces": settle_totals,
            "databases": merge_counts,
            "runs": partial(settle_runs, counted_attributes=self._counted_attributes),
            "ended_work": merge_ended_work,
            "incidents": close_recovered,
            "alerts": evaluate_rules,
        }
        counts = dict.fromkeys(sweeps, 0)
        for counter, settle in sweeps.items():
            for _ in range(MOST_TURNS):
                async with self._database.transaction() as work:
                    settled = await settle(work)
                counts[counter] += settled
                if not settled:
                    break
        return counts
