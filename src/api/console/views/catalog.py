"""The facts by which a script shows the views of a database, and edits them."""

from collections.abc import Mapping, Sequence
from typing import Any

from api.console.words import plain, sentence_case
from api.kernel.routing import ApiRequest
from models.core.access.rules import Level
from models.core.base import JsonObject
from models.core.filters.grammar import LISTS, MAX_DEPTH, MAX_LEAVES, OPERATORS, Op, ValueForm
from models.core.filters.operands import PERIODS, Direction, Unit
from models.data.databases.shapes import DatabaseDetail
from models.data.fields.queries import database_level
from models.data.fields.rules.fields import FieldSpec, FieldSpecs
from models.data.fields.rules.settings import usable_aggregates
from models.data.fields.rules.values import value_form
from models.data.records.rules.query.ordering import can_be_sorted
from models.data.records.rules.query.plan import can_be_grouped
from models.data.records.shapes import MAX_SORTS
from models.data.views.rules.kinds import ChartType, ViewKind
from models.data.views.rules.manifest import serving
from models.data.views.shapes import ViewShape

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
