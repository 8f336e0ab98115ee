"""Families of work beside runs: deliveries, imports, jobs and time entries."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import sqlalchemy as sa
from temporalio.client import WorkflowExecutionStatus
from typing_extensions import override

from activities import legacy_imports
from activities.data_source_runs.steps import DataSourceRunActivities
from activities.deliveries import attempts as delivery_attempts
from activities.jobs import records
from activities.jobs.data_sources import SourcePreviews, SourceReversals
from activities.jobs.exports import Exports, WorkspaceExports
from activities.jobs.mount_syncs import MountSyncs
from activities.jobs.plans import ChangeApplications, ChangePlans, StarterSeeds, WorkspaceDrafts
from activities.jobs.providers import CodeExchanges, FormImports, ProviderCalls, TokenRevocations
from activities.jobs.resource_imports import ResourceImports
from activities.jobs.transactions import DONE, MORE, Chunks, JobActivities
from activities.maintenance import families
from activities.outbox.relay import Standalone
from activities.parts import Parts
from activities.time_entries import TimerActivities
from models.core.base import Id
from models.core.lifecycle import commands as lifecycle
from models.data.time_entries.tables import TIME_ENTRIES, time_entry
from models.data.time_entries.writes import give_up_entry, restart_timer
from models.data.time_entries.writes import signal_execution as signal_timer
from models.messages.deliveries.commands import DELIVERIES, close_execution, delivery, request_of
from models.messages.deliveries.lines import expire_deliveries
from models.messages.deliveries.rules import DeliveryChannel, DeliveryStatus
from models.messages.jobs.rules import JobStatus
from models.messages.jobs.store import JOBS, hold_job, job, record_failure, start_job
from models.sources.data_source_runs.acceptance import start_run
from models.sources.data_source_runs.endings import abandon_run
from models.sources.data_source_runs.rules import family_of
from models.sources.data_source_runs.tables import DATA_SOURCE_RUNS, SourceRunRow
from models.workspace.legacy_imports import executions as legacy_import_executions
from models.workspace.legacy_imports.queries import LEGACY_IMPORTS, legacy_import_run
from models.workspace.legacy_imports.rules import WAITING
from runtime.database import UnitOfWork
from runtime.temporal import families as temporal_families
from workflows import jobs
from workflows.data_source_runs import DataSourceRefresh, SpreadsheetImport
from workflows.deliveries import Delivery
from workflows.legacy_imports import ImportWorkspace, LegacyImport
from workflows.policies import ATTEMPT_TIMEOUT, DATABASE_RETRY, HEARTBEAT_TIMEOUT
from workflows.time_entries import TimerDue


class DeliveryRow(families.WorkRow, Protocol):
    """A delivery, without what it carries."""

    channel: str
    subject_id: Id
    executions: int


class Deliveries(families.WorkFamily[DeliveryRow]):
    """Deliveries of every channel."""

    name, kind, row = "deliveries", DELIVERIES, DeliveryRow
    workflows: ClassVar = {temporal_families.Family.DELIVERY: Delivery}
    standalone: ClassVar = Standalone(
        "deliver", temporal_families.Queue.IO, ATTEMPT_TIMEOUT, HEARTBEAT_TIMEOUT, DATABASE_RETRY
    )

    @override
    def activities(self, parts: Parts) -> families.Activities:
        attempts = delivery_attempts.DeliveryActivities(parts.database, _channels(parts))
        return {
            temporal_families.Queue.AUTOMATION: [attempts.close_cancelled_delivery],
            temporal_families.Queue.IO: [attempts.deliver, attempts.attempt_delivery],
        }

    @override
    def rows(self) -> sa.Select[Any]:
        columns = delivery.c
        of_row = (columns.id, columns.workspace_id, columns.status)
        return sa.select(*of_row, columns.channel, columns.subject_id, columns.executions).where(
            columns.executing
        )

    @override
    def workflow_id(self, row: DeliveryRow) -> str:
        return temporal_families.Family.DELIVERY.workflow_id(row.id, str(row.executions))

    @override
    async def restart(
        self, work: UnitOfWork, row: DeliveryRow, latest: families.Execution | None
    ) -> None:
        request = request_of(DeliveryChannel(row.channel), row.subject_id, row.executions)
        restarts = families.next_restart(latest)
        await lifecycle.start(
            work, temporal_families.Family.DELIVERY, row.workspace_id, row.id, request, restarts
        )

    @override
    async def close(
        self, context: families.SweepContext, row: DeliveryRow, end: families.AbnormalEnd
    ) -> bool:
        cancelled = end.kind is families.EndKind.CANCELLED
        status = DeliveryStatus.CANCELLED if cancelled else DeliveryStatus.FAILED
        async with context.database.transaction() as work:
            return await close_execution(work, row.id, row.executions, status, end.reason)

    @override
    def extras(self, context: families.SweepContext) -> Mapping[str, families.Extra]:
        return {"deliveries_expired": lambda: _expire(context)}


def _channels(parts: Parts) -> Mapping[DeliveryChannel, delivery_attempts.Channel[Any]]:
    """The channels by which deliveries leave; a channel adds its registration here."""
    return {
        DeliveryChannel.MAIL: delivery_attempts.MailChannel(
            parts.mail, delivery_attempts.MailLinks(parts.keys, parts.public_url)
        ),
        DeliveryChannel.WEBHOOK: delivery_attempts.WebhookChannel(parts.outbound, parts.keys),
        DeliveryChannel.PUSH: delivery_attempts.PushChannel(parts.keys, parts.pushers),
    }


async def _expire(context: families.SweepContext) -> int:
    expired = 0
    while True:
        async with context.database.transaction() as work:
            ended = await expire_deliveries(work)
        if not ended:
            return expired
        expired += ended


class DataSourceRuns(families.WorkFamily[SourceRunRow]):
    """Refreshes of data sources and imports of spreadsheets."""

    name, kind, row = "data_source_runs", DATA_SOURCE_RUNS, SourceRunRow
    workflows: ClassVar = {
        temporal_families.Family.DATA_SOURCE_REFRESH: DataSourceRefresh,
        temporal_families.Family.SPREADSHEET_IMPORT: SpreadsheetImport,
    }

    @override
    def activities(self, parts: Parts) -> families.Activities:
        steps = DataSourceRunActivities(parts.database, parts.store, parts.fetchers)
        return {
            temporal_families.Queue.IO: [steps.fetch],
            temporal_families.Queue.BULK: [steps.stage, steps.apply, steps.close],
        }

    @override
    def workflow_id(self, row: SourceRunRow) -> str:
        return family_of(row.data_source_id).workflow_id(row.id)

    @override
    async def restart(
        self, work: UnitOfWork, row: SourceRunRow, latest: families.Execution | None
    ) -> None:
        await start_run(work, row, families.next_restart(latest))

    @override
    async def close(
        self, context: families.SweepContext, row: SourceRunRow, end: families.AbnormalEnd
    ) -> bool:
        cancelled = end.kind is families.EndKind.CANCELLED
        status = JobStatus.CANCELLED if cancelled else JobStatus.FAILED
        async with context.database.transaction() as work:
            return await abandon_run(work, row.id, status, end.reason)


_run = legacy_import_run.c


class LegacyImportRow(families.WorkRow, Protocol):
    """A run. It has no workspace, and uses its own id where work is grouped by workspace."""

    execution: str


class LegacyImports(families.WorkFamily[LegacyImportRow]):
    """Runs that may wait for weeks, and that another execution may roll back after their end."""

    name, kind, row = "legacy_imports", LEGACY_IMPORTS, LegacyImportRow
    workflows: ClassVar = {temporal_families.Family.LEGACY_IMPORT: LegacyImport}
    children = (ImportWorkspace,)
    pinned = True

    @override
    def activities(self, parts: Parts) -> families.Activities:
        transactions = legacy_imports.LegacyImportTransactions(parts.database, parts.keys)
        bundles = legacy_imports.BundleActivities(parts.database, parts.store)
        workspaces = legacy_imports.WorkspaceActivities(parts.database, parts.store, parts.keys)
        return {
            temporal_families.Queue.AUTOMATION: transactions.all(),
            temporal_families.Queue.BULK: [*bundles.all(), workspaces.work_on],
        }

    @override
    def rows(self) -> sa.Select[Any]:
        return sa.select(_run.id, _run.id.label("workspace_id"), _run.status, _run.execution)

    @override
    def workflow_id(self, row: LegacyImportRow) -> str:
        return legacy_import_executions.workflow_id(row)

    @override
    def judge(self, row: LegacyImportRow, latest: families.Execution | None) -> families.Verdict:
        """A run that has work left, and whose execution sleeps, has lost its signal."""
        if latest is not None and latest.status is WorkflowExecutionStatus.RUNNING:
            lost = latest.sleeps and not latest.busy and row.status not in WAITING
            return families.Verdict.RESTART if lost else families.Verdict.LEAVE
        return super().judge(row, latest)

    @override
    async def restart(
        self, work: UnitOfWork, row: LegacyImportRow, latest: families.Execution | None
    ) -> None:
        if latest is not None and latest.status is WorkflowExecutionStatus.RUNNING:
            await legacy_import_executions.signal_execution(work, row, "reconcile")
        else:
            await legacy_import_executions.start_execution(
                work, row.id, row.execution, families.next_restart(latest)
            )

    @override
    async def close(
        self, context: families.SweepContext, row: LegacyImportRow, end: families.AbnormalEnd
    ) -> bool:
        async with context.database.transaction() as work:
            return await legacy_import_executions.abandon(
                work, row.id, end.reason, cancelled=end.kind is families.EndKind.CANCELLED
            )


@dataclass(frozen=True, slots=True)
class JobFamily:
    """The workflow of a family, and its chunks in a process with certain parts."""

    workflow: type[Any]
    chunks: Callable[[Parts], Chunks]


JOB_FAMILIES: Mapping[temporal_families.Family, JobFamily] = {
    temporal_families.Family.CHANGE_APPLICATION: JobFamily(
        jobs.ChangeApplication,
        lambda parts: ChangeApplications(parts.keys, parts.outbound.policy),
    ),
    temporal_families.Family.CHANGE_PLAN: JobFamily(
        jobs.ChangePlan, lambda parts: ChangePlans(parts.keys, parts.language_model)
    ),
    temporal_families.Family.DATABASE_DUPLICATE: JobFamily(
        jobs.DatabaseDuplicate, lambda _: records.DatabaseCopies()
    ),
    temporal_families.Family.DATA_SOURCE_PREVIEW: JobFamily(
        jobs.DataSourcePreview, lambda parts: SourcePreviews(parts.store, parts.fetchers)
    ),
    temporal_families.Family.DATA_SOURCE_REVERSAL: JobFamily(
        jobs.DataSourceReversal, lambda _: SourceReversals()
    ),
    temporal_families.Family.EXPORT: JobFamily(jobs.Export, lambda parts: Exports(parts.store)),
    temporal_families.Family.FIELD_CONVERSION: JobFamily(
        jobs.FieldConversion, lambda _: records.FieldConversion()
    ),
    temporal_families.Family.FIELD_INDEX: JobFamily(
        jobs.FieldIndex, lambda _: records.FieldIndexes()
    ),
    temporal_families.Family.FIELD_REMOVAL: JobFamily(
        jobs.FieldRemoval, lambda _: records.FieldRemoval()
    ),
    temporal_families.Family.FORM_IMPORT: JobFamily(
        jobs.FormImport, lambda parts: FormImports(parts.provider_calls)
    ),
    temporal_families.Family.MOUNT_SYNC: JobFamily(
        jobs.MountSync, lambda parts: MountSyncs(parts.provider_calls)
    ),
    temporal_families.Family.OAUTH_EXCHANGE: JobFamily(
        jobs.OAuthExchange, lambda parts: CodeExchanges(parts.token_endpoints)
    ),
    temporal_families.Family.OAUTH_REVOCATION: JobFamily(
        jobs.OAuthRevocation, lambda parts: TokenRevocations(parts.token_endpoints)
    ),
    temporal_families.Family.PROVIDER_CALL: JobFamily(
        jobs.ProviderCall, lambda parts: ProviderCalls(parts.provider_calls)
    ),
    temporal_families.Family.RECOMPUTATION: JobFamily(
        jobs.Recomputation, lambda _: records.Recomputation()
    ),
    temporal_families.Family.RESOURCE_IMPORT: JobFamily(
        jobs.ResourceImport, lambda parts: ResourceImports(parts.provider_calls, parts.store)
    ),
    temporal_families.Family.STARTER_SEED: JobFamily(
        jobs.StarterSeed, lambda parts: StarterSeeds(parts.keys)
    ),
    temporal_families.Family.WORKSPACE_DRAFT: JobFamily(
        jobs.WorkspaceDraft, lambda parts: WorkspaceDrafts(parts.keys, parts.language_model)
    ),
    temporal_families.Family.WORKSPACE_EXPORT: JobFamily(
        jobs.WorkspaceExport, lambda parts: WorkspaceExports(parts.store)
    ),
}


def chunks_of(parts: Parts) -> Mapping[temporal_families.Family, Chunks]:
    """The chunks of every family."""
    return {name: family.chunks(parts) for name, family in JOB_FAMILIES.items()}


class JobRow(families.WorkRow, Protocol):
    """A job, without what its chunks keep."""

    family: str
    subject_id: Id


class Jobs(families.WorkFamily[JobRow]):
    """Jobs of every family."""

    name, kind, row = "jobs", JOBS, JobRow
    workflows: ClassVar = {name: family.workflow for name, family in JOB_FAMILIES.items()}

    def __init__(self, jobs: JobActivities) -> None:
        self._jobs = jobs

    @override
    @classmethod
    def of(cls, parts: Parts) -> Self:
        return cls(JobActivities(parts.database, chunks_of(parts)))

    @override
    def activities(self, parts: Parts) -> families.Activities:
        return {
            temporal_families.Queue.IO: [self._jobs.advance_job],
            temporal_families.Queue.BULK: [self._jobs.advance_job, self._jobs.undo_job],
        }

    @override
    def rows(self) -> sa.Select[Any]:
        return sa.select(job.c.id, job.c.workspace_id, job.c.family, job.c.status, job.c.subject_id)

    @override
    def workflow_id(self, row: JobRow) -> str:
        return temporal_families.Family(row.family).workflow_id(row.id)

    @override
    async def restart(
        self, work: UnitOfWork, row: JobRow, latest: families.Execution | None
    ) -> None:
        summary, family = "Restarted by the reconciler", temporal_families.Family(row.family)
        restarts = families.next_restart(latest)
        await start_job(work, family, row.workspace_id, row.id, row.subject_id, summary, restarts)

    @override
    async def close(
        self, context: families.SweepContext, row: JobRow, end: families.AbnormalEnd
    ) -> bool:
        cancelled = end.kind is families.EndKind.CANCELLED
        if not cancelled:
            async with context.database.transaction() as work:
                held = await hold_job(work, row.id)
                # A reason that a chunk has written says more than the end of its execution.
                if held is not None and held.error is None:
                    await record_failure(work, row.id, end.reason, "interrupted")
        status = JobStatus.CANCELLED if cancelled else JobStatus.FAILED
        # In parts, each in a transaction of its own, as the workflow would have done.
        while (outcome := await self._jobs.undo_job(str(row.id), status.value)) == MORE:
            pass
        return outcome == DONE


_entry = time_entry.c


class EntryRow(families.WorkRow, Protocol):
    """An entry that ends by itself, and whether it should have."""

    overdue: bool


class TimeEntries(families.WorkFamily[EntryRow]):
    """Entries that end by themselves. Terminating the execution does not stop the clock."""

    name, kind, row = "time_entries", TIME_ENTRIES, EntryRow
    workflows: ClassVar = {temporal_families.Family.TIMER_DUE: TimerDue}

    @override
    def activities(self, parts: Parts) -> families.Activities:
        return {temporal_families.Queue.AUTOMATION: [TimerActivities(parts.database).end_when_due]}

    @override
    def rows(self) -> sa.Select[Any]:
        overdue = sa.func.coalesce(_entry.due_at < sa.func.now(), False).label("overdue")
        columns = (_entry.id, _entry.workspace_id, _entry.status, overdue)
        return sa.select(*columns).where(TIME_ENTRIES.executed)

    @override
    def judge(self, row: EntryRow, latest: families.Execution | None) -> families.Verdict:
        if latest is None:
            return families.Verdict.RESTART
        if latest.status is WorkflowExecutionStatus.RUNNING:
            # It has not heard that its time has moved.
            return (
                families.Verdict.RESTART
                if row.overdue and latest.sleeps
                else families.Verdict.LEAVE
            )
        return (
            families.Verdict.RESTART
            if latest.restarts < families.MOST_RESTARTS
            else families.Verdict.CLOSE
        )

    @override
    async def restart(
        self, work: UnitOfWork, row: EntryRow, latest: families.Execution | None
    ) -> None:
        if latest is not None and latest.status is WorkflowExecutionStatus.RUNNING:
            await signal_timer(work, row.workspace_id, row.id)
        else:
            await restart_timer(work, row.workspace_id, row.id, families.next_restart(latest))

    @override
    async def close(
        self, context: families.SweepContext, row: EntryRow, end: families.AbnormalEnd
    ) -> bool:
        del end
        async with context.database.transaction() as work:
            return await give_up_entry(work, row.id)
