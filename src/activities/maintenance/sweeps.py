"""Sweeps of our rows: expired ones go, sums, incidents and alert rules are brought up to date."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial

from temporalio import activity

from activities.heartbeats import heartbeats
from activities.maintenance.orphans import sweep_orphans
from activities.parts import Periods
from models.automation.action_runs.tables import purge_action_runs
from models.automation.alert_rules.evaluation import evaluate_rules
from models.automation.alert_rules.queries import purge_firings
from models.automation.automation_runs.tables import purge_runs
from models.automation.inbox.tables import purge_inbox
from models.automation.incidents.closing import close_recovered
from models.automation.incidents.tables import purge_incidents
from models.automation.run_operations.tables import purge_operations
from models.automation.run_statistics.sums import purge_sums, settle_runs
from models.automation.webhooks.commands import purge_receipts
from models.content.files.commands import purge_files, purge_trash
from models.core.idempotency import purge_replies
from models.data.forms.tables import purge_quotas
from models.data.records.commands import purge_records
from models.data.records.queries import merge_counts
from models.data.time_entries.writes import purge_discarded
from models.messages.deliveries.lines import purge_deliveries
from models.messages.jobs.store import purge_jobs
from models.messages.realtime import purge_tabs, purge_tickets
from models.messages.webhook_endpoints.deliveries import expire_untold
from models.messages.workspace_events.log import purge_events
from models.people.credentials import purge_sessions
from models.people.experiments.commands import purge_units
from models.people.request_logs import purge_request_logs
from models.sources.authorizations.commands import purge_authorizations
from models.sources.data_source_runs.lifecycle import purge_data_source_runs, purge_rejections
from models.sources.data_sources.commands import purge_previews
from models.sources.provider_calls import purge_calls, purge_mirror
from models.workspace.changes.commands import expire_changes, purge_changes
from models.workspace.legacy_imports.executions import purge_legacy_imports
from models.workspace.system import merge_ended_work
from models.workspace.usage import settle_totals
from runtime.clock import utc_now
from runtime.database import Database, UnitOfWork
from runtime.object_store import ObjectStore

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
