"""The OpenAPI document of the platform: its operations, with configs, change sets and examples."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.alias_generators import to_pascal

from api.kernel.routing import Route
from api.reference import schemas as reference_schemas
from api.reference.events import describe_events
from api.reference.openapi import render
from models.automation.actions.rules import CONFIGS as ACTIONS
from models.automation.actions.rules import ActionKind
from models.automation.automations.rules.graph.catalog import NAMED
from models.automation.automations.rules.graph.configs import CONFIGS as NODES
from models.automation.automations.rules.graph.node_checks import DECIDING, STATIC
from models.automation.automations.rules.graph.shapes import Binding, Graph
from models.automation.automations.rules.triggers.kinds import TriggerConfig
from models.content.items.rules import ItemKind
from models.content.surfaces.shapes import SurfaceContent
from models.core.filters.shapes import Filter
from models.data.fields.rules.fields import FieldKind
from models.data.fields.rules.settings import settings_model
from models.data.forms.shapes import CreateForm
from models.data.records.shapes import Aggregation, GroupBy, GroupLevels, RecordQuery, Sort
from models.data.views.shapes import ItemViewConfig, Manifest
from models.sources.connections.providers import PROVIDERS
from models.sources.data_sources.rules import CONFIGS as SOURCES
from models.sources.external_resources.rules.resources import ProviderResource
from models.sources.mounts.queries import CreateMount
from models.workspace.changes.operations import NOTES
from models.workspace.changes.rules import NAMED as REFERENCE_PATTERN
from models.workspace.changes.rules import RULES, OperationKind
from models.workspace.starters.shapes import LoosePlan
from models.workspace.targets.items import OWNED, WITH_CONTENT
from models.workspace.targets.shapes import FileItemConfig

CONFIGS: Mapping[ItemKind, type[BaseModel]] = {
    ItemKind.VIEW: ItemViewConfig,
    ItemKind.FORM: CreateForm,
    ItemKind.FILE: FileItemConfig,
    ItemKind.EXTERNAL_RESOURCE: CreateMount,
}
"""The configs that are bodies of their own."""

_PLAIN: tuple[type[BaseModel], ...] = (
    Graph,
    Manifest,
    RecordQuery,
    Sort,
    GroupBy,
    Aggregation,
    ProviderResource,
    SurfaceContent,
    LoosePlan,
    *CONFIGS.values(),
)
"""Described as they are; bodies hold some of them, too."""

_CHANGES = {
    "UpdateAction": "CreateAction",
    "UpdateConnection": "CreateConnection",
    "UpdateDataSource": "CreateDataSource",
    "UpdateField": "CreateField",
    "CreateItemInput": "CreateItem",
    "CreateActionInput": "CreateAction",
    "CreateFieldInput": "CreateField",
    "UpdateFieldInput": "CreateField",
}
"""The bodies whose part is described by no kind, each with the one where it is."""

_PARTIAL: reference_schemas.Schema = {
    "title": "PartialConfig",
    "description": (
        "A partial config: of a draft, whose problems are `referenceIssues` until it is published,"
        " or one completed by `input`."
    ),
    "type": "object",
    "additionalProperties": True,
}


_WRITTEN = (Path(__file__).with_name("openapi.json"), Path(__file__).parents[3] / "openapi.json")
"""`openapi.json` in an installed package, and in a checkout."""


def written_document(routes: Sequence[Route]) -> dict[str, Any] | None:
    """The document that was written to `openapi.json`, if it is about these operations."""
    for path in _WRITTEN:
        if path.is_file():
            document: dict[str, Any] = json.loads(path.read_bytes())
            written = {
                (method.upper(), at) for at, item in document["paths"].items() for method in item
            }
            served = {(one.operation.method, one.path) for one in routes if one.is_documented}
            return document if written == served else None
    return None


def openapi_document(routes: Sequence[Route]) -> dict[str, Any]:
    """The whole document. To make it takes a second."""
    document = render(routes)
    schemas = document["components"]["schemas"]
    for name, schema in _parts(schemas).items():
        _add(schemas, name, schema)
    schemas.update(item_configs(schemas))
    for name, schema in operation_inputs().items():
        _add(schemas, name, schema)
    unions = _unions()
    shapes = {union.body: union.shapes(schemas) for union in unions}
    for made in shapes.values():
        schemas.update(made)
    for body, created in _CHANGES.items():
        union = next(one for one in unions if one.body == created)
        configs = [one for kind, one in union.configs.items() if kind not in union.elsewhere]
        _any_kind(schemas, body, union.part, filter(None, configs))
    allow_references(schemas)
    describe_events(document)
    whole: dict[str, Any] = reference_schemas.resolved(document, schemas)
    reference_schemas.inline_pages(whole)
    reference_schemas.drop_nulls(whole, as_sent=shapes["PlannedOperation"])
    show_examples(whole)
    whole["components"]["schemas"] = dict(sorted(whole["components"]["schemas"].items()))
    return whole


def _add(
    schemas: dict[str, reference_schemas.Schema], name: str, schema: reference_schemas.Schema
) -> None:
    """Add a component. Raises RuntimeError for a name that another component has already."""
    known = schemas.setdefault(name, schema)
    if reference_schemas.resolved(
        reference_schemas.untitled(known), schemas
    ) != reference_schemas.resolved(reference_schemas.untitled(schema), schemas):
        raise RuntimeError(f"The document has two components with the name {name}.")


def _parts(bodies: Mapping[str, reference_schemas.Schema]) -> dict[str, reference_schemas.Schema]:
    """The unnamed parts of bodies: configs, settings, filters, bindings, triggers."""
    plain: dict[str, Any] = {
        "Binding": Binding,
        "Filter": Filter,
        "GroupLevels": GroupLevels,
        "TriggerConfig": TriggerConfig,
        **_named(_PLAIN),
        **_named(settings_model(kind) for kind in FieldKind),
        **_named(SOURCES.values()),
        **_named(provider.config for provider in PROVIDERS.values()),
    }
    configs = _named([*NODES.values(), *ACTIONS.values()])
    schemas = reference_schemas.describe({**plain, **configs}) | {"PartialConfig": _PARTIAL}
    schemas = {
        name: reference_schemas.resolved(schema, {**bodies, **schemas})
        for name, schema in schemas.items()
    }
    shared_names = bodies.keys() | reference_schemas.reached(schemas, iter(plain))
    fixed = (
        dict.fromkeys(
            reference_schemas.reached(schemas, iter(["Filter"])), reference_schemas.FILTER_KEYS
        )
        | _fixed()
    )
    bound = reference_schemas.WithBindings(schemas, shared_names, fixed)
    for name in configs:
        bound.component(name)
    made = schemas | bound.made
    return made | {
        f"{to_pascal(kind)}ActionConfig": _with_kind(kind, made[model.__name__])
        for kind, model in ACTIONS.items()
    }


def _named(models: Iterable[type[BaseModel]]) -> dict[str, type[BaseModel]]:
    return {model.__name__: model for model in models}


def _fixed() -> dict[str, tuple[str, ...]]:
    """The keys of configs that take no binding."""
    nodes = {
        model.__name__: (*STATIC.get(kind, ()), *DECIDING.get(kind, ()), *NAMED.values())
        for kind, model in NODES.items()
    }
    return nodes | {"SequenceConfig": ("steps",), "ImportResourceConfig": (*NAMED.values(),)}


def _with_kind(kind: ActionKind, config: reference_schemas.Schema) -> reference_schemas.Schema:
    """The config of an action, which may repeat the kind of the action."""
    named = {"kind": {"type": "string", "const": kind.value}}
    title = f"{to_pascal(kind)}ActionConfig"
    return {**config, "title": title, "properties": {**named, **config.get("properties", {})}}


def _unions() -> list[reference_schemas.ByKind]:
    nodes = {kind.value: model.__name__ for kind, model in NODES.items()}
    actions = {kind.value: f"{to_pascal(kind)}ActionConfig" for kind in ACTIONS}
    steps = {kind.value: model.__name__ for kind, model in ACTIONS.items()}
    del steps[ActionKind.SEQUENCE]
    fields = {kind.value: settings_model(kind).__name__ for kind in FieldKind}
    sources = {kind.value: model.__name__ for kind, model in SOURCES.items()}
    providers = {name.value: one.config.__name__ for name, one in PROVIDERS.items()}
    return [
        reference_schemas.ByKind("GraphNode", "config", nodes, "{}Node".format, partial=True),
        reference_schemas.ByKind("Step", "config", steps, "{}Step".format, partial=True),
        reference_schemas.ByKind("CreateAction", "config", actions, "Create{}Action".format),
        reference_schemas.ByKind(
            "ActionItemConfig", "config", actions, "{}ActionItemConfig".format
        ),
        reference_schemas.ByKind("ActionDetail", "config", actions, "{}Action".format),
        reference_schemas.ByKind("CreateField", "settings", fields, "Create{}Field".format),
        reference_schemas.ByKind("ConvertField", "settings", fields, "ConvertTo{}Field".format),
        reference_schemas.ByKind("FieldShape", "settings", fields, "{}Field".format),
        reference_schemas.ByKind(
            "CreateDataSource", "config", sources, "Create{}DataSource".format
        ),
        reference_schemas.ByKind(
            "DataSourceItemConfig", "config", sources, "{}DataSourceItemConfig".format
        ),
        reference_schemas.ByKind(
            "PreviewDataSource", "config", sources, "Preview{}DataSource".format
        ),
        reference_schemas.ByKind("DataSourceDetail", "config", sources, "{}DataSource".format),
        reference_schemas.ByKind(
            "CreateConnection", "config", providers, "Create{}Connection".format, by="provider"
        ),
        reference_schemas.ByKind(
            "ConnectionDetail", "config", providers, "{}ConnectionDetail".format, by="provider"
        ),
        items_by_kind(),
        reference_schemas.ByKind("Operation", "input", INPUTS, "{}Operation".format),
        reference_schemas.ByKind("PlannedOperation", "input", INPUTS, "Planned{}Operation".format),
    ]


def _any_kind(
    schemas: dict[str, reference_schemas.Schema], body: str, part: str, configs: Iterable[str]
) -> None:
    """A change does not repeat the kind, so what it changes is one of the configs of all kinds."""
    was = schemas[body]["properties"][part]
    nothing = [{"type": "null"}] if {"type": "null"} in was.get("anyOf", []) else []
    options = [reference_schemas.ref(config) for config in dict.fromkeys(configs)]
    schemas[body]["properties"][part] = {"anyOf": [*options, *nothing]}


def item_configs(
    bodies: Mapping[str, reference_schemas.Schema],
) -> dict[str, reference_schemas.Schema]:
    """The other configs: the body that creates the target, without what its item says."""
    return {
        _config(kind): _without(bodies[f"Create{to_pascal(kind)}"], owned, _config(kind))
        for kind, owned in OWNED.items()
    }


def items_by_kind() -> reference_schemas.ByKind:
    """The body of create item by its kind."""
    configs: dict[str, str | None] = dict.fromkeys(ItemKind)
    configs |= dict.fromkeys(WITH_CONTENT, SurfaceContent.__name__)
    configs |= {kind.value: model.__name__ for kind, model in CONFIGS.items()}
    configs |= {kind.value: _config(kind) for kind in OWNED}
    content = {kind.value: "content" for kind in WITH_CONTENT}
    name = "Create{}Item".format
    return reference_schemas.ByKind(
        "CreateItem", "config", configs, name, elsewhere=content, needed=True
    )


def _config(kind: ItemKind) -> str:
    return f"{to_pascal(kind)}ItemConfig"


def _without(
    body: reference_schemas.Schema, owned: tuple[str, ...], title: str
) -> reference_schemas.Schema:
    properties = {key: one for key, one in body["properties"].items() if key not in owned}
    # An automation without a graph begins with an empty one.
    required = [key for key in body.get("required", []) if key not in {*owned, "graph"}]
    given = {key: one for key, one in body.items() if key not in {"required", "examples"}}
    return {**given, "title": title, "properties": properties} | (
        {"required": required} if required else {}
    )


INPUTS = {kind.value: f"{to_pascal(kind.value)}Input" for kind in OperationKind}
"""The component of each kind's input."""

_REFERENCE: reference_schemas.Schema = {
    "title": "Reference",
    "description": "In place of an id: what the operation, or part of it, with this `ref` created.",
    "type": "object",
    "properties": {"ref": {"type": "string", "pattern": f"^{REFERENCE_PATTERN}$"}},
    "required": ["ref"],
    "additionalProperties": False,
}
_REFERRING: reference_schemas.Schema = {
    "title": "Referring",
    "description": "The same, with a `Reference` in place of any id.",
    "type": "object",
    "additionalProperties": True,
}


def operation_inputs() -> dict[str, reference_schemas.Schema]:
    """The inputs, and the parts that no body of an operation has."""
    models = {model.__name__: model for rule in RULES.values() for model in (rule.about, rule.body)}
    schemas = reference_schemas.describe(models)
    inputs = {
        INPUTS[kind.value]: _joined(
            schemas[rule.about.__name__], schemas[rule.body.__name__], INPUTS[kind.value], kind
        )
        for kind, rule in RULES.items()
    }
    parts = {name: schema for name, schema in schemas.items() if name not in models}
    return {**parts, **inputs, "Reference": _REFERENCE, "Referring": _REFERRING}


def _joined(
    about: reference_schemas.Schema, body: reference_schemas.Schema, title: str, kind: OperationKind
) -> reference_schemas.Schema:
    note = NOTES[kind]
    # As in the bodies themselves: a key that is left out of a change stays as it is.
    left_out = {"title", "default"} if kind.value.startswith("update_") else {"title"}
    properties = {
        key: {name: one for name, one in schema.items() if name not in left_out}
        for key, schema in {**about.get("properties", {}), **body.get("properties", {})}.items()
    }
    return {
        **body,
        "title": title,
        "description": note.says,
        "properties": properties,
        "required": [*about.get("required", ()), *body.get("required", ())],
        "examples": [note.example],
    }


def allow_references(schemas: dict[str, reference_schemas.Schema]) -> None:
    """Replace each id in an input by a reference."""
    for name in INPUTS.values():
        properties = schemas[name]["properties"].items()
        schemas[name]["properties"] = {key: _referring(one, schemas) for key, one in properties}


def _referring(
    schema: reference_schemas.Schema, schemas: Mapping[str, reference_schemas.Schema]
) -> reference_schemas.Schema:
    if "anyOf" in schema:
        options: list[Any] = []
        for option in schema["anyOf"]:
            found = _referring(option, schemas)
            options += [each for each in found.get("anyOf", [found]) if each not in options]
        return {**schema, "anyOf": options}
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            return {**schema, key: _referring(schema[key], schemas)}
    if schema.get("format") == "uuid":
        return {"anyOf": [schema, reference_schemas.ref("Reference")]}
    parts = [
        schemas[name]
        for name in reference_schemas.reached(schemas, reference_schemas.references(schema))
    ]
    holds_ids = any(_holds_id(part) for part in parts)
    return {"anyOf": [schema, reference_schemas.ref("Referring")]} if holds_ids else schema


def _holds_id(part: object) -> bool:
    if isinstance(part, list):
        return any(_holds_id(one) for one in part)
    if not isinstance(part, dict):
        return False
    named = any(key.endswith(("Id", "Ids")) for key in part.get("properties", ()))
    return named or part.get("format") == "uuid" or any(_holds_id(one) for one in part.values())


_RECORDED = Path(__file__).parent / "examples.json"
_JSON = "application/json"


def show_examples(document: dict[str, Any]) -> None:
    """Give every body its example, and every success with data."""
    recorded = json.loads(_RECORDED.read_text())
    for methods in document["paths"].values():
        for operation in methods.values():
            call = recorded.get(operation["operationId"], {})
            answers = [one for status, one in operation["responses"].items() if status < "300"]
            _show(call, "body", [operation.get("requestBody", {})])
            _show(call, "answer", answers)


def _show(call: dict[str, Any], name: str, places: list[Any]) -> None:
    for place in places:
        shown = place.get("content", {}).get(_JSON, {})
        if name in call and "schema" in shown:
            shown["example"] = call[name]
