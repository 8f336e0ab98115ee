"""Create, change and delete views of a database by forms."""

from collections.abc import Mapping
from dataclasses import replace

from starlette.responses import Response

from api.console.entered import Entered, Fields, read_as, redisplays
from api.console.forms import paged
from api.console.records.entry import COMPARISONS
from api.console.rendering import console_page, see_other
from api.console.resource_pages import act
from api.console.routing import page_router
from api.console.views import forms
from api.console.words import plain, queried, sentence_case
from api.kernel.routing import ApiRequest
from api.routers.data import databases as api
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


async def _page(
    request: ApiRequest, fields: FieldSpecs, form: forms.ViewForm, view: ViewShape | None
) -> Response:
    database = await get_database(request.work, request.actor, request.ids["databaseId"])
    place = f"/databases/{database.id}/views"
    try:
        body = _values(fields, form.entered.texts, {} if view is None else view.manifest)
    except ValidationError:
        body = {"label": form.entered.text("label")}
    return await console_page(
        request,
        "view_form.html",
        (api.create_view if view is None else api.update_view, body),
        entered=form.entered,
        form=form,
        database=database,
        view=view,
        at=place if view is None else f"{place}/{view.id}/edit",
        place=place,
        records=_records(request, view),
        known="" if view is None else wire_timestamp(view.updated_at),
        kinds=[(kind.value, sentence_case(plain(kind))) for kind in ViewKind],
        fields=[("", "—"), *((key, spec.label) for key, spec in fields.items())],
        comparisons=[("", "—"), *COMPARISONS],
    )


async def _sent_page(request: ApiRequest, entered: Entered) -> Response:
    """The form as it was sent, with a refusal or after a button of its fields or its kind."""
    view = await _view(request) if "viewId" in request.ids else None
    fields = await _fields(request)
    return await _page(request, fields, forms.sent_view_form(fields, entered, view), view)


@router.get(f"{_VIEWS}/new", access=_SHOW)
async def get_new_view(request: ApiRequest, kind: ViewKind = ViewKind.TABLE) -> Response:
    """Describe a new view of a kind."""
    fields = await _fields(request)
    return await _page(request, fields, forms.view_form(fields, None, kind), None)


@router.post(_VIEWS, access=_CHANGE, errors=[ConflictError])
@redisplays(_sent_page)
async def create_view_by_form(request: ApiRequest, body: Fields) -> Response:
    """Create a view, and lead to the records that it shows."""
    if "row" in body.texts:
        return await _sent_page(request, Entered(body.texts))
    wanted = read_as(CreateView, _values(await _fields(request), body.texts, {}))
    database_id = request.ids["databaseId"]
    view = await commands.create_view(request.work, request.actor, database_id, wanted)
    return see_other(_records(request, view))


@router.get(f"{_VIEW}/edit", access=_SHOW)
async def get_view_form(request: ApiRequest) -> Response:
    """Look at a view to change it."""
    view, fields = await _view(request), await _fields(request)
    return await _page(request, fields, forms.view_form(fields, view, view.kind), view)


@router.post(f"{_VIEW}/edit", access=_CHANGE, errors=[ConflictError])
@redisplays(_sent_page)
async def edit_view(request: ApiRequest, body: Fields) -> Response:
    """Change a view, unless it was changed since the page was made."""
    if "row" in body.texts:
        return await _sent_page(request, Entered(body.texts))
    view, texts = await _view(request), body.texts
    known = read_moment(texts.get("updatedAt"), "updatedAt")
    wanted = read_as(UpdateView, _values(await _fields(request), texts, view.manifest))
    place = (view.database_id, view.id)
    await commands.update_view(request.work, request.actor, *place, wanted, known)
    return see_other(_records(request, view))


act(
    router,
    f"{_VIEW}/delete",
    api.delete_view,
    then="/workspaces/{workspaceId}/databases/{databaseId}",
)


def _values(fields: FieldSpecs, texts: Mapping[str, str], before: JsonObject) -> JsonObject:
    """The body of the operation. Raises ValidationError."""
    return {
        "label": texts.get("label", ""),
        "kind": texts.get("kind", ""),
        "manifest": forms.manifest_of(fields, texts, before),
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
