"""Making a form and its database of a form of a provider; the copy keeps no link to it."""

from collections.abc import Sequence
from dataclasses import dataclass

from models.content.items.commands import create_item_for
from models.content.items.rules import ItemKind
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.data.databases.commands import create_database
from models.data.databases.shapes import CreateDatabase
from models.data.fields.rules.fields import OPTION_KINDS, TITLE_KEY, FieldKind
from models.data.fields.shapes import MAX_OPTIONS, CreateField
from models.data.forms.commands import create_form
from models.data.forms.queries import get_form
from models.data.forms.rules import ASKABLE
from models.data.forms.shapes import MAX_QUESTIONS
from models.messages.jobs.rules import OPEN_JOB, JobStatus
from models.messages.jobs.store import accept_job, find_job, refusal_of
from models.sources.external_resources.rules.forms import FormQuestion, HostedForm
from models.sources.external_resources.rules.resources import Capability, shown_name
from models.sources.provider_calls import NamedResource, usable_connection
from models.sources.resource_imports.commands import FormImportResult
from runtime.database import UnitOfWork
from runtime.errors import InProgressError, UpstreamError, ValidationError
from runtime.ids import new_id
from runtime.temporal.families import Family

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
        label = shown_name(question.label)
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
    names = (shown_name(one)[:_LONGEST_OPTION] for one in asked.options)
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
    connection = await usable_connection(work, actor, body.connection_id, Capability.IMPORT_FORM)
    await accept_job(
        work,
        actor,
        Family.FORM_IMPORT,
        job_id,
        connection.id,
        summary=f"Import form · {connection.provider.value}",
        input={"connectionId": str(connection.id), "resource": body.resource.to_json()},
    )


async def form_outcome(
    work: UnitOfWork, actor: Actor, job_id: Id, *, last: bool
) -> FormImportResult | None:
    """The result of an import; None while it runs. Raises why nothing was imported."""
    found = await find_job(work, actor.workspace_id, Family.FORM_IMPORT, job_id)
    if found.status == JobStatus.SUCCEEDED:
        return FormImportResult.model_validate(found.result)
    if found.status not in OPEN_JOB:
        raise refusal_of(found) or UpstreamError("The provider could not be reached. Try again.")
    if last:
        raise InProgressError("The provider is slow to respond. Try again with the same key.")
    return None
