"""A new automation, and the starters that it can begin with.

A starter is a graph with its trigger, named after the job it does. In its texts `$orders` is the id
of a table, and `$orders.total` the key of a field. The table is created with the automation, or is
an existing one whose fields are matched by key, name or kind.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from starlette.responses import Response

from api.console.entered import Entered, Form, read_as, redisplays
from api.console.forms import paged
from api.console.rendering import console_page, see_other
from api.console.routing import page_router
from api.kernel.routing import Access, ApiRequest
from api.routers.automation import automations as api
from api.routers.automation.automations import AUTOMATIONS
from models.automation.automations.commands import create_automation
from models.automation.automations.shapes import CreateAutomation
from models.core.access.rules import Level, Scope
from models.core.base import JsonObject
from models.data.databases import store as databases
from models.data.databases.shapes import CreateDatabase, DatabaseDetail
from models.data.databases.store import create_database
from models.data.fields.shapes import FieldShape
from runtime.errors import DeniedError, ValidationError
from runtime.package_data import read_yaml

router = page_router()

_ALL = AUTOMATIONS.removeprefix("/v1")

_SHOW_NEW = paged(Access(scopes=[Scope.AUTOMATIONS_WRITE], level=Level.EDIT))

_CREATE = replace(_SHOW_NEW, idempotent=True, joins=True)
_MOST = 100
"""Tables that are offered, the newest first."""
NEW = "new"
EMPTY = "blank"
"""The key of the starter without nodes."""

_GROUPS = {
    "basics": "First steps",
    "approvals": "Approvals",
    "records": "Records",
    "messages": "Reports and messages",
    "calls": "Other systems",
}


class NoNewTableError(DeniedError):
    """A starter would create a table, and the person may not."""

    advice = "Choose an existing database."

    def __init__(self) -> None:
        super().__init__("You don't have permission to create databases.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table that a starter works on."""

    label: str
    fields: Sequence[JsonObject]


@dataclass(frozen=True, slots=True, kw_only=True)
class Starter:
    """An automation to begin with.

    `sample` holds values of a record of the first table, and `payload` what the trigger gives
    where that is no record. What runs only with another system is `outside`.
    """

    key: str
    title: str
    says: str
    icon: str
    trigger: JsonObject
    nodes: Sequence[JsonObject] = ()
    edges: Sequence[Sequence[str]] = ()
    tables: Mapping[str, Table] = field(default_factory=dict)
    needs: Sequence[str] = ()
    sample: JsonObject | None = None
    payload: JsonObject | None = None
    outside: bool = False

    @property
    def requirements(self) -> list[str]:
        """The tables and other things it needs, in words."""
        return [*(f"Database: {table.label}" for table in self.tables.values()), *self.needs]


@cache
def starters() -> Mapping[str, Mapping[str, Starter]]:
    """The starters by their key, in groups, in the order they are shown."""
    return {title: _group(name) for name, title in _GROUPS.items()}


def _group(name: str) -> Mapping[str, Starter]:
    return {one["key"]: _read(one) for one in read_yaml("api.console.automations", f"{name}.yaml")}


def _read(raw: JsonObject) -> Starter:
    tables = {name: Table(**table) for name, table in raw.get("tables", {}).items()}
    return Starter(**{**raw, "tables": tables})


def starter_of(key: str) -> Starter:
    """The starter of a key. Raises ValidationError."""
    for group in starters().values():
        if key in group:
            return group[key]
    raise ValidationError.at("starter", "Starter not found.")


@dataclass(frozen=True, slots=True)
class Place:
    """The table that a name of a starter stands for, and its fields by the keys of the starter."""

    database_id: str
    keys: Mapping[str, str]


_NAME = re.compile(r"\$([a-z]+)(?:\.([a-z]+))?")


def filled(value: object, places: Mapping[str, Place]) -> object:
    """A part of a starter with tables and fields in place of their names."""
    if isinstance(value, dict):
        return {filled(key, places): filled(one, places) for key, one in value.items()}
    if isinstance(value, list):
        return [filled(one, places) for one in value]
    return _NAME.sub(lambda name: _named(name, places), value) if isinstance(value, str) else value


def _named(name: re.Match[str], places: Mapping[str, Place]) -> str:
    place = places.get(name[1])
    if place is None:
        return name[0]
    return place.database_id if name[2] is None else place.keys[name[2]]


def document_of(starter: Starter, places: Mapping[str, Place]) -> JsonObject:
    """The graph and the trigger of a starter, for these tables."""
    graph: JsonObject = {
        "nodes": filled(list(starter.nodes), places),
        "edges": [_edge(*edge) for edge in starter.edges],
    }
    payload = starter.payload
    if starter.sample is not None:
        payload = {"record": _record(starter, places)}
    if payload is not None:
        graph["testPayloads"] = [{"id": "example", "name": "Example", "payload": payload}]
    return {"graph": graph, "triggerConfig": filled(starter.trigger, places)}


def _edge(source: str, target: str, outcome: str = "always", case: str | None = None) -> JsonObject:
    edge = {"from": source, "to": target, "outcome": outcome}
    return edge if case is None else {**edge, "caseKey": case}


def _record(starter: Starter, places: Mapping[str, Place]) -> JsonObject:
    sample = dict(starter.sample or {})
    keys = next(iter(places.values())).keys
    title = sample.pop("title", None)
    return {"title": title, "data": {keys[key]: value for key, value in sample.items()}}


def matched(table: Table, fields: Sequence[FieldShape]) -> Mapping[str, str]:
    """The keys of an existing table by the keys of the starter.

    A field is matched by key, then by name, then by kind. Without a match its key is kept, and the
    draft reports that the table has no such field.
    """
    existing: dict[str, str] = {}
    for fits in (_same_key, _same_name, _same_kind):
        for wanted in table.fields:
            taken = existing.values()
            free = (one.key for one in fields if one.key not in taken and fits(wanted, one))
            if wanted["key"] not in existing and (key := next(free, "")):
                existing[wanted["key"]] = key
    keys = (str(wanted["key"]) for wanted in table.fields)
    return {key: existing.get(key, key) for key in keys}


def _same_key(wanted: JsonObject, there: FieldShape) -> bool:
    return bool(there.key == wanted["key"])


def _same_name(wanted: JsonObject, there: FieldShape) -> bool:
    return bool(there.label.casefold() == wanted["label"].casefold())


def _same_kind(wanted: JsonObject, there: FieldShape) -> bool:
    return bool(there.kind == wanted["kind"] and there.key != "title")


class NewAutomation(Form):
    """A name, the starter, and its tables in their order: an id, or `new`."""

    label: str = ""
    starter: str = EMPTY
    first_table: str = NEW
    second_table: str = NEW

    @property
    def tables(self) -> list[str]:
        return [self.first_table, self.second_table]


@router.get(f"{_ALL}/new", access=_SHOW_NEW)
async def get_new_automation(request: ApiRequest, starter: str | None = None) -> Response:
    """Choose what a new automation begins with, then its name and its tables."""
    if starter is None:
        return await _gallery(request)
    chosen = starter_of(starter)
    label = "" if starter == EMPTY else chosen.title
    return await _form(request, chosen, Entered({"label": label}))


async def _again(request: ApiRequest, entered: Entered) -> Response:
    return await _form(request, starter_of(entered.texts.get("starter", EMPTY)), entered)


@router.post(_ALL, access=_CREATE)
@redisplays(_again)
async def create_automation_by_form(request: ApiRequest, body: NewAutomation) -> Response:
    """Create an automation whose draft is the starter, and lead to the draft."""
    starter = starter_of(body.starter)
    wanted = zip(starter.tables.items(), body.tables, strict=False)
    places = {name: await _place(request, table, id_) for (name, table), id_ in wanted}
    document = document_of(starter, places)
    creation = read_as(CreateAutomation, {"label": body.label, "enabled": True, **document})
    automation = await create_automation(
        request.work, request.actor, request.services.keys, creation
    )
    return see_other(f"/workspaces/{request.workspace_id}/automations/{automation.id}/edit")


async def _place(request: ApiRequest, table: Table, chosen: str) -> Place:
    """The table that was chosen, or a new one. Raises NoNewTableError and ValidationError."""
    if chosen != NEW:
        there = next((one for one in await _tables(request) if str(one.id) == chosen), None)
        if there is None:
            raise ValidationError.at("table", "Database not found. Choose another one.")
        return Place(chosen, matched(table, there.fields))
    if Scope.DATABASES_WRITE not in request.actor.scopes:
        raise NoNewTableError
    wanted = read_as(CreateDatabase, {"label": table.label, "fields": list(table.fields)})
    made = await create_database(request.work, request.actor, wanted)
    return Place(str(made.id), {described["key"]: described["key"] for described in table.fields})


async def _tables(request: ApiRequest) -> Sequence[DatabaseDetail]:
    if Scope.DATABASES_READ not in request.actor.scopes:
        return []
    turn = request.page("console databases", _MOST, None)
    return (await databases.list_databases(request.work, request.actor, turn)).databases


async def _gallery(request: ApiRequest) -> Response:
    return await console_page(
        request,
        "new_automation.html",
        api.create_automation,
        groups=starters(),
        starter=None,
    )


async def _form(request: ApiRequest, starter: Starter, entered: Entered) -> Response:
    names: Iterator[str] = iter(["firstTable", "secondTable"])
    return await console_page(
        request,
        "new_automation.html",
        api.create_automation,
        entered=entered,
        starter=starter,
        asked=[(name, table) for name, table in zip(names, starter.tables.values(), strict=False)],
        tables=await _tables(request) if starter.tables else (),
        new=NEW if Scope.DATABASES_WRITE in request.actor.scopes else None,
    )
