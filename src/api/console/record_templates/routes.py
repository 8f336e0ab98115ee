"""Record templates of a database, with the values that they fill in."""

from collections.abc import Mapping, Sequence

from api.console.entered import Entered
from api.console.records import entry
from api.console.records.cells import shown_fields
from api.console.rendering import Shell
from api.console.resource_pages import Column, Resource, Stored, Trail
from api.console.routing import page_router
from api.kernel.routing import ApiRequest
from api.routers.data import records as api
from models.core.base import JsonObject
from models.data.databases.store import get_database
from models.data.fields.rules.fields import TITLE_KEY, FieldSpec
from runtime.errors import Detail, ValidationError

router = page_router()


def _prefill(stored: Stored | None) -> entry.Prefill | None:
    if stored is None:
        return None
    relations = {key: [str(one) for one in ids] for key, ids in stored.relations.items()}
    return entry.Prefill(stored.data.get(TITLE_KEY), stored.data, relations)


async def _fields(request: ApiRequest, stored: Stored | None) -> Sequence[FieldSpec]:
    """The fields that the form has; the others of a stored template stay as they are."""
    return entry.entered(await shown_fields(request, request.ids["databaseId"]), _prefill(stored))


async def _values(request: ApiRequest, form: Entered, stored: Stored | None) -> JsonObject:
    """The controls of the values that a template fills in."""
    specs = await _fields(request, stored)
    if form.refusal is None:
        entries: Sequence[entry.Entry] = await entry.entries_of(request, specs, _prefill(stored))
    else:
        details = form.refusal.details if isinstance(form.refusal, ValidationError) else ()
        problems = {one.path: one.message for one in details}
        entries = await entry.again(request, specs, _typed(form.texts), problems)
    paths = [f"{part}.{spec.key}" for spec in specs for part in ("data", "relations")]
    return {
        "entries": entries,
        "people": await entry.people(request, entries),
        "told": [*paths, *(spec.label for spec in specs)],
    }


async def _body(request: ApiRequest, texts: Mapping[str, str], stored: Stored | None) -> JsonObject:
    """The values of the form, without the empty ones. Raises ValidationError."""
    specs = await _fields(request, stored)
    typed = await entry.read_fields(request, specs, _typed(texts))
    if typed.problems:
        raise ValidationError(
            typed.problems[0].message, [Detail(one.path, one.message) for one in typed.problems]
        )
    keys = {spec.key for spec in specs}
    before = _prefill(stored) or entry.Prefill(None, {}, {})
    data = {key: value for key, value in before.data.items() if key not in keys}
    data |= {key: value for key, value in typed.data.items() if value not in (None, [])}
    relations = {key: ids for key, ids in before.relations.items() if key not in keys}
    return {"data": data, "relations": {**relations, **typed.relations}}


def _typed(texts: Mapping[str, str]) -> Mapping[str, str]:
    return {name: text for name, text in texts.items() if name.startswith(entry.PREFIX)}


async def _trail(request: ApiRequest, shell: Shell) -> Trail:
    database = await get_database(request.work, request.actor, request.ids["databaseId"])
    return [
        ("Content", shell.at("items")),
        (database.label, shell.at("databases", database.id)),
    ]


Resource(
    noun="record template",
    at=api.TEMPLATES.removeprefix("/v1"),
    parameter="templateId",
    columns=[
        Column(name="description", label="Description"),
        Column(name="is_default", label="Default"),
        Column(name="updated_at", label="Updated"),
    ],
    sentence="Values that new records start with.",
    empty="A template fills in the values of a new record.",
    deletion="Records that were created from it stay.",
    listing=api.list_record_templates,
    creating=api.create_record_template,
    updating=api.update_record_template,
    deleting=api.delete_record_template,
    without=("data", "relations"),
    words={
        "icon": ("Icon", "An emoji (optional)."),
        "isDefault": ("Default", "Used for new records. Replaces the default of the database."),
        "label": ("Name", ""),
    },
    template="record_template_form.html",
    form=_values,
    body=_body,
    trail=_trail,
).declare(router)
