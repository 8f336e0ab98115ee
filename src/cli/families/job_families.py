"""The families of jobs: each is a workflow of its own name, and chunks; it adds its line here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from activities.jobs.authorizations import Exchanges, Revocations
from activities.jobs.change_applications import ChangeApplications
from activities.jobs.database_copies import DatabaseCopies
from activities.jobs.exports import Exports
from activities.jobs.field_conversion import FieldConversion
from activities.jobs.field_indexes import FieldIndexes
from activities.jobs.field_removal import FieldRemoval
from activities.jobs.form_imports import FormImports
from activities.jobs.model_plans import ChangePlans, WorkspaceDrafts
from activities.jobs.mount_syncs import MountSyncs
from activities.jobs.provider_calls import ProviderCalls
from activities.jobs.recomputation import Recomputation
from activities.jobs.resource_imports import ResourceImports
from activities.jobs.source_previews import SourcePreviews
from activities.jobs.source_reversals import SourceReversals
from activities.jobs.starter_seeds import StarterSeeds
from activities.jobs.transactions import Chunks
from activities.jobs.workspace_exports import WorkspaceExports
from activities.parts import Parts
from runtime.families import Family
from workflows.jobs import job


@dataclass(frozen=True, slots=True)
class JobFamily:
    """The workflow of a family, and its chunks in a process with certain parts."""

    workflow: type[Any]
    chunks: Callable[[Parts], Chunks]


JOB_FAMILIES: Mapping[Family, JobFamily] = {
    Family.CHANGE_APPLICATION: JobFamily(
        job.ChangeApplication,
        lambda parts: ChangeApplications(parts.keys, parts.outbound.policy),
    ),
    Family.CHANGE_PLAN: JobFamily(
        job.ChangePlan, lambda parts: ChangePlans(parts.keys, parts.language_model)
    ),
    Family.DATABASE_DUPLICATE: JobFamily(job.DatabaseDuplicate, lambda _: DatabaseCopies()),
    Family.DATA_SOURCE_PREVIEW: JobFamily(
        job.DataSourcePreview, lambda parts: SourcePreviews(parts.store, parts.fetchers)
    ),
    Family.DATA_SOURCE_REVERSAL: JobFamily(job.DataSourceReversal, lambda _: SourceReversals()),
    Family.EXPORT: JobFamily(job.Export, lambda parts: Exports(parts.store)),
    Family.FIELD_CONVERSION: JobFamily(job.FieldConversion, lambda _: FieldConversion()),
    Family.FIELD_INDEX: JobFamily(job.FieldIndex, lambda _: FieldIndexes()),
    Family.FIELD_REMOVAL: JobFamily(job.FieldRemoval, lambda _: FieldRemoval()),
    Family.FORM_IMPORT: JobFamily(job.FormImport, lambda parts: FormImports(parts.provider_calls)),
    Family.MOUNT_SYNC: JobFamily(job.MountSync, lambda parts: MountSyncs(parts.provider_calls)),
    Family.OAUTH_EXCHANGE: JobFamily(
        job.OAuthExchange, lambda parts: Exchanges(parts.token_endpoints)
    ),
    Family.OAUTH_REVOCATION: JobFamily(
        job.OAuthRevocation, lambda parts: Revocations(parts.token_endpoints)
    ),
    Family.PROVIDER_CALL: JobFamily(
        job.ProviderCall, lambda parts: ProviderCalls(parts.provider_calls)
    ),
    Family.RECOMPUTATION: JobFamily(job.Recomputation, lambda _: Recomputation()),
    Family.RESOURCE_IMPORT: JobFamily(
        job.ResourceImport, lambda parts: ResourceImports(parts.provider_calls, parts.store)
    ),
    Family.STARTER_SEED: JobFamily(job.StarterSeed, lambda parts: StarterSeeds(parts.keys)),
    Family.WORKSPACE_DRAFT: JobFamily(
        job.WorkspaceDraft, lambda parts: WorkspaceDrafts(parts.keys, parts.language_model)
    ),
    Family.WORKSPACE_EXPORT: JobFamily(
        job.WorkspaceExport, lambda parts: WorkspaceExports(parts.store)
    ),
}


def chunks_of(parts: Parts) -> Mapping[Family, Chunks]:
    """The chunks of every family."""
    return {name: family.chunks(parts) for name, family in JOB_FAMILIES.items()}
