"""The OpenAPI document of the platform."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic.alias_generators import to_pascal

from api.kernel.openapi import render
from api.kernel.routing import Route
from api.reference.answers import describe_answers
from api.reference.bindings import FILTER_KEYS, WithBindings
from api.reference.changes import INPUTS, allow_references, operation_inputs
from api.reference.events import describe_events
from api.reference.examples import show_examples
from api.reference.items import CONFIGS as ITEMS
from api.reference.items import item_configs, items_by_kind
from api.reference.kinds import ByKind
from api.reference.schemas import Schema, describe, reached, ref, resolved, untitled
from models.automation.actions.rules.configs import CONFIGS as ACTIONS
from models.automation.actions.rules.configs import ActionKind
from models.automation.automations.rules.graph.catalog import NAMED
from models.automation.automations.rules.graph.configs import CONFIGS as NODES
from models.automation.automations.rules.graph.node_checks import DECIDING, STATIC
from models.automation.automations.rules.graph.shapes import Graph
from models.automation.automations.rules.language.binding_shapes import Binding
from models.automation.automations.rules.triggers.kinds import TriggerConfig
from models.content.surfaces.shapes import SurfaceContent
from models.core.filters.shapes import Filter
from models.data.fields.rules.kinds import FieldKind
from models.data.fields.rules.settings_shapes import settings_model
from models.data.records.shapes import Aggregation, GroupBy, GroupLevels, RecordQuery, Sort
from models.data.views.shapes import Manifest
from models.sources.connections.providers import PROVIDERS
from models.sources.data_sources.rules.configs import CONFIGS as SOURCES
from models.sources.external_resources.rules.resources import ProviderResource
from models.workspace.starters.shapes import LoosePlan

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
    *ITEMS.values(),
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

_PARTIAL: Schema = {
    "title": "PartialConfig",
    "description": (
        "A config that is not complete: that of a draft, whose problems are `referenceIssues` until"
        " it is published, or one whose other keys `input` gives."
    ),
    "type": "object",
    "additionalProperties": True,
}


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
    whole: dict[str, Any] = resolved(document, schemas)
    describe_answers(whole, as_sent=shapes["PlannedOperation"])
    show_examples(whole)
    whole["components"]["schemas"] = dict(sorted(whole["components"]["schemas"].items()))
    return whole


def _add(schemas: dict[str, Schema], name: str, schema: Schema) -> None:
    """Add a component. Raises RuntimeError for a name that stands for something else already."""
    known = schemas.setdefault(name, schema)
    if resolved(untitled(known), schemas) != resolved(untitled(schema), schemas):
        raise RuntimeError(f"The document has two components with the name {name}.")


def _parts(bodies: Mapping[str, Schema]) -> dict[str, Schema]:
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
    schemas = describe({**plain, **configs}) | {"PartialConfig": _PARTIAL}
    schemas = {name: resolved(schema, {**bodies, **schemas}) for name, schema in schemas.items()}
    shared = bodies.keys() | reached(schemas, iter(plain))
    fixed = dict.fromkeys(reached(schemas, iter(["Filter"])), FILTER_KEYS) | _fixed()
    bound = WithBindings(schemas, shared, fixed)
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


def _with_kind(kind: ActionKind, config: Schema) -> Schema:
    """The config of an action, which may repeat the kind of the action."""
    named = {"kind": {"type": "string", "const": kind.value}}
    title = f"{to_pascal(kind)}ActionConfig"
    return {**config, "title": title, "properties": {**named, **config.get("properties", {})}}


def _unions() -> list[ByKind]:
    nodes = {kind.value: model.__name__ for kind, model in NODES.items()}
    actions = {kind.value: f"{to_pascal(kind)}ActionConfig" for kind in ACTIONS}
    steps = {kind.value: model.__name__ for kind, model in ACTIONS.items()}
    del steps[ActionKind.SEQUENCE]
    fields = {kind.value: settings_model(kind).__name__ for kind in FieldKind}
    sources = {kind.value: model.__name__ for kind, model in SOURCES.items()}
    providers = {name.value: one.config.__name__ for name, one in PROVIDERS.items()}
    return [
        ByKind("GraphNode", "config", nodes, "{}Node".format, partial=True),
        ByKind("Step", "config", steps, "{}Step".format, partial=True),
        ByKind("CreateAction", "config", actions, "Create{}Action".format),
        ByKind("ActionItemConfig", "config", actions, "{}ActionItemConfig".format),
        ByKind("ActionDetail", "config", actions, "{}Action".format),
        ByKind("CreateField", "settings", fields, "Create{}Field".format),
        ByKind("ConvertField", "settings", fields, "ConvertTo{}Field".format),
        ByKind("FieldShape", "settings", fields, "{}Field".format),
        ByKind("CreateDataSource", "config", sources, "Create{}DataSource".format),
        ByKind("DataSourceItemConfig", "config", sources, "{}DataSourceItemConfig".format),
        ByKind("PreviewDataSource", "config", sources, "Preview{}DataSource".format),
        ByKind("DataSourceDetail", "config", sources, "{}DataSource".format),
        ByKind("CreateConnection", "config", providers, "Create{}Connection".format, by="provider"),
        ByKind("ConnectionDetail", "config", providers, "{}ConnectionDetail".format, by="provider"),
        items_by_kind(),
        ByKind("Operation", "input", INPUTS, "{}Operation".format),
        ByKind("PlannedOperation", "input", INPUTS, "Planned{}Operation".format),
    ]


def _any_kind(schemas: dict[str, Schema], body: str, part: str, configs: Iterable[str]) -> None:
    """A change does not repeat the kind, so what it changes is one of the configs of all kinds."""
    was = schemas[body]["properties"][part]
    nothing = [{"type": "null"}] if {"type": "null"} in was.get("anyOf", []) else []
    options = [ref(config) for config in dict.fromkeys(configs)]
    schemas[body]["properties"][part] = {"anyOf": [*options, *nothing]}
