"""Accepting imports of resources and of forms, and what became of them, on the wire."""

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from models.content.items.commands import check_parent, create_item_for
from models.content.items.joins import live_item_of
from models.content.items.queries import get_item, placement
from models.content.items.rules import WRITE_SCOPES, ItemKind
from models.content.items.shapes import ItemDetail
from models.core.access.rules import Actor, Level
from models.core.base import EXAMPLE_ID, Id, Input, InputId, JsonObject, Moment, Shape, example
from models.core.lifecycle.commands import stand_in_line
from models.data.databases.shapes import CreateDatabase
from models.data.databases.store import create_database
from models.data.fields.rules.fields import OPTION_KINDS, TITLE_KEY, FieldKind
from models.data.fields.shapes import MAX_OPTIONS, CreateField
from models.data.forms.commands import create_form
from models.data.forms.queries import get_form
from models.data.forms.rules import ASKABLE
from models.data.forms.shapes import MAX_QUESTIONS
from models.messages.jobs import store as job_store
from models.messages.jobs.rules import OPEN_JOB, JobStatus
from models.messages.jobs.store import accept_job, find_job, refusal_of
from models.sources.external_resources.rules import resources
from models.sources.external_resources.rules.forms import FormQuestion, HostedForm
from models.sources.provider_calls import EXAMPLE_RESOURCE, NamedResource, usable_connection
from models.sources.resource_imports.rows import ImportedRow, imported_resource
from models.sources.resource_imports.rules import ImportedKind
from runtime.database import UnitOfWork
from runtime.errors import DeniedError, InProgressError, UpstreamError, ValidationError
from runtime.ids import new_id
from runtime.postgresql.statements import lock_name
from runtime.temporal.workflow_kinds import WorkflowKind


class ImportResource(Input):
    """Body of import: the resource is copied below the parent, or refreshed where it is."""

    model_config = example({"connectionId": EXAMPLE_ID, "resource": EXAMPLE_RESOURCE})

    connection_id: InputId
    resource: resources.ProviderResource
    parent_item_id: InputId | None = None


class ImportCounts(Shape):
    """Counts of an import, by items; the ones that people changed since were `kept`."""

    created: int = 0
    updated: int = 0
    unchanged: int = 0
    kept: int = 0


class ImportedParts(Shape):
    """Counts of the rows of tables, or of the blocks at the top of pages, by what became of them.

    `kept` are the ones that people changed, where the source now says otherwise.
    """

    created: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    kept: int = 0


class SkippedResource(Shape):
    """A resource below the imported one that could not be, and why."""

    name: str
    reason: str


class ImportJob(Shape):
    """The job that imports."""

    id: Id
    status: JobStatus
    created_at: Moment
    completed_at: Moment | None = None


class ImportedResource(Shape):
    """The result of an import, or what it has made so far while its job runs.

    `rows` and `blocks` count tables and pages that were read again, where any were. At most 100
    resources are named in `skipped`.
    """

    item: ItemDetail
    imported: ImportCounts
    rows: ImportedParts | None = None
    blocks: ImportedParts | None = None
    skipped: list[SkippedResource]
    job: ImportJob


class FormImportResult(Shape):
    """A form, its surface and its database; `skipped` are questions without an equivalent."""

    surface_id: Id
    item_id: Id
    database_id: Id
    title: str
    field_count: int
    skipped: list[str]


async def accept_import_resource(
    work: UnitOfWork, actor: Actor, job_id: Id, body: ImportResource
) -> None:
    """Have a worker import a resource, with the scopes that the actor has now.

    Raises what `usable_connection` and `check_parent` raise.
    """
    connection = await usable_connection(
        work, actor, body.connection_id, resources.Capability.IMPORT
    )
    await check_parent(work, actor, body.parent_item_id)
    parent = body.parent_item_id
    await job_store.accept_job(
        work,
        actor,
        WorkflowKind.RESOURCE_IMPORT,
        job_id,
        connection.id,
        summary=f"Import · {connection.provider.value}",
        input={
            "connectionId": str(connection.id),
            "resource": body.resource.to_json(),
            "parentItemId": None if parent is None else str(parent),
            "kinds": _writable(actor),
        },
    )


async def record_import(
    work: UnitOfWork,
    actor: Actor,
    job_id: Id,
    connection_id: Id,
    resource: resources.ProviderResource,
) -> None:
    """Record an import that the caller has executed.

    The member who named the connection had access to it then (ADR 0037). Raises DeniedError without
    a user in whose name content could be made.
    """
    if actor.person is None:
        raise DeniedError("Only a person can start an import.")
    job_input = {
        "connectionId": str(connection_id),
        "resource": resource.to_json(),
        "parentItemId": None,
        "kinds": _writable(actor),
        "configured": True,
    }
    workspace_id, workflow_kind = actor.workspace_id, WorkflowKind.RESOURCE_IMPORT
    if await job_store.record_job(
        work, workspace_id, actor.person, workflow_kind, job_id, connection_id, job_input
    ):
        request = job_store.start_request(connection_id, "Import", "action")
        await stand_in_line(work, workflow_kind, workspace_id, job_id, request)


def _writable(actor: Actor) -> list[str]:
    return [kind.value for kind in ImportedKind if WRITE_SCOPES[kind.item_kind] in actor.scopes]


async def import_outcome(
    work: UnitOfWork, actor: Actor, job_id: Id, *, last: bool
) -> ImportedResource | None:
    """The result of an import; None while it runs.

    Raises why nothing was. When this is the last time to ask, a running import shows its results so
    far; InProgressError when that is nothing yet.
    """
    job = await job_store.find_job(work, actor.workspace_id, WorkflowKind.RESOURCE_IMPORT, job_id)
    if job.status in OPEN_JOB and not last:
        return None
    if job.status not in OPEN_JOB and job.status != JobStatus.SUCCEEDED:
        raise job_store.refusal_of(job) or UpstreamError(
            "The provider could not be reached. Try again."
        )
    shown = await _shown(work, actor, job)
    if shown is None:
        raise InProgressError("The provider is slow to respond. Try again with the same key.")
    return shown


async def get_import_job(work: UnitOfWork, actor: Actor, job_id: Id) -> ImportedResource:
    """An import of the actor as it stands. Raises NotFoundError, and why nothing was imported."""
    await job_store.own_job(work, actor, WorkflowKind.RESOURCE_IMPORT, job_id)
    found = await import_outcome(work, actor, job_id, last=True)
    assert found is not None, "it was the last time to ask"
    return found


async def _shown(work: UnitOfWork, actor: Actor, job: job_store.JobRow) -> ImportedResource | None:
    result = job.result or job.progress
    if "rootId" not in result:
        return None
    root = await work.first(
        sa.select(imported_resource).where(
            imported_resource.c.workspace_id == actor.workspace_id,
            imported_resource.c.id == Id(result["rootId"]),
        ),
        of=ImportedRow,
    )
    if root is None or root.item_id is None:
        return None
    return ImportedResource(
        item=await get_item(work, actor.workspace_id, root.item_id),
        imported=ImportCounts.model_validate(result["counts"]),
        rows=result.get("rows"),
        blocks=result.get("blocks"),
        skipped=[SkippedResource.model_validate(one) for one in result["skipped"]],
        job=ImportJob.model_validate(job),
    )


async def find_root(
    work: UnitOfWork, actor: Actor, connection_id: Id, external_id: str
) -> ImportedRow | None:
    """The row a resource was imported into before, where the actor may edit that; locked."""
    key = f"import/{actor.workspace_id}/{connection_id}/{external_id}"
    await lock_name(work, key)
    rows = await work.rows(
        sa.select(imported_resource)
        .join(*live_item_of(imported_resource))
        .where(
            imported_resource.c.workspace_id == actor.workspace_id,
            imported_resource.c.connection_id == connection_id,
            imported_resource.c.external_id == external_id,
            imported_resource.c.root_id == imported_resource.c.id,
        )
        .order_by(imported_resource.c.id.desc())
        .with_for_update(of=imported_resource),
        of=ImportedRow,
    )
    for row in rows:
        assert row.item_id is not None, "it is joined to its item"
        if await placement.level(work, actor, row.item_id) >= Level.EDIT:
            return row
    return None


_LONGEST_OPTION = 100
_LONGEST_HELP = 4_000


@dataclass(frozen=True, slots=True)
class ImportableForm:
    """The fields of the database, the questions about them, and the labels of what is left out."""

    fields: list[CreateField]
    questions: list[JsonObject]
    skipped: list[str]


def importable(form: HostedForm) -> ImportableForm:
    """The part of a form that has a native equivalent.

    The first short text fills the title of the records. Raises ValidationError for a form that
    asks for nothing importable.
    """
    native = ImportableForm([], [], [])
    for question in form.questions:
        label = resources.shown_name(question.label)
        if len(native.fields) >= MAX_QUESTIONS or not _has_equivalent(question):
            native.skipped.append(label)
            continue
        key = f"q{len(native.fields) + 1}"
        if question.kind is FieldKind.TEXT and all(one.key != TITLE_KEY for one in native.fields):
            key = TITLE_KEY
        native.fields.append(_field(question, key, label))
        form_field: JsonObject = {"key": key, "label": label, "required": question.required}
        if question.help:
            form_field["help"] = question.help[:_LONGEST_HELP]
        native.questions.append(form_field)
    if not native.fields:
        raise ValidationError.at("resource", "The form has no questions that can be imported.")
    return native


def _has_equivalent(asked: FormQuestion) -> bool:
    if asked.kind is None or asked.kind not in ASKABLE:
        return False
    return asked.kind not in OPTION_KINDS or 0 < len(_options(asked)) <= MAX_OPTIONS


def _options(asked: FormQuestion) -> Sequence[str]:
    names = (resources.shown_name(one)[:_LONGEST_OPTION] for one in asked.options)
    return list(dict.fromkeys(names))


def _field(asked: FormQuestion, key: str, label: str) -> CreateField:
    given: JsonObject = {"key": key, "label": label, "kind": asked.kind}
    if asked.kind in OPTION_KINDS:
        given["options"] = [{"name": name} for name in _options(asked)]
    if asked.settings:
        given["settings"] = dict(asked.settings)
    return CreateField.model_validate(given)


async def create_from(work: UnitOfWork, actor: Actor, title: str, form: HostedForm) -> JsonObject:
    """The database and the form, with what `FormImportResult` says of them.

    Raises what `importable` and `create_database` raise.
    """
    native = importable(form)
    database = await create_database(
        work, actor, CreateDatabase.model_construct(label=title, fields=native.fields)
    )
    form_id = new_id()
    item_id = await create_item_for(work, actor, ItemKind.FORM, form_id, title)
    config: JsonObject = {
        "databaseId": str(database.id),
        "title": title,
        "fields": native.questions,
    }
    if form.description:
        config["description"] = form.description[:_LONGEST_HELP]
    await create_form(work, actor, item_id, config, form_id=form_id)
    return {
        "surfaceId": str((await get_form(work, actor, form_id)).surface_id),
        "itemId": str(item_id),
        "databaseId": str(database.id),
        "title": title,
        "fieldCount": len(native.fields),
        "skipped": native.skipped,
    }


async def accept_form_import(
    work: UnitOfWork, actor: Actor, job_id: Id, body: NamedResource
) -> None:
    """Have a worker import a form. Raises what `usable_connection` raises."""
    connection = await usable_connection(
        work, actor, body.connection_id, resources.Capability.IMPORT_FORM
    )
    await accept_job(
        work,
        actor,
        WorkflowKind.FORM_IMPORT,
        job_id,
        connection.id,
        summary=f"Import form · {connection.provider.value}",
        input={"connectionId": str(connection.id), "resource": body.resource.to_json()},
    )


async def form_outcome(
    work: UnitOfWork, actor: Actor, job_id: Id, *, last: bool
) -> FormImportResult | None:
    """The result of an import; None while it runs. Raises why nothing was imported."""
    found = await find_job(work, actor.workspace_id, WorkflowKind.FORM_IMPORT, job_id)
    if found.status == JobStatus.SUCCEEDED:
        return FormImportResult.model_validate(found.result)
    if found.status not in OPEN_JOB:
        raise refusal_of(found) or UpstreamError("The provider could not be reached. Try again.")
    if last:
        raise InProgressError("The provider is slow to respond. Try again with the same key.")
    return None
