"""Handlers of work beside runs: deliveries, imports, jobs and time entries."""

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
from activities.maintenance import work_handlers
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
from models.sources.data_source_runs.rules import workflow_kind_of
from models.sources.data_source_runs.tables import DATA_SOURCE_RUNS, SourceRunRow
from models.workspace.legacy_imports import executions as legacy_import_executions
from models.workspace.legacy_imports.queries import LEGACY_IMPORTS, legacy_import_run
from models.workspace.legacy_imports.rules import WAITING
from runtime.database import UnitOfWork
from runtime.temporal import workflow_kinds
from workflows import jobs
from workflows.data_source_runs import DataSourceRefresh, SpreadsheetImport
from workflows.deliveries import Delivery
from workflows.legacy_imports import ImportWorkspace, LegacyImport
from workflows.policies import ATTEMPT_TIMEOUT, DATABASE_RETRY, HEARTBEAT_TIMEOUT
from workflows.time_entries import TimerDue


class DeliveryRow(work_handlers.WorkRow, Protocol):
    """A delivery, without what it carries."""

    channel: str
    subject_id: Id
    executions: int


class Deliveries(work_handlers.WorkHandler[DeliveryRow]):
    """Deliveries of every channel."""

    name, kind, row = "deliveries", DELIVERIES, DeliveryRow
    workflows: ClassVar = {workflow_kinds.WorkflowKind.DELIVERY: Delivery}
    standalone: ClassVar = Standalone(
        "deliver", workflow_kinds.Queue.IO, ATTEMPT_TIMEOUT, HEARTBEAT_TIMEOUT, DATABASE_RETRY
    )

    @override
    def activities(self, parts: Parts) -> work_handlers.Activities:
        attempts = delivery_attempts.DeliveryActivities(parts.database, _channels(parts))
        return {
            workflow_kinds.Queue.AUTOMATION: [attempts.close_cancelled_delivery],
            workflow_kinds.Queue.IO: [attempts.deliver, attempts.attempt_delivery],
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
        return workflow_kinds.WorkflowKind.DELIVERY.workflow_id(row.id, str(row.executions))

    @override
    async def restart(
        self, work: UnitOfWork, row: DeliveryRow, latest: work_handlers.Execution | None
    ) -> None:
        request = request_of(DeliveryChannel(row.channel), row.subject_id, row.executions)
        restarts = work_handlers.next_restart(latest)
        await lifecycle.start(
            work, workflow_kinds.WorkflowKind.DELIVERY, row.workspace_id, row.id, request, restarts
        )

    @override
    async def close(
        self, context: work_handlers.SweepContext, row: DeliveryRow, end: work_handlers.AbnormalEnd
    ) -> bool:
        cancelled = end.kind is work_handlers.EndKind.CANCELLED
        status = DeliveryStatus.CANCELLED if cancelled else DeliveryStatus.FAILED
        async with context.database.transaction() as work:
            return await close_execution(work, row.id, row.executions, status, end.reason)

    @override
    def extras(self, context: work_handlers.SweepContext) -> Mapping[str, work_handlers.Extra]:
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


async def _expire(context: work_handlers.SweepContext) -> int:
    expired = 0
    while True:
        async with context.database.transaction() as work:
            ended = await expire_deliveries(work)
        if not ended:
            return expired
        expired += ended


class DataSourceRuns(work_handlers.WorkHandler[SourceRunRow]):
    """Refreshes of data sources and imports of spreadsheets."""

    name, kind, row = "data_source_runs", DATA_SOURCE_RUNS, SourceRunRow
    workflows: ClassVar = {
        workflow_kinds.WorkflowKind.DATA_SOURCE_REFRESH: DataSourceRefresh,
        workflow_kinds.WorkflowKind.SPREADSHEET_IMPORT: SpreadsheetImport,
    }

    @override
    def activities(self, parts: Parts) -> work_handlers.Activities:
        steps = DataSourceRunActivities(parts.database, parts.store, parts.fetchers)
        return {
            workflow_kinds.Queue.IO: [steps.fetch],
            workflow_kinds.Queue.BULK: [steps.stage, steps.apply, steps.close],
        }

    @override
    def workflow_id(self, row: SourceRunRow) -> str:
        return workflow_kind_of(row.data_source_id).workflow_id(row.id)

    @override
    async def restart(
        self, work: UnitOfWork, row: SourceRunRow, latest: work_handlers.Execution | None
    ) -> None:
        await start_run(work, row, work_handlers.next_restart(latest))

    @override
    async def close(
        self, context: work_handlers.SweepContext, row: SourceRunRow, end: work_handlers.AbnormalEnd
    ) -> bool:
        cancelled = end.kind is work_handlers.EndKind.CANCELLED
        status = JobStatus.CANCELLED if cancelled else JobStatus.FAILED
        async with context.database.transaction() as work:
            return await abandon_run(work, row.id, status, end.reason)


_run = legacy_import_run.c


class LegacyImportRow(work_handlers.WorkRow, Protocol):
    """A run. It has no workspace, and uses its own id where work is grouped by workspace."""

    execution: str


class LegacyImports(work_handlers.WorkHandler[LegacyImportRow]):
    """Runs that may wait for weeks, and that another execution may roll back after their end."""

    name, kind, row = "legacy_imports", LEGACY_IMPORTS, LegacyImportRow
    workflows: ClassVar = {workflow_kinds.WorkflowKind.LEGACY_IMPORT: LegacyImport}
    children = (ImportWorkspace,)
    pinned = True

    @override
    def activities(self, parts: Parts) -> work_handlers.Activities:
        transactions = legacy_imports.LegacyImportTransactions(parts.database, parts.keys)
        bundles = legacy_imports.BundleActivities(parts.database, parts.store)
        workspaces = legacy_imports.WorkspaceActivities(parts.database, parts.store, parts.keys)
        return {
            workflow_kinds.Queue.AUTOMATION: transactions.all(),
            workflow_kinds.Queue.BULK: [*bundles.all(), workspaces.work_on],
        }

    @override
    def rows(self) -> sa.Select[Any]:
        return sa.select(_run.id, _run.id.label("workspace_id"), _run.status, _run.execution)

    @override
    def workflow_id(self, row: LegacyImportRow) -> str:
        return legacy_import_executions.workflow_id(row)

    @override
    def judge(
        self, row: LegacyImportRow, latest: work_handlers.Execution | None
    ) -> work_handlers.Verdict:
        """A run that has work left, and whose execution sleeps, has lost its signal."""
        if latest is not None and latest.status is WorkflowExecutionStatus.RUNNING:
            lost = latest.sleeps and not latest.busy and row.status not in WAITING
            return work_handlers.Verdict.RESTART if lost else work_handlers.Verdict.LEAVE
        return super().judge(row, latest)

    @override
    async def restart(
        self, work: UnitOfWork, row: LegacyImportRow, latest: work_handlers.Execution | None
    ) -> None:
        if latest is not None and latest.status is WorkflowExecutionStatus.RUNNING:
            await legacy_import_executions.signal_execution(work, row, "reconcile")
        else:
            await legacy_import_executions.start_execution(
                work, row.id, row.execution, work_handlers.next_restart(latest)
            )

    @override
    async def close(
        self,
        context: work_handlers.SweepContext,
        row: LegacyImportRow,
        end: work_handlers.AbnormalEnd,
    ) -> bool:
        async with context.database.transaction() as work:
            return await legacy_import_executions.abandon(
                work, row.id, end.reason, cancelled=end.kind is work_handlers.EndKind.CANCELLED
            )


@dataclass(frozen=True, slots=True)
class JobKind:
    """The workflow of a kind of jobs, and its chunks in a process with certain parts."""

    workflow: type[Any]
    chunks: Callable[[Parts], Chunks]


JOB_KINDS: Mapping[workflow_kinds.WorkflowKind, JobKind] = {
    workflow_kinds.WorkflowKind.CHANGE_APPLICATION: JobKind(
        jobs.ChangeApplication,
        lambda parts: ChangeApplications(parts.keys, parts.outbound.policy),
    ),
    workflow_kinds.WorkflowKind.CHANGE_PLAN: JobKind(
        jobs.ChangePlan, lambda parts: ChangePlans(parts.keys, parts.language_model)
    ),
    workflow_kinds.WorkflowKind.DATABASE_DUPLICATE: JobKind(
        jobs.DatabaseDuplicate, lambda _: records.DatabaseCopies()
    ),
    workflow_kinds.WorkflowKind.DATA_SOURCE_PREVIEW: JobKind(
        jobs.DataSourcePreview, lambda parts: SourcePreviews(parts.store, parts.fetchers)
    ),
    workflow_kinds.WorkflowKind.DATA_SOURCE_REVERSAL: JobKind(
        jobs.DataSourceReversal, lambda _: SourceReversals()
    ),
    workflow_kinds.WorkflowKind.EXPORT: JobKind(jobs.Export, lambda parts: Exports(parts.store)),
    workflow_kinds.WorkflowKind.FIELD_CONVERSION: JobKind(
        jobs.FieldConversion, lambda _: records.FieldConversion()
    ),
    workflow_kinds.WorkflowKind.FIELD_INDEX: JobKind(
        jobs.FieldIndex, lambda _: records.FieldIndexes()
    ),
    workflow_kinds.WorkflowKind.FIELD_REMOVAL: JobKind(
        jobs.FieldRemoval, lambda _: records.FieldRemoval()
    ),
    workflow_kinds.WorkflowKind.FORM_IMPORT: JobKind(
        jobs.FormImport, lambda parts: FormImports(parts.provider_calls)
    ),
    workflow_kinds.WorkflowKind.MOUNT_SYNC: JobKind(
        jobs.MountSync, lambda parts: MountSyncs(parts.provider_calls)
    ),
    workflow_kinds.WorkflowKind.OAUTH_EXCHANGE: JobKind(
        jobs.OAuthExchange, lambda parts: CodeExchanges(parts.token_endpoints)
    ),
    workflow_kinds.WorkflowKind.OAUTH_REVOCATION: JobKind(
        jobs.OAuthRevocation, lambda parts: TokenRevocations(parts.token_endpoints)
    ),
    workflow_kinds.WorkflowKind.PROVIDER_CALL: JobKind(
        jobs.ProviderCall, lambda parts: ProviderCalls(parts.provider_calls)
    ),
    workflow_kinds.WorkflowKind.RECOMPUTATION: JobKind(
        jobs.Recomputation, lambda _: records.Recomputation()
    ),
    workflow_kinds.WorkflowKind.RESOURCE_IMPORT: JobKind(
        jobs.ResourceImport, lambda parts: ResourceImports(parts.provider_calls, parts.store)
    ),
    workflow_kinds.WorkflowKind.STARTER_SEED: JobKind(
        jobs.StarterSeed, lambda parts: StarterSeeds(parts.keys)
    ),
    workflow_kinds.WorkflowKind.WORKSPACE_DRAFT: JobKind(
        jobs.WorkspaceDraft, lambda parts: WorkspaceDrafts(parts.keys, parts.language_model)
    ),
    workflow_kinds.WorkflowKind.WORKSPACE_EXPORT: JobKind(
        jobs.WorkspaceExport, lambda parts: WorkspaceExports(parts.store)
    ),
}


def chunks_of(parts: Parts) -> Mapping[workflow_kinds.WorkflowKind, Chunks]:
    """The chunks of every kind of jobs."""
    return {name: kind.chunks(parts) for name, kind in JOB_KINDS.items()}


class JobRow(work_handlers.WorkRow, Protocol):
    """A job, without what its chunks keep."""

    workflow_kind: str
    subject_id: Id


class Jobs(work_handlers.WorkHandler[JobRow]):
    """Jobs of every kind."""

    name, kind, row = "jobs", JOBS, JobRow
    workflows: ClassVar = {name: kind.workflow for name, kind in JOB_KINDS.items()}

    def __init__(self, jobs: JobActivities) -> None:
        self._jobs = jobs

    @override
    @classmethod
    def of(cls, parts: Parts) -> Self:
        return cls(JobActivities(parts.database, chunks_of(parts)))

    @override
    def activities(self, parts: Parts) -> work_handlers.Activities:
        return {
            workflow_kinds.Queue.IO: [self._jobs.advance_job],
            workflow_kinds.Queue.BULK: [self._jobs.advance_job, self._jobs.undo_job],
        }

    @override
    def rows(self) -> sa.Select[Any]:
        return sa.select(
            job.c.id, job.c.workspace_id, job.c.workflow_kind, job.c.status, job.c.subject_id
        )

    @override
    def workflow_id(self, row: JobRow) -> str:
        return workflow_kinds.WorkflowKind(row.workflow_kind).workflow_id(row.id)

    @override
    async def restart(
        self, work: UnitOfWork, row: JobRow, latest: work_handlers.Execution | None
    ) -> None:
        summary, kind = (
            "Restarted by the reconciler",
            workflow_kinds.WorkflowKind(row.workflow_kind),
        )
        restarts = work_handlers.next_restart(latest)
        await start_job(work, kind, row.workspace_id, row.id, row.subject_id, summary, restarts)

    @override
    async def close(
        self, context: work_handlers.SweepContext, row: JobRow, end: work_handlers.AbnormalEnd
    ) -> bool:
        cancelled = end.kind is work_handlers.EndKind.CANCELLED
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


class EntryRow(work_handlers.WorkRow, Protocol):
    """An entry that ends by itself, and whether it should have."""

    overdue: bool


class TimeEntries(work_handlers.WorkHandler[EntryRow]):
    """Entries that end by themselves. Terminating the execution does not stop the clock."""

    name, kind, row = "time_entries", TIME_ENTRIES, EntryRow
    workflows: ClassVar = {workflow_kinds.WorkflowKind.TIMER_DUE: TimerDue}

    @override
    def activities(self, parts: Parts) -> work_handlers.Activities:
        return {workflow_kinds.Queue.AUTOMATION: [TimerActivities(parts.database).end_when_due]}

    @override
    def rows(self) -> sa.Select[Any]:
        overdue = sa.func.coalesce(_entry.due_at < sa.func.now(), False).label("overdue")
        columns = (_entry.id, _entry.workspace_id, _entry.status, overdue)
        return sa.select(*columns).where(TIME_ENTRIES.executed)

    @override
    def judge(self, row: EntryRow, latest: work_handlers.Execution | None) -> work_handlers.Verdict:
        if latest is None:
            return work_handlers.Verdict.RESTART
        if latest.status is WorkflowExecutionStatus.RUNNING:
            # It has not heard that its time has moved.
            return (
                work_handlers.Verdict.RESTART
                if row.overdue and latest.sleeps
                else work_handlers.Verdict.LEAVE
            )
        return (
            work_handlers.Verdict.RESTART
            if latest.restarts < work_handlers.MOST_RESTARTS
            else work_handlers.Verdict.CLOSE
        )

    @override
    async def restart(
        self, work: UnitOfWork, row: EntryRow, latest: work_handlers.Execution | None
    ) -> None:
        if latest is not None and latest.status is WorkflowExecutionStatus.RUNNING:
            await signal_timer(work, row.workspace_id, row.id)
        else:
            await restart_timer(work, row.workspace_id, row.id, work_handlers.next_restart(latest))

    @override
    async def close(
        self, context: work_handlers.SweepContext, row: EntryRow, end: work_handlers.AbnormalEnd
    ) -> bool:
        del end
        async with context.database.transaction() as work:
            return await give_up_entry(work, row.id)
