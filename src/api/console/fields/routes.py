"""Create, change and delete fields of a database by forms."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from starlette.responses import Response

from api.console.entered import Entered, Fields, read_as, redisplays
from api.console.fields import forms
from api.console.fields.offers import counts_of, offers_of, targets_of
from api.console.forms import paged
from api.console.rendering import page, see_other
from api.console.resource_pages import act
from api.console.routing import page_router
from api.console.shell import shell_of
from api.console.words import plain, queried, sentence_case
from api.console.workspace.settings import Notice
from api.kernel.routing import ApiRequest
from api.routers.data import databases as api
from api.routers.data.databases import FIELD, FIELDS, WRITE, WRITE_FIELD
from models.core.base import Id, JsonObject
from models.core.revisions import read_moment
from models.data.databases import field_changes
from models.data.databases.queries import get_database
from models.data.databases.shapes import DatabaseDetail
from models.data.fields.queries import get_field
from models.data.fields.rules.fields import TITLE_KEY, FieldKind
from models.data.fields.rules.value_conversion import convertible
from models.data.fields.shapes import CreateField, FieldShape, UpdateField
from models.workspace.impact.field_usages import field_usages
from runtime.clock import wire_timestamp
from runtime.errors import ConflictError, ValidationError

router = page_router()

FIELD_PAGE = FIELD.removeprefix("/v1")
FIELDS_PAGE = FIELDS.removeprefix("/v1")
_NEW = replace(paged(WRITE), idempotent=False)
# Counting the records of each option asks for an index where there is none.
_EDIT = replace(paged(WRITE_FIELD), idempotent=False, heavy=True, writes=True)
_CREATE = paged(replace(WRITE, joins=True))
CHANGE = paged(replace(WRITE_FIELD, joins=True))
KINDS = [(kind.value, sentence_case(plain(kind))) for kind in FieldKind]


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
