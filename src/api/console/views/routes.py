"""Views of a database: facts for the script that shows them, and forms that change them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

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
from models.core.access.rules import Level
from models.core.base import JsonObject
from models.core.filters.grammar import LISTS, MAX_DEPTH, MAX_LEAVES, OPERATORS, Op, ValueForm
from models.core.filters.operands import PERIODS, Direction, Unit
from models.core.values import read_moment
from models.data.databases.shapes import DatabaseDetail
from models.data.databases.store import get_database
from models.data.fields.queries import database_level, load_schema
from models.data.fields.rules.fields import FieldSpec, FieldSpecs
from models.data.fields.rules.settings import usable_aggregates
from models.data.fields.rules.values import value_form
from models.data.records.rules.query.ordering import can_be_sorted
from models.data.records.rules.query.plan import can_be_grouped
from models.data.records.shapes import MAX_SORTS
from models.data.views import commands
from models.data.views.queries import get_view
from models.data.views.rules.kinds import ChartType, ViewKind
from models.data.views.rules.manifest import serving
from models.data.views.shapes import CreateView, UpdateView, ViewShape
from runtime.clock import wire_timestamp
from runtime.errors import ConflictError, ValidationError

_DATES = frozenset({ValueForm.DAY, ValueForm.MOMENT})

OPERATOR_WORDS: Mapping[Op, str] = {
    Op.EQ: "is",
    Op.NE: "is not",
    Op.IN: "is any of",
    Op.NOT_IN: "is none of",
    Op.CONTAINS: "contains",
    Op.NOT_CONTAINS: "does not contain",
    Op.STARTS_WITH: "starts with",
    Op.ENDS_WITH: "ends with",
    Op.GT: "is greater than",
    Op.GTE: "is at least",
    Op.LT: "is less than",
    Op.LTE: "is at most",
    Op.BETWEEN: "is between",
    Op.IS_EMPTY: "is empty",
    Op.IS_NOT_EMPTY: "is not empty",
    Op.HAS_ANY: "has any of",
    Op.HAS_ALL: "has all of",
    Op.HAS_NONE: "has none of",
    Op.BEFORE: "is before",
    Op.AFTER: "is after",
    Op.ON: "is on",
    Op.WITHIN: "is within",
    Op.RELATIVE: "is in",
}
_WORDS_OF_DATES: Mapping[Op, str] = {
    Op.GT: "is later than",
    Op.GTE: "is on or after",
    Op.LT: "is earlier than",
    Op.LTE: "is on or before",
}


def operators_of(form: ValueForm) -> Sequence[JsonObject]:
    """The operators of a form with the words of the filter builder."""
    words = {**OPERATOR_WORDS, **(_WORDS_OF_DATES if form in _DATES else {})}
    return [{"op": op.value, "label": words[op]} for op in OPERATORS[form]]


def field_facts(spec: FieldSpec, place: int) -> JsonObject:
    """A field: where records keep its value, and what can be asked of it."""
    form = value_form(spec)
    options = sorted(spec.options, key=lambda option: (option.order, option.key))
    return {
        "key": spec.key,
        "label": spec.label,
        "kind": spec.kind.value,
        "form": form.value,
        "place": place,
        "part": _part(spec),
        "required": spec.required,
        "isWritten": spec.stored or spec.relation,
        "options": [
            {"key": option.key, "name": option.name, "color": option.color} for option in options
        ],
        "settings": spec.settings,
        "timezone": spec.timezone,
        "databaseId": str(spec.target_id) if spec.relation else None,
        "aggregates": [aggregate.value for aggregate in usable_aggregates(form)],
        "isGrouped": can_be_grouped(spec),
        "isSorted": can_be_sorted(spec),
        "serves": serving(spec),
    }


def _part(spec: FieldSpec) -> str:
    if spec.title:
        return "title"
    if spec.relation:
        return "relations"
    return "computed" if spec.computed else "system" if spec.system else "data"


async def page_facts(
    request: ApiRequest,
    database: DatabaseDetail,
    views: Sequence[ViewShape],
    view: ViewShape | None,
    fields: FieldSpecs,
) -> JsonObject:
    """Everything that the page of a database gives to its scripts, as JSON."""
    level = await database_level(request.work, request.actor, database.id)
    scopes = request.actor.scopes
    writes = level >= Level.EDIT
    specs = [spec for spec in fields.values() if spec.kind != "button"]
    facts: dict[str, Any] = {
        "database": {
            "id": str(database.id),
            "workspaceId": str(database.workspace_id),
            "label": database.label,
        },
        "me": str(request.actor.user_id),
        "view": None if view is None else _wire(view),
        "views": [_wire(shown) for shown in views],
        "fields": [field_facts(spec, place) for place, spec in enumerate(specs)],
        "operators": {form.value: operators_of(form) for form in ValueForm},
        "lists": [form.value for form in LISTS],
        "periods": [{"key": period, "label": plain(period)} for period in PERIODS],
        "units": [unit.value for unit in Unit],
        "directions": [direction.value for direction in Direction],
        "kinds": [{"key": kind.value, "label": sentence_case(kind.value)} for kind in ViewKind],
        "chartTypes": [{"key": kind.value, "label": _CHARTS[kind]} for kind in ChartType],
        "limits": {"leaves": MAX_LEAVES, "depth": MAX_DEPTH, "sorts": MAX_SORTS},
        "canWrite": writes and "records:write" in scopes,
        "canEditViews": writes and "views:write" in scopes,
        "canEditFields": writes and "databases:write" in scopes,
        "canLock": level >= Level.MANAGE and "views:write" in scopes,
    }
    return facts


def _wire(view: ViewShape) -> JsonObject:
    return view.model_dump(mode="json", by_alias=True)


_CHARTS: Mapping[ChartType, str] = {
    ChartType.BAR: "Bars",
    ChartType.LINE: "Lines",
    ChartType.PIE: "Shares",
    ChartType.NUMBER: "Number",
}


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
