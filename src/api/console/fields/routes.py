"""The fields of a database: their list with what uses each, and the forms that change them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from starlette.responses import Response

from api.console.controls import Offers
from api.console.entered import Entered, Fields, Form, read_as, redisplays
from api.console.fields import forms
from api.console.forms import moved_row, paged
from api.console.rendering import console_page, page, see_other, shell_of
from api.console.resource_pages import act
from api.console.routing import page_router
from api.console.words import plain, queried, sentence_case
from api.console.workspace.settings import Notice
from api.kernel.routing import Access, ApiRequest
from api.routers.data import databases as api
from api.routers.data.databases import FIELD, FIELDS, WRITE, WRITE_FIELD
from models.automation.actions.store import list_actions
from models.core.access.rules import Level, Scope
from models.core.base import Id, JsonObject
from models.core.pagination import MAX_LIMIT
from models.core.values import read_moment
from models.data.databases import field_changes
from models.data.databases.shapes import DatabaseDetail
from models.data.databases.store import get_database, list_databases
from models.data.fields.queries import get_field, load_schema, seen_labels
from models.data.fields.rules.fields import OPTION_KINDS, TITLE_KEY, FieldKind
from models.data.fields.rules.value_conversion import convertible
from models.data.fields.shapes import CreateField, FieldShape, UpdateField
from models.data.records.queries import ask_records
from models.data.records.shapes import RecordQuery
from models.workspace.impact.fields import FieldUsages, field_usages
from runtime.clock import wire_timestamp
from runtime.errors import ConflictError, ValidationError

Choices = Sequence[tuple[str, str]]


async def offers_of(request: ApiRequest, database: DatabaseDetail, kind: FieldKind) -> Offers:
    """The choices of the settings of a kind that name something, by their keys."""
    match kind:
        case FieldKind.RELATION:
            return {"databaseId": await _databases(request)}
        case FieldKind.ROLLUP | FieldKind.LOOKUP:
            relations = relations_of(database.fields)
            return {
                "relationFieldKey": [(one.key, one.label) for one in relations],
                "targetFieldKey": await _fields_behind(request, relations),
            }
        case FieldKind.BUTTON:
            return {"actionId": await _actions(request)}
        case _:
            return {}


def relations_of(fields: Collection[FieldShape]) -> list[FieldShape]:
    """The relations among some fields."""
    return [one for one in fields if one.kind is FieldKind.RELATION]


def target_of(relation: FieldShape) -> Id:
    """The database that a relation points into."""
    return Id(relation.settings["databaseId"])


async def targets_of(request: ApiRequest, fields: Collection[FieldShape]) -> Mapping[Id, str]:
    """The labels of the databases that relations point into, as far as the reader sees them."""
    targets = {target_of(one) for one in relations_of(fields)}
    return await seen_labels(request.work, request.actor, targets)


async def counts_of(request: ApiRequest, field: FieldShape) -> Mapping[str, int]:
    """The records of each option by its key, if they can be counted soon."""
    if field.kind not in OPTION_KINDS or Scope.RECORDS_READ not in request.actor.scopes:
        return {}
    query = read_as(RecordQuery, {"limit": 1, "groupBy": {"field": field.key}})
    keys = request.services.keys
    answer = await ask_records(request.work, request.actor, field.database_id, query, keys)
    groups = (answer.groups if answer is not None else None) or ()
    return {str(one.value): one.count for one in groups}


async def _databases(request: ApiRequest) -> Choices:
    listed = await list_databases(
        request.work, request.actor, request.page("databases", MAX_LIMIT, None)
    )
    return [(str(one.id), one.label) for one in listed.databases]


async def _fields_behind(request: ApiRequest, relations: Collection[FieldShape]) -> Choices:
    """The fields of the related databases; a key that several have names all of them."""
    names: dict[str, list[str]] = {}
    for database_id, label in (await targets_of(request, relations)).items():
        schema = await load_schema(request.work, request.actor.workspace_id, database_id)
        for key, spec in schema.fields.items():
            names.setdefault(key, []).append(f"{spec.label} ({label})")
    return [(key, ", ".join(labels)) for key, labels in names.items()]


async def _actions(request: ApiRequest) -> Choices:
    if Scope.ACTIONS_READ not in request.actor.scopes:
        return []
    listed = await list_actions(
        request.work, request.actor, request.page("console actions", MAX_LIMIT, None)
    )
    return [(str(one.id), one.label) for one in listed.actions]


router = page_router()

FIELD_PAGE = FIELD.removeprefix("/v1")
FIELDS_PAGE = FIELDS.removeprefix("/v1")
_NEW = replace(paged(WRITE), idempotent=False)
# Counting the records of each option asks for an index where there is none.
_EDIT = replace(paged(WRITE_FIELD), idempotent=False, heavy=True, writes=True)
_CREATE = paged(replace(WRITE, joins=True))
CHANGE = paged(replace(WRITE_FIELD, joins=True))
KINDS = [(kind.value, sentence_case(plain(kind))) for kind in FieldKind]

_READ = Access(scopes=[Scope.DATABASES_READ], resource="database", level=Level.VIEW)
_MOST_OPTIONS = 6


@dataclass(frozen=True, slots=True)
class Fact:
    """One part of what a field holds: an option in its color, an expression, or words."""

    text: str
    look: Literal["option", "code", "words"] = "words"
    color: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A field of the list."""

    field: FieldShape
    kind: str
    facts: Sequence[Fact]
    usages: FieldUsages


@router.get(FIELDS_PAGE, access=paged(_READ))
async def get_fields(request: ApiRequest, notice: Notice | None = None) -> Response:
    """Look through the fields of a database."""
    database = await get_database(request.work, request.actor, request.ids["databaseId"])
    usages = await field_usages(request.work, request.actor, database)
    targets = await targets_of(request, database.fields)
    return await console_page(
        request,
        "fields.html",
        api.get_database,
        (api.create_field, {"label": "Price", "kind": "number"}),
        database=database,
        lines=[_line(one, targets, usages[one.key]) for one in database.fields],
        title_key=TITLE_KEY,
        notice=notice,
    )


def _line(field: FieldShape, targets: Mapping[Id, str], usages: FieldUsages) -> Line:
    kind = sentence_case(plain(field.kind))
    return Line(field, kind, list(_facts(field, targets)), usages)


class Step(Form):
    """The way a field goes."""

    to: Literal["up", "down"]


@router.post(f"{FIELD_PAGE}/move", access=CHANGE, errors=[ConflictError])
async def move_field(request: ApiRequest, body: Step) -> Response:
    """Put a field before the one above it, or behind the one below it."""
    field = await field_of(request)
    database = await get_database(request.work, request.actor, field.database_id)
    before = [one.id for one in database.fields].index(field.id)
    ordered = moved_row(database.fields, body.to, before)
    for place, one in enumerate(ordered):
        if one.order != place:
            await update_by(request, one, {"order": place})
    return see_other(fields_path(field.database_id))


def _facts(field: FieldShape, targets: Mapping[Id, str]) -> Iterator[Fact]:
    """The contents of a field, from its options and settings."""
    settings = field.settings
    if field.kind in OPTION_KINDS:
        ordered = sorted(field.options, key=lambda one: (one.order, one.key))
        for option in ordered[:_MOST_OPTIONS]:
            yield Fact(option.name, "option", option.color)
        if len(ordered) > _MOST_OPTIONS:
            yield Fact(f"and {len(ordered) - _MOST_OPTIONS} more")
    elif field.kind is FieldKind.FORMULA:
        yield Fact(settings["expression"], "code")
    elif field.kind is FieldKind.RELATION:
        label = targets.get(target_of(field), "Another database")
        yield Fact(f"{label}, {settings['cardinality']}")
    elif field.kind is FieldKind.ROLLUP:
        yield Fact(plain(settings["aggregate"]))
        yield Fact(f"{settings['relationFieldKey']}.{settings['targetFieldKey']}", "code")
    elif field.kind is FieldKind.LOOKUP:
        yield Fact(f"{settings['relationFieldKey']}.{settings['targetFieldKey']}", "code")
    else:
        yield from _bounds(field)


def _bounds(field: FieldShape) -> Iterator[Fact]:
    """The unit and the bounds of a number, the zone of a date, the label of a button."""
    settings = field.settings
    for name in ("currencyCode", "unit", "timezone", "label"):
        if settings.get(name):
            yield Fact(settings[name])
    for name, word in (("min", "at least"), ("max", "at most")):
        if settings.get(name) is not None:
            yield Fact(f"{word} {settings[name]:g}")
    if settings.get("maxFiles"):
        yield Fact(f"at most {settings['maxFiles']} files")


async def _form_page(
    request: ApiRequest, form: forms.FieldForm, database: DatabaseDetail, field: FieldShape | None
) -> Response:
    """The page of a new field, or of one that is stored."""
    shell = await shell_of(request)
    place = fields_path(database.id)
    if field is None:
        calls = shell.calls((api.create_field, _shown_body(form)))
        context: dict[str, Any] = {"kinds": KINDS, "counts": {}}
    else:
        calls = shell.calls((api.update_field, {"label": form.entered.text("label")}))
        context = await _field_context(request, form, database, field)
    return page(
        request,
        "field_form.html",
        shell,
        entered=form.entered,
        form=form,
        database=database,
        field=field,
        place=place,
        at=place if field is None else f"{place}/{field.id}/edit",
        api=calls,
        **context,
    )


def _shown_body(form: forms.FieldForm) -> JsonObject:
    try:
        return forms.create_body(form.kind, form.entered.texts)
    except ValidationError:
        return {"label": form.entered.text("label"), "kind": form.kind.value}


async def _field_context(
    request: ApiRequest, form: forms.FieldForm, database: DatabaseDetail, field: FieldShape
) -> dict[str, Any]:
    """The facts of a stored field that its page shows."""
    usages = await field_usages(request.work, request.actor, database)
    targets = await targets_of(request, [field])
    is_title = field.key == TITLE_KEY
    return {
        "kind_name": sentence_case(plain(field.kind)),
        "known": form.entered.text("updatedAt", wire_timestamp(field.updated_at)),
        "target": next(iter(targets.values()), None),
        "usages": usages[field.key],
        "counts": await counts_of(request, field),
        "is_convertible": not is_title and any(convertible(field.kind, one) for one in FieldKind),
        "is_title": is_title,
    }


async def _sent_page(request: ApiRequest, entered: Entered) -> Response:
    """The form as it was sent, with a refusal or after a button of its rows or its kind."""
    field = await field_of(request) if "fieldId" in request.ids else None
    kind = _kind(entered.texts) if field is None else field.kind
    database = await get_database(request.work, request.actor, request.ids["databaseId"])
    offers = await offers_of(request, database, kind)
    return await _form_page(request, forms.sent_form(kind, offers, entered, field), database, field)


@router.get(f"{FIELDS_PAGE}/new", access=_NEW)
async def get_new_field(request: ApiRequest, kind: FieldKind = FieldKind.TEXT) -> Response:
    """Describe a new field of a kind."""
    database = await get_database(request.work, request.actor, request.ids["databaseId"])
    offers = await offers_of(request, database, kind)
    return await _form_page(request, forms.new_form(kind, offers), database, None)


@router.post(FIELDS_PAGE, access=_CREATE, errors=[ConflictError])
@redisplays(_sent_page)
async def create_field_by_form(request: ApiRequest, body: Fields) -> Response:
    """Create a field, and lead to the list."""
    if "row" in body.texts:
        return await _sent_page(request, Entered(body.texts))
    database_id = request.ids["databaseId"]
    wanted = read_as(CreateField, forms.create_body(_kind(body.texts), body.texts))
    await field_changes.create_field(request.work, request.actor, database_id, wanted)
    return see_other(queried(fields_path(database_id), notice=Notice.ADDED))


@router.get(f"{FIELD_PAGE}/edit", access=_EDIT)
async def get_field_form(request: ApiRequest) -> Response:
    """Look at a field to change it."""
    field = await field_of(request)
    database = await get_database(request.work, request.actor, field.database_id)
    form = forms.stored_form(field, await offers_of(request, database, field.kind))
    return await _form_page(request, form, database, field)


@router.post(f"{FIELD_PAGE}/edit", access=replace(CHANGE, heavy=True), errors=[ConflictError])
@redisplays(_sent_page)
async def edit_field(request: ApiRequest, body: Fields) -> Response:
    """Change a field, unless it was changed since the page was made."""
    if "row" in body.texts:
        return await _sent_page(request, Entered(body.texts))
    field = await field_of(request)
    known = read_moment(body.texts.get("updatedAt"), "updatedAt")
    await update_by(request, field, forms.update_body(field, body.texts), known)
    return see_other(queried(fields_path(field.database_id), notice=Notice.SAVED))


act(router, f"{FIELD_PAGE}/delete", api.delete_field, notice=Notice.REMOVED, then=FIELDS_PAGE)


async def field_of(request: ApiRequest) -> FieldShape:
    """The field of the path. Raises NotFoundError."""
    ids = request.ids
    return await get_field(
        request.work, request.actor.workspace_id, ids["databaseId"], ids["fieldId"]
    )


async def update_by(
    request: ApiRequest,
    field: FieldShape,
    values: JsonObject,
    expected_updated_at: datetime | None = None,
) -> FieldShape:
    """Change a field by the body of the operation; `expected_updated_at` is as last read."""
    wanted = read_as(UpdateField, values)
    place = (field.database_id, field.id)
    return await field_changes.update_field(
        request.work, request.actor, *place, wanted, expected_updated_at
    )


def fields_path(database_id: Id) -> str:
    """The path of the list of fields."""
    return f"/databases/{database_id}/fields"


def _kind(texts: Mapping[str, str]) -> FieldKind:
    """The kind that the form was made for. Raises ValidationError."""
    try:
        return FieldKind(texts.get("kind", ""))
    except ValueError:
        raise ValidationError.at("kind", "Choose one of the list.") from None
