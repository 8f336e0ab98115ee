"""Families of work beside runs: deliveries, imports, jobs and time entries."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

from sqlalchemy import Select, func, select
from temporalio.client import WorkflowExecutionStatus
from typing_extensions import override

from activities.data_source_runs.steps import DataSourceRunActivities
from activities.deliveries.attempts import (
    Channel,
    DeliveryActivities,
    MailChannel,
    MailLinks,
    PushChannel,
    WebhookChannel,
)
from activities.jobs.data_sources import SourcePreviews, SourceReversals
from activities.jobs.exports import Exports, WorkspaceExports
from activities.jobs.mount_syncs import MountSyncs
from activities.jobs.plans import ChangeApplications, ChangePlans, StarterSeeds, WorkspaceDrafts
from activities.jobs.providers import CodeExchanges, FormImports, ProviderCalls, TokenRevocations
from activities.jobs.records import (
    DatabaseCopies,
    FieldConversion,
    FieldIndexes,
    FieldRemoval,
    Recomputation,
)
from activities.jobs.resource_imports import ResourceImports
from activities.jobs.transactions import DONE, MORE, Chunks, JobActivities
from activities.legacy_imports import (
    BundleActivities,
    LegacyImportTransactions,
    WorkspaceActivities,
)
from activities.maintenance.families import (
    MOST_RESTARTS,
    AbnormalEnd,
    Activities,
    EndKind,
    Execution,
    Extra,
    SweepContext,
    Verdict,
    WorkFamily,
    WorkRow,
    next_restart,
)
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
from models.sources.data_source_runs.lifecycle import DATA_SOURCE_RUNS, SourceRunRow
from models.sources.data_source_runs.rules import DataSourceRunStatus, family_of
from models.workspace.legacy_imports.executions import (
    abandon,
    start_execution,
    workflow_id,
)
from models.workspace.legacy_imports.executions import (
    signal_execution as signal_import,
)
from models.workspace.legacy_imports.rules import WAITING
from models.workspace.legacy_imports.tables import LEGACY_IMPORTS, legacy_import_run
from runtime.database import UnitOfWork
from runtime.temporal.families import (
    Family,
    Queue,
)
from workflows import jobs
from workflows.data_source_runs import DataSourceRefresh, SpreadsheetImport
from workflows.deliveries import Delivery
from workflows.legacy_imports import ImportWorkspace, LegacyImport
from workflows.policies import ATTEMPT_TIMEOUT, DATABASE_RETRY, HEARTBEAT_TIMEOUT
from workflows.time_entries import TimerDue


class DeliveryRow(WorkRow, Protocol):
    """A delivery, without what it carries."""

    channel: str
    subject_id: Id
    executions: int


class Deliveries(WorkFamily[DeliveryRow]):
    """Deliveries of every channel."""

    name, kind, row = "deliveries", DELIVERIES, DeliveryRow
    workflows: ClassVar = {Family.DELIVERY: Delivery}
    standalone: ClassVar = Standalone(
        "deliver", Queue.IO, ATTEMPT_TIMEOUT, HEARTBEAT_TIMEOUT, DATABASE_RETRY
    )

    @override
    def activities(self, parts: Parts) -> Activities:
        attempts = DeliveryActivities(parts.database, _channels(parts))
        return {
            Queue.AUTOMATION: [attempts.close_cancelled_delivery],
            Queue.IO: [attempts.deliver, attempts.attempt_delivery],
        }

    @override
    def rows(self) -> Select[Any]:
        columns = delivery.c
        of_row = (columns.id, columns.workspace_id, columns.status)
        return select(*of_row, columns.channel, columns.subject_id, columns.executions).where(
            columns.executing
        )

    @override
    def workflow_id(self, row: DeliveryRow) -> str:
        return Family.DELIVERY.workflow_id(row.id, str(row.executions))

    @override
    async def restart(self, work: UnitOfWork, row: DeliveryRow, latest: Execution | None) -> None:
        request = request_of(DeliveryChannel(row.channel), row.subject_id, row.executions)
        restarts = next_restart(latest)
        await lifecycle.start(work, Family.DELIVERY, row.workspace_id, row.id, request, restarts)

    @override
    async def close(self, context: SweepContext, row: DeliveryRow, end: AbnormalEnd) -> bool:
        cancelled = end.kind is EndKind.CANCELLED
        status = DeliveryStatus.CANCELLED if cancelled else DeliveryStatus.FAILED
        async with context.database.transaction() as work:
            return await close_execution(work, row.id, row.executions, status, end.reason)

    @override
    def extras(self, context: SweepContext) -> Mapping[str, Extra]:
        return {"deliveries_expired": lambda: _expire(context)}


def _channels(parts: Parts) -> Mapping[DeliveryChannel, Channel[Any]]:
    """The channels by which deliveries leave; a channel adds its registration here."""
    return {
        DeliveryChannel.MAIL: MailChannel(parts.mail, MailLinks(parts.keys, parts.public_url)),
        DeliveryChannel.WEBHOOK: WebhookChannel(parts.outbound, parts.keys),
        DeliveryChannel.PUSH: PushChannel(parts.keys, parts.pushers),
    }


async def _expire(context: SweepContext) -> int:
    expired = 0
    while True:
        async with context.database.transaction() as work:
            ended = await expire_deliveries(work)
        if not ended:
            return expired
        expired += ended


class DataSourceRuns(WorkFamily[SourceRunRow]):
    """Refreshes of data sources and imports of spreadsheets."""

    name, kind, row = "data_source_runs", DATA_SOURCE_RUNS, SourceRunRow
    workflows: ClassVar = {
        Family.DATA_SOURCE_REFRESH: DataSourceRefresh,
        Family.SPREADSHEET_IMPORT: SpreadsheetImport,
    }

    @override
    def activities(self, parts: Parts) -> Activities:
        steps = DataSourceRunActivities(parts.database, parts.store, parts.fetchers)
        return {
            Queue.IO: [steps.fetch],
            Queue.BULK: [steps.stage, steps.apply, steps.close],
        }

    @override
    def workflow_id(self, row: SourceRunRow) -> str:
        return family_of(row.data_source_id).workflow_id(row.id)

    @override
    async def restart(self, work: UnitOfWork, row: SourceRunRow, latest: Execution | None) -> None:
        await start_run(work, row, next_restart(latest))

    @override
    async def close(self, context: SweepContext, row: SourceRunRow, end: AbnormalEnd) -> bool:
        cancelled = end.kind is EndKind.CANCELLED
        status = DataSourceRunStatus.CANCELLED if cancelled else DataSourceRunStatus.FAILED
        async with context.database.transaction() as work:
            return await abandon_run(work, row.id, status, end.reason)


_run = legacy_import_run.c


class LegacyImportRow(WorkRow, Protocol):
    """A run. It has no workspace, and uses its own id where work is grouped by workspace."""

    execution: str


class LegacyImports(WorkFamily[LegacyImportRow]):
    """Runs that may wait for weeks, and that another execution may roll back after their end."""

    name, kind, row = "legacy_imports", LEGACY_IMPORTS, LegacyImportRow
    workflows: ClassVar = {Family.LEGACY_IMPORT: LegacyImport}
    children = (ImportWorkspace,)
    pinned = True

    @override
    def activities(self, parts: Parts) -> Activities:
        transactions = LegacyImportTransactions(parts.database, parts.keys)
        bundles = BundleActivities(parts.database, parts.store)
        workspaces = WorkspaceActivities(parts.database, parts.store, parts.keys)
        return {
            Queue.AUTOMATION: transactions.all(),
            Queue.BULK: [*bundles.all(), workspaces.work_on],
        }

    @override
    def rows(self) -> Select[Any]:
        return select(_run.id, _run.id.label("workspace_id"), _run.status, _run.execution)

    @override
    def workflow_id(self, row: LegacyImportRow) -> str:
        return workflow_id(row)

    @override
    def judge(self, row: LegacyImportRow, latest: Execution | None) -> Verdict:
        """A run that has work left, and whose execution sleeps, has lost its signal."""
        if latest is not None and latest.status is WorkflowExecutionStatus.RUNNING:
            lost = latest.sleeps and not latest.busy and row.status not in WAITING
            return Verdict.RESTART if lost else Verdict.LEAVE
        return super().judge(row, latest)

    @override
    async def restart(
        self, work: UnitOfWork, row: LegacyImportRow, latest: Execution | None
    ) -> None:
        if latest is not None and latest.status is WorkflowExecutionStatus.RUNNING:
            await signal_import(work, row, "reconcile")
        else:
            await start_execution(work, row.id, row.execution, next_restart(latest))

    @override
    async def close(self, context: SweepContext, row: LegacyImportRow, end: AbnormalEnd) -> bool:
        async with context.database.transaction() as work:
            return await abandon(work, row.id, end.reason, cancelled=end.kind is EndKind.CANCELLED)


@dataclass(frozen=True, slots=True)
class JobFamily:
    """The workflow of a family, and its chunks in a process with certain parts."""

    workflow: type[Any]
    chunks: Callable[[Parts], Chunks]


JOB_FAMILIES: Mapping[Family, JobFamily] = {
    Family.CHANGE_APPLICATION: JobFamily(
        jobs.ChangeApplication,
        lambda parts: ChangeApplications(parts.keys, parts.outbound.policy),
    ),
    Family.CHANGE_PLAN: JobFamily(
        jobs.ChangePlan, lambda parts: ChangePlans(parts.keys, parts.language_model)
    ),
    Family.DATABASE_DUPLICATE: JobFamily(jobs.DatabaseDuplicate, lambda _: DatabaseCopies()),
    Family.DATA_SOURCE_PREVIEW: JobFamily(
        jobs.DataSourcePreview, lambda parts: SourcePreviews(parts.store, parts.fetchers)
    ),
    Family.DATA_SOURCE_REVERSAL: JobFamily(jobs.DataSourceReversal, lambda _: SourceReversals()),
    Family.EXPORT: JobFamily(jobs.Export, lambda parts: Exports(parts.store)),
    Family.FIELD_CONVERSION: JobFamily(jobs.FieldConversion, lambda _: FieldConversion()),
    Family.FIELD_INDEX: JobFamily(jobs.FieldIndex, lambda _: FieldIndexes()),
    Family.FIELD_REMOVAL: JobFamily(jobs.FieldRemoval, lambda _: FieldRemoval()),
    Family.FORM_IMPORT: JobFamily(jobs.FormImport, lambda parts: FormImports(parts.provider_calls)),
    Family.MOUNT_SYNC: JobFamily(jobs.MountSync, lambda parts: MountSyncs(parts.provider_calls)),
    Family.OAUTH_EXCHANGE: JobFamily(
        jobs.OAuthExchange, lambda parts: CodeExchanges(parts.token_endpoints)
    ),
    Family.OAUTH_REVOCATION: JobFamily(
        jobs.OAuthRevocation, lambda parts: TokenRevocations(parts.token_endpoints)
    ),
    Family.PROVIDER_CALL: JobFamily(
        jobs.ProviderCall, lambda parts: ProviderCalls(parts.provider_calls)
    ),
    Family.RECOMPUTATION: JobFamily(jobs.Recomputation, lambda _: Recomputation()),
    Family.RESOURCE_IMPORT: JobFamily(
        jobs.ResourceImport, lambda parts: ResourceImports(parts.provider_calls, parts.store)
    ),
    Family.STARTER_SEED: JobFamily(jobs.StarterSeed, lambda parts: StarterSeeds(parts.keys)),
    Family.WORKSPACE_DRAFT: JobFamily(
        jobs.WorkspaceDraft, lambda parts: WorkspaceDrafts(parts.keys, parts.language_model)
    ),
    Family.WORKSPACE_EXPORT: JobFamily(
        jobs.WorkspaceExport, lambda parts: WorkspaceExports(parts.store)
    ),
}


def chunks_of(parts: Parts) -> Mapping[Family, Chunks]:
    """The chunks of every family."""
    return {name: family.chunks(parts) for name, family in JOB_FAMILIES.items()}


class JobRow(WorkRow, Protocol):
    """A job, without what its chunks keep."""

    family: str
    subject_id: Id


class Jobs(WorkFamily[JobRow]):
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
    def activities(self, parts: Parts) -> Activities:
        return {
            Queue.IO: [self._jobs.advance_job],
            Queue.BULK: [self._jobs.advance_job, self._jobs.undo_job],
        }

    @override
    def rows(self) -> Select[Any]:
        return select(job.c.id, job.c.workspace_id, job.c.family, job.c.status, job.c.subject_id)

    @override
    def workflow_id(self, row: JobRow) -> str:
        return Family(row.family).workflow_id(row.id)

    @override
    async def restart(self, work: UnitOfWork, row: JobRow, latest: Execution | None) -> None:
        summary, family = "Restarted by the reconciler", Family(row.family)
        restarts = next_restart(latest)
        await start_job(work, family, row.workspace_id, row.id, row.subject_id, summary, restarts)

    @override
    async def close(self, context: SweepContext, row: JobRow, end: AbnormalEnd) -> bool:
        cancelled = end.kind is EndKind.CANCELLED
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


class EntryRow(WorkRow, Protocol):
    """An entry that ends by itself, and whether it should have."""

    overdue: bool


class TimeEntries(WorkFamily[EntryRow]):
    """Entries that end by themselves. Terminating the execution does not stop the clock."""

    name, kind, row = "time_entries", TIME_ENTRIES, EntryRow
    workflows: ClassVar = {Family.TIMER_DUE: TimerDue}

    @override
    def activities(self, parts: Parts) -> Activities:
        return {Queue.AUTOMATION: [TimerActivities(parts.database).end_when_due]}

    @override
    def rows(self) -> Select[Any]:
        overdue = func.coalesce(_entry.due_at < func.now(), False).label("overdue")
        columns = (_entry.id, _entry.workspace_id, _entry.status, overdue)
        return select(*columns).where(TIME_ENTRIES.executed)

    @override
    def judge(self, row: EntryRow, latest: Execution | None) -> Verdict:
        if latest is None:
            return Verdict.RESTART
        if latest.status is WorkflowExecutionStatus.RUNNING:
            # It has not heard that its time has moved.
            return Verdict.RESTART if row.overdue and latest.sleeps else Verdict.LEAVE
        return Verdict.RESTART if latest.restarts < MOST_RESTARTS else Verdict.CLOSE

    @override
    async def restart(self, work: UnitOfWork, row: EntryRow, latest: Execution | None) -> None:
        if latest is not None and latest.status is WorkflowExecutionStatus.RUNNING:
            await signal_timer(work, row.workspace_id, row.id)
        else:
            await restart_timer(work, row.workspace_id, row.id, next_restart(latest))

    @override
    async def close(self, context: SweepContext, row: EntryRow, end: AbnormalEnd) -> bool:
        del end
        async with context.database.transaction() as work:
            return await give_up_entry(work, row.id)
