"""A workspace with an item of every kind, a field of every kind and an action of every kind."""

from collections.abc import Mapping
from typing import Any, get_args

from models.automation.actions.rules import CONFIGS as ACTION_CONFIGS
from models.automation.actions.rules import ActionKind
from models.automation.automations.rules.graph.configs import CONFIGS as NODE_CONFIGS
from models.automation.automations.rules.graph.kinds import NodeKind
from models.automation.automations.rules.triggers.kinds import TriggerConfig, TriggerKind
from models.content.items.rules import ItemKind
from models.content.surfaces.rules.contents import SurfaceKind
from models.core.base import Input
from models.data.fields.rules.fields import FieldKind
from models.data.views.rules.kinds import ViewKind
from models.sources.data_sources.rules import CONFIGS as SOURCE_CONFIGS
from models.sources.data_sources.rules import DataSourceKind
from tests.contract.furnished import Furnished

Json = dict[str, Any]

POSTGRESQL: Json = {
    "provider": "postgresql",
    "label": "Shop",
    "config": {"host": "db.example.com", "database": "shop", "user": "reader"},
    "credentials": {"password": "a password"},
}
OPTIONS = [{"name": "Open", "key": "open"}, {"name": "Done", "key": "done"}]
VALUES: dict[FieldKind, Any] = {
    FieldKind.TEXT: "words",
    FieldKind.LONG_TEXT: "more\nwords",
    FieldKind.RICH_TEXT: "**words**",
    FieldKind.NUMBER: 1.5,
    FieldKind.CURRENCY: 12,
    FieldKind.PERCENT: 0.25,
    FieldKind.RATING: 4,
    FieldKind.DURATION: 90_000,
    FieldKind.CHECKBOX: True,
    FieldKind.DATE: "2026-01-05",
    FieldKind.DATETIME: "2026-01-05T10:00:00.000Z",
    FieldKind.TIME: "10:30",
    FieldKind.SELECT: "open",
    FieldKind.MULTI_SELECT: ["open", "done"],
    FieldKind.STATUS: "done",
    FieldKind.EMAIL: "ann@example.test",
    FieldKind.URL: "https://example.test/",
    FieldKind.PHONE: "+49 30 1",
    FieldKind.JSON: {"a": [1, None]},
    FieldKind.LOCATION: {"lat": 52.5, "lng": 13.4},
}
"""A value of each kind that needs nothing else to be there."""


async def furnish_fully(made: Furnished) -> None:
    """What a furnished workspace lacks."""
    await _fields(made)
    await _items(made)
    await _data_sources(made)
    await _actions(made)
    await _automation(made)
    await _automations(made)


async def _fields(made: Furnished) -> None:
    ids = made.ids
    plain: list[Json] = [{"label": kind.value, "kind": kind.value} for kind in VALUES]
    for body in plain:
        if body["kind"] in {"select", "multi_select", "status"}:
            body["options"] = OPTIONS
    named = {
        "relation": {"databaseId": ids["databaseId"], "inverseLabel": "Wholes"},
        "button": {"actionId": ids["actionId"]},
    }
    others = ["person", "file", "timer", "auto_number", "created_at", "updated_at"]
    fields = [
        *plain,
        *({"label": kind, "kind": kind} for kind in [*others, "created_by", "updated_by"]),
        *({"label": kind, "kind": kind, "settings": one} for kind, one in named.items()),
    ]
    database = await made.post(f"{made.space.path}/databases", {"label": "Whole", "fields": fields})
    ids["wholeId"] = database["id"]
    path = f"/v1/databases/{database['id']}"
    through = {"relationFieldKey": "relation", "targetFieldKey": "price"}
    for kind, settings in {
        "lookup": through,
        "rollup": {**through, "aggregate": "sum"},
        "formula": {"expression": "record.number * 2", "resultKind": "number"},
    }.items():
        await made.post(f"{path}/fields", {"label": kind, "kind": kind, "settings": settings})
    data = {kind.value: value for kind, value in VALUES.items()}
    people = {"person": [str(made.space.user_id)], "file": [ids["fileId"]]}
    relations = {"relation": [ids["recordId"]]}
    whole = await made.post(
        f"{path}/records", {"title": "One", "data": {**data, **people}, "relations": relations}
    )
    ids["wholeRecordId"] = whole["id"]
    await made.post(f"{path}/records", {"title": "Two"})
    await made.post(f"/v1/records/{whole['id']}/comments", {"body": "First."})
    needed: dict[str, Any] = {
        ViewKind.BOARD: {"stackFieldKey": "status"},
        ViewKind.CALENDAR: {"dateFieldKey": "date"},
        ViewKind.TIMELINE: {"dateFieldKey": "date", "endDateFieldKey": "datetime"},
        ViewKind.CHART: {"chart": {"type": "bar", "xFieldKey": "select"}},
        ViewKind.FORM: {"form": {"fields": [{"key": "title"}]}},
    }
    for kind in ViewKind:
        body = {"label": kind.value, "kind": kind.value, "manifest": needed.get(kind, {})}
        await made.post(f"{path}/views", body)


async def _items(made: Furnished) -> None:
    ids = made.ids
    resource = {
        "externalType": "doc",
        "externalId": "42",
        "name": "Report",
        "surfaceKind": "document",
        "capabilities": ["read"],
        "canonicalUrl": "https://docs.example.test/42",
    }
    for kind, config in {
        "note": {},
        "canvas": {},
        "dashboard": {},
        "view": {"databaseId": ids["wholeId"]},
        "external_resource": {"resource": resource},
    }.items():
        body: Json = {"kind": kind, "title": kind, "parentItemId": ids["folderId"]}
        await made.post("/v1/items", {**body, **({"config": config} if config else {})})
    private = {"kind": "page", "title": "Private", "accessMode": "restricted"}
    await made.post("/v1/items", private)
    mention = {"text": "@", "mention": {"recordId": ids["wholeRecordId"]}}
    nested = {"kind": "paragraph", "content": {"text": [mention]}}
    toggle = {"kind": "toggle", "content": {"text": [{"text": "More"}]}, "children": [nested]}
    image = {"kind": "image", "content": {"fileId": ids["fileId"]}}
    linked = {"kind": "item_link", "content": {"itemId": ids["itemId"]}}
    blocks = {"blocks": [toggle, image, linked]}
    grants = [{"userId": ids["userId"], "level": "edit"}]
    await made.put(f"/v1/items/{ids['folderId']}/access", {"accessMode": "open", "grants": grants})
    widget = {"id": "a", "kind": "view", "x": 0, "y": 0, "w": 6, "h": 2}
    layout = {"widgets": [{**widget, "config": {"viewId": ids["viewId"]}}]}
    await made.put(f"{made.space.path}/preferences/home-layout", layout)
    spent = {"targetKind": "database_record", "targetId": ids["wholeRecordId"]}
    times = {"startedAt": "2026-01-05T10:00:00.000Z", "endedAt": "2026-01-05T11:00:00.000Z"}
    await made.post(f"{made.space.path}/time-entries", {**spent, **times})
    await made.post(f"/v1/forms/{ids['formItemId']}/submissions", {"data": {"title": "Sent"}})
    await made.post(f"/v1/surfaces/{ids['surfaceId']}/blocks", blocks)


def example(model: type[Input], ids: Mapping[str, str]) -> Json:
    """The documented example of a config, whose ids are those of the workspace."""
    extra: Any = model.model_config.get("json_schema_extra")
    given = extra["examples"][0] if isinstance(extra, dict) and "examples" in extra else {}
    found: Json = _named(
        given, {"databaseId": ids["wholeId"], "recordId": ids["wholeRecordId"]}, ids
    )
    return found


def _named(given: Any, first: Mapping[str, str], ids: Mapping[str, str]) -> Any:
    if isinstance(given, list):
        return [_named(one, first, ids) for one in given]
    if not isinstance(given, dict):
        return given
    return {
        key: first.get(key) or ids.get(key) or one
        if isinstance(one, str) and key.endswith("Id")
        else _named(one, first, ids)
        for key, one in given.items()
    }


async def _actions(made: Furnished) -> None:
    for kind, model in ACTION_CONFIGS.items():
        body = {"label": kind.value, "kind": kind.value, "config": example(model, made.ids)}
        await made.post(f"{made.space.path}/actions", body)


async def _data_sources(made: Furnished) -> None:
    shop = await made.post(f"{made.space.path}/integrations/connections", POSTGRESQL)
    for kind, model in SOURCE_CONFIGS.items():
        config = example(model, made.ids)
        if kind is DataSourceKind.SQL:
            config["connectionId"] = shop["id"]
        body = {"label": kind.value, "kind": kind.value, "config": config}
        await made.post(f"{made.space.path}/data-sources", body)


async def _automations(made: Furnished) -> None:
    """Automations whose nodes and triggers name what the workspace has: each kind of both."""
    nodes = [
        {"id": kind.value, "kind": kind.value, "config": example(model, made.ids)}
        for kind, model in NODE_CONFIGS.items()
    ]
    for node in nodes:
        if node["kind"] == "action":
            node["actionId"] = made.ids["actionId"]
    graph: Json = {"nodes": nodes, "edges": []}
    models = {
        kind: model
        for model in get_args(get_args(TriggerConfig.__value__)[0])
        for kind in get_args(model.model_fields["kind"].annotation)
    }
    for kind in TriggerKind:
        config = {**example(models[kind], made.ids), "kind": kind.value}
        body = {"label": kind.value, "triggerConfig": config, "graph": graph}
        await made.post(f"{made.space.path}/automations", body)
        graph = {"nodes": nodes[:1], "edges": []}
    await made.post(f"{made.space.path}/automations", {"label": "Without a version"})


async def _automation(made: Furnished) -> None:
    """An automation whose nodes and trigger name what the workspace has."""
    ids = made.ids
    create = {"databaseId": ids["wholeId"], "data": {"title": "x"}}
    graph = {
        "nodes": [
            {"id": "make", "kind": "create_record", "config": create},
            {"id": "act", "kind": "action", "actionId": ids["actionId"], "config": {}},
        ],
        "edges": [{"from": "make", "to": "act"}],
    }
    trigger = {"kind": "record_created", "databaseId": ids["wholeId"]}
    body = {"label": "Names", "triggerConfig": trigger, "graph": graph, "enabled": True}
    automations = f"{made.space.path}/automations"
    automation = await made.post(automations, body)
    await made.post(f"{automations}/{automation['id']}/publish")


EVERYTHING: dict[str, set[str]] = {
    "item": {kind.value for kind in ItemKind},
    "field": {kind.value for kind in FieldKind},
    "view": {kind.value for kind in ViewKind},
    "action": {kind.value for kind in ActionKind},
    "data_source": {kind.value for kind in DataSourceKind},
    "surface": {kind.value for kind in SurfaceKind},
    "trigger": {kind.value for kind in TriggerKind},
    "node": {kind.value for kind in NodeKind},
}
"""Kinds of rows, and the kinds that such a workspace has of them."""
