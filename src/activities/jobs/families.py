"""The work of each family of jobs; a family adds its line here."""

from activities.authorizations.token_endpoint import TokenEndpoints
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
from activities.language_model.asking import LanguageModel
from activities.providers.calls import Providers
from activities.sources.fetchers import Fetchers
from runtime.crypto import KeyRing
from runtime.families import Family
from runtime.object_store import ObjectStore


def job_families(
    store: ObjectStore,
    fetchers: Fetchers,
    providers: Providers,
    endpoints: TokenEndpoints,
    keys: KeyRing,
    model: LanguageModel,
) -> dict[Family, Chunks]:
    """The chunks of every family."""
    return {
        Family.CHANGE_APPLICATION: ChangeApplications(keys),
        Family.CHANGE_PLAN: ChangePlans(keys, model),
        Family.DATA_SOURCE_PREVIEW: SourcePreviews(store, fetchers),
        Family.DATA_SOURCE_REVERSAL: SourceReversals(),
        Family.DATABASE_DUPLICATE: DatabaseCopies(),
        Family.EXPORT: Exports(store),
        Family.FIELD_CONVERSION: FieldConversion(),
        Family.FIELD_INDEX: FieldIndexes(),
        Family.OAUTH_EXCHANGE: Exchanges(endpoints),
        Family.OAUTH_REVOCATION: Revocations(endpoints),
        Family.RECOMPUTATION: Recomputation(),
        Family.RESOURCE_IMPORT: ResourceImports(providers, store),
        Family.FIELD_REMOVAL: FieldRemoval(),
        Family.FORM_IMPORT: FormImports(providers),
        Family.MOUNT_SYNC: MountSyncs(providers),
        Family.STARTER_SEED: StarterSeeds(keys),
        Family.WORKSPACE_DRAFT: WorkspaceDrafts(keys, model),
        Family.PROVIDER_CALL: ProviderCalls(providers),
        Family.WORKSPACE_EXPORT: WorkspaceExports(store),
    }
