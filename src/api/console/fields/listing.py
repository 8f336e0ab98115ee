"""The list of the fields of a database: what each holds, its place, and what uses it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from starlette.responses import Response

from api.console.entered import Form
from api.console.fields import routes
from api.console.fields.offers import target_of, targets_of
from api.console.forms import moved_row, paged
from api.console.rendering import console_page, see_other
from api.console.routing import page_router
from api.console.words import plain, sentence_case
from api.console.workspace.settings import Notice
from api.kernel.routing import Access, ApiRequest
from api.routers.data import databases as api
from models.core.access.rules import Level, Scope
from models.core.base import Id
from models.data.databases.queries import get_database
from models.data.fields.rules.fields import OPTION_KINDS, TITLE_KEY, FieldKind
from models.data.fields.shapes import FieldShape
from models.workspace.impact.field_usages import FieldUsages, field_usages
from runtime.errors import ConflictError

router = page_router()

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


@router.get(routes.FIELDS_PAGE, access=paged(_READ))
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


@router.post(f"{routes.FIELD_PAGE}/move", access=routes.CHANGE, errors=[ConflictError])
async def move_field(request: ApiRequest, body: Step) -> Response:
    """Put a field before the one above it, or behind the one below it."""
    field = await routes.field_of(request)
    database = await get_database(request.work, request.actor, field.database_id)
    before = [one.id for one in database.fields].index(field.id)
    ordered = moved_row(database.fields, body.to, before)
    for place, one in enumerate(ordered):
        if one.order != place:
            await routes.update_by(request, one, {"order": place})
    return see_other(routes.fields_path(field.database_id))


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
