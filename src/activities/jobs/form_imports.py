"""Jobs that import forms."""

from typing_extensions import override

from activities.jobs.provider_attempts import ask_provider
from activities.jobs.transactions import Chunks
from activities.providers.adapter import ProblemKind, ProviderProblem
from activities.providers.calls import Providers, refusal_for
from models.core.base import Id, JsonObject
from models.messages.jobs.queries import job_actor
from models.messages.jobs.rows import JobRow
from models.sources.external_resources.rules.forms import NoFormError
from models.sources.external_resources.rules.names import shown_name
from models.sources.external_resources.rules.resources import Capability, ProviderResource
from models.sources.resource_imports.forms import create_from
from runtime.database import Transaction, UnitOfWork
from runtime.errors import UnsupportedError

NO_FORM = "The resource is no form that can be imported."


class FormImports(Chunks):
    """Reads what a form asks, and makes the database and the form in the same transaction."""

    def __init__(self, providers: Providers) -> None:
        self._providers = providers

    @override
    async def advance(self, work: Transaction, job: JobRow) -> None:
        actor = await job_actor(work, job)
        connection = await self._providers.open(work, actor, Id(job.input["connectionId"]))
        named = ProviderResource.model_validate(job.input["resource"])
        try:
            resource = await ask_provider(
                work, job, connection.adapter.describe(connection.access, named)
            )
            if Capability.IMPORT_FORM not in resource.capabilities:
                raise UnsupportedError(NO_FORM)
            form = await ask_provider(
                work, job, connection.adapter.form(connection.access, resource)
            )
        except NoFormError:
            raise UnsupportedError(NO_FORM) from None
        except ProviderProblem as problem:
            if problem.kind is ProblemKind.UNSUPPORTED:
                raise UnsupportedError(NO_FORM) from None
            raise refusal_for(problem) from problem
        title = shown_name(form.title or resource.name)
        job.progress.update(await create_from(work, actor, title, form))

    @override
    async def result(self, work: UnitOfWork, job: JobRow) -> JsonObject:
        return job.progress
