"""Importing resources and forms of providers."""

from api.kernel.routing import Access, ApiRequest, Data, Router
from api.routers.sources.connections import INTEGRATIONS
from api.routers.sources.resources import CALL_SECONDS, PROVIDER_ERRORS, RESOURCES
from models.core.access.rules import Level, Scope
from models.sources.provider_calls.shapes import NamedResource
from models.sources.resource_imports import commands, forms
from models.sources.resource_imports.shapes import (
    FormImportResult,
    ImportedResource,
    ImportResource,
)
from runtime.database import UnitOfWork

router = Router(tags=["integrations"])


@router.post(
    f"{RESOURCES}/import",
    access=Access(
        scopes=[Scope.RESOURCES_WRITE, Scope.INTEGRATIONS_READ], level=Level.EDIT, idempotent=True
    ),
    errors=PROVIDER_ERRORS,
)
async def import_resource(request: ApiRequest, body: ImportResource) -> Data[ImportedResource]:
    """Import a resource: a folder with what is in it, a page, a file, or a database of a table.

    Imported again it is refreshed in place: `kept` counts what people changed since, which stays
    as it is. Other types are unsupported. The answer waits for the end for a while; a longer
    import shows what it has made so far, and its `job` is read by its id.
    """
    actor, job_id = request.actor, request.new_id
    await commands.accept_import_resource(request.work, actor, job_id, body)

    async def poll(work: UnitOfWork, last: bool) -> ImportedResource | None:
        return await commands.import_outcome(work, actor, job_id, last=last)

    return request.deferred(poll, within=CALL_SECONDS)


@router.get(
    f"{INTEGRATIONS}/resource-imports/{{resourceImportId}}",
    access=Access(scopes=[Scope.RESOURCES_READ, Scope.INTEGRATIONS_READ]),
    errors=PROVIDER_ERRORS,
)
async def get_resource_import(request: ApiRequest) -> Data[ImportedResource]:
    """Get an import of the caller as it stands, by the id of its job."""
    job_id = request.ids["resourceImportId"]
    return Data(await commands.get_import_job(request.work, request.actor, job_id))


@router.post(
    f"{RESOURCES}/import-form",
    access=Access(
        scopes=[
            Scope.INTEGRATIONS_READ,
            Scope.RESOURCES_READ,
            Scope.DATABASES_WRITE,
            Scope.VIEWS_WRITE,
        ],
        level=Level.EDIT,
        idempotent=True,
    ),
    errors=PROVIDER_ERRORS,
)
async def import_form(request: ApiRequest, body: NamedResource) -> Data[FormImportResult]:
    """Import a form: a database for its answers and a form that asks its questions.

    Every question with a native equivalent is imported, `skipped` names the rest. A resource that
    is no form is unsupported, a form with nothing to import a validation error. The copy keeps no
    link to the provider.
    """
    actor, job_id = request.actor, request.new_id
    await forms.accept_form_import(request.work, actor, job_id, body)

    async def poll(work: UnitOfWork, last: bool) -> FormImportResult | None:
        return await forms.form_outcome(work, actor, job_id, last=last)

    return request.deferred(poll, within=CALL_SECONDS)
