"""Jobs: one family for each kind of job, and the reversal of one that died."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

from sqlalchemy import Select, select
from typing_extensions import override

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
from activities.maintenance.families import (
    AbnormalEnd,
    Activities,
    EndKind,
    Execution,
    SweepContext,
    WorkFamily,
    WorkRow,
    next_restart,
)
from activities.parts import Parts
from models.core.base import Id
from models.messages.jobs.rules import JobStatus
from models.messages.jobs.store import JOBS, hold_job, job, record_failure, start_job
from runtime.database import UnitOfWork
from runtime.temporal.families import Family, Queue
from workflows import jobs


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
