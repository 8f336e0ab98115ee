"""Importing resources and forms of providers."""

from api.kernel.routing import Access, ApiRequest, Data, Router
from api.routers.sources.resources import CALL_SECONDS, PROVIDER_ERRORS, RESOURCES
from models.core.access.rules import Level, Scope
from models.sources.provider_calls.shapes import NamedResource
from models.sources.resource_imports import forms
from models.sources.resource_imports.shapes import FormImportResult
from runtime.database import UnitOfWork

router = Router(tags=["integrations"])


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
