"""Create, change and delete views of a database by forms."""

import json
from dataclasses import replace

from starlette.responses import Response

from api.console.entered import Entered, Fields, attempt, read_as
from api.console.fields.controls import sentence_case
from api.console.forms import paged
from api.console.records.entry import COMPARISONS
from api.console.rendering import page, see_other
from api.console.routing import page_router
from api.console.shell import shell_of
from api.console.views.forms import (
    FIELD_KEYS,
    ViewForm,
    manifest_of,
    sent_view_form,
    view_form,
)
from api.console.words import curl, plain, queried
from api.kernel.routing import ApiRequest
from api.routers.data.databases import VIEW, VIEWS, WRITE_VIEWS
from models.core.base import JsonObject
from models.core.revisions import read_moment
from models.data.databases.queries import get_database
from models.data.fields.queries import load_schema
from models.data.fields.rules.fields import FieldSpecs
from models.data.views import commands
from models.data.views.queries import get_view
from models.data.views.rules.kinds import ViewKind
from models.data.views.shapes import CreateView, UpdateView, ViewShape
from runtime.clock import wire_timestamp
from runtime.errors import ConflictError, ValidationError

router = page_router()

_VIEWS = VIEWS.removeprefix("/v1")
_VIEW = VIEW.removeprefix("/v1")
_SHOW = replace(paged(WRITE_VIEWS), idempotent=False)
_CHANGE = paged(replace(WRITE_VIEWS, joins=True))
_CREATABLE = [kind for kind in ViewKind if kind not in {ViewKind.CHART, ViewKind.FORM}]
"""Kinds that the form creates; charts and forms can only be edited."""
_LABELS = {
    "stackFieldKey": ("Board columns", "An option field."),
    "dateFieldKey": ("Date", "Of a calendar or a timeline."),
    "endDateFieldKey": ("End date", "Of a timeline."),
    "coverFieldKey": ("Cover", "A file or URL field of a gallery."),
}


@router.get(f"{_VIEWS}/new", access=_SHOW)
async def get_new_view(request: ApiRequest) -> Response:
    """Describe a new view."""
    fields = await _fields(request)
    return await _page(request, fields, view_form(fields, None), None)


@router.post(_VIEWS, access=_CHANGE, errors=[ConflictError])
async def create_view_by_form(request: ApiRequest, body: Fields) -> Response:
    """Create a view, and lead to the records that it shows."""
    fields, texts = await _fields(request), body.texts

    async def create() -> ViewShape:
        wanted = read_as(CreateView, _values(fields, texts, {}))
        database_id = request.ids["databaseId"]
        return await commands.create_view(request.work, request.actor, database_id, wanted)

    outcome = None if "row" in texts else await attempt(request, create)
    if isinstance(outcome, ViewShape):
        return see_other(_records(request, outcome))
    form = sent_view_form(fields, Entered(texts, outcome), None)
    return await _page(request, fields, form, None)


@router.get(f"{_VIEW}/edit", access=_SHOW)
async def get_view_form(request: ApiRequest) -> Response:
    """Look at a view to change it."""
    view, fields = await _view(request), await _fields(request)
    return await _page(request, fields, view_form(fields, view), view)


@router.post(f"{_VIEW}/edit", access=_CHANGE, errors=[ConflictError])
async def edit_view(request: ApiRequest, body: Fields) -> Response:
    """Change a view, unless it was changed since the page was made."""
    view = await _view(request)
    fields, texts = await _fields(request), body.texts

    async def change() -> ViewShape:
        known = read_moment(texts.get("updatedAt"), "updatedAt")
        wanted = read_as(UpdateView, _values(fields, texts, view.manifest))
        place = (view.database_id, view.id)
        return await commands.update_view(request.work, request.actor, *place, wanted, known)

    outcome = None if "row" in texts else await attempt(request, change)
    if isinstance(outcome, ViewShape):
        return see_other(_records(request, outcome))
    form = sent_view_form(fields, Entered(texts, outcome), view)
    return await _page(request, fields, form, view)


@router.post(f"{_VIEW}/delete", access=_CHANGE, errors=[ConflictError])
async def delete_view_by_form(request: ApiRequest) -> Response:
    """Delete a view; its records stay."""
    place = (request.ids["databaseId"], request.ids["viewId"])
    await commands.delete_view(request.work, request.actor, *place)
    return see_other(_records(request))


def _values(fields: FieldSpecs, texts: dict[str, str], before: JsonObject) -> JsonObject:
    """The body of the operation. Raises ValidationError."""
    return {
        "label": texts.get("label", ""),
        "kind": texts.get("kind", ""),
        "manifest": manifest_of(fields, texts, before),
    }


async def _fields(request: ApiRequest) -> FieldSpecs:
    schema = await load_schema(request.work, request.actor.workspace_id, request.ids["databaseId"])
    return schema.fields


async def _view(request: ApiRequest) -> ViewShape:
    database_id, view_id = request.ids["databaseId"], request.ids["viewId"]
    return await get_view(request.work, request.actor, database_id, view_id)


def _records(request: ApiRequest, view: ViewShape | None = None) -> str:
    """The page of the records, as a view shows them."""
    path = f"/workspaces/{request.workspace_id}/databases/{request.ids['databaseId']}"
    return queried(path, view=None if view is None else view.id)


async def _page(
    request: ApiRequest, fields: FieldSpecs, form: ViewForm, view: ViewShape | None
) -> Response:
    database = await get_database(request.work, request.actor, request.ids["databaseId"])
    shell = await shell_of(request)
    place = f"/databases/{database.id}/views"
    kinds = _CREATABLE if view is None or view.kind in _CREATABLE else [view.kind]
    try:
        body = _values(fields, form.entered.texts, {} if view is None else view.manifest)
    except ValidationError:
        body = {"label": form.entered.text("label")}
    method, api = ("POST", place) if view is None else ("PATCH", f"{place}/{view.id}")
    return page(
        request,
        "view_form.html",
        shell,
        entered=form.entered,
        form=form,
        database=database,
        view=view,
        at=place if view is None else f"{place}/{view.id}/edit",
        place=place,
        records=_records(request, view),
        known="" if view is None else wire_timestamp(view.updated_at),
        kinds=[(kind.value, sentence_case(plain(kind))) for kind in kinds],
        singles=[(f"manifest.{key}", *_LABELS[key]) for key in FIELD_KEYS],
        fields=[("", "—"), *((key, spec.label) for key, spec in fields.items())],
        comparisons=[("", "—"), *COMPARISONS],
        call=curl(shell.base, method, f"/v1{api}", json.dumps(body, ensure_ascii=False)),
    )
