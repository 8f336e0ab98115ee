"""The catalog of what a graph may refer to, and the references that a graph and trigger hold."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from models.automation.automations.rules.graph.kinds import NodeKind
from models.automation.automations.rules.graph.shapes import Graph
from models.automation.automations.rules.language.bindings import without_literals
from models.automation.automations.rules.language.static_reads import secret_names
from models.core.base import Id, JsonObject
from models.data.fields.rules.fields import FieldSpecs
from runtime.ids import parse_id


class Noun(StrEnum):
    """A kind of thing that a graph or a trigger can refer to by id, besides databases."""

    ACTION = "action"
    AUTOMATION = "automation"
    CONNECTION = "connection"
    DATA_SOURCE = "data source"
    ENDPOINT = "webhook endpoint"
    FORM = "form"
    MEMBER = "member"
    VIEW = "view"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceCatalog:
    """The things in the workspace, by canonical id. `automation_id` is the graph's automation."""

    automation_id: str | None = None
    databases: Mapping[str, FieldSpecs] = field(default_factory=dict)
    """The fields of each database."""
    existing: Mapping[Noun, frozenset[str]] = field(default_factory=dict)
    triggers: Mapping[str, JsonObject] = field(default_factory=dict)
    """The trigger config of each published automation."""
    secrets: frozenset[str] = frozenset()
    """The names of existing secrets, of those a graph or its trigger refers to."""

    def has(self, noun: Noun, id_: str) -> bool:
        """True when the workspace has it, outside the trash."""
        return id_.lower() in self.existing.get(noun, frozenset())


NAMED_BY: Mapping[str, Noun] = {
    "actionId": Noun.ACTION,
    "automationId": Noun.AUTOMATION,
    "automationIds": Noun.AUTOMATION,
    "connectionId": Noun.CONNECTION,
    "dataSourceId": Noun.DATA_SOURCE,
    "endpointId": Noun.ENDPOINT,
    "formItemId": Noun.FORM,
    "viewId": Noun.VIEW,
    "assignees": Noun.MEMBER,
    "userIds": Noun.MEMBER,
}
"""The keys of configs and triggers that hold references. The plural ones hold lists."""

NAMED: Mapping[NodeKind, str] = {
    NodeKind.HTTP_REQUEST: "connectionId",
    NodeKind.SEND_WEBHOOK: "endpointId",
}
"""Parameters that only the config itself names: what a binding gives was checked by nobody."""
BY_ID_ONLY = "It takes an id and no binding."

_KEYS = frozenset({*NAMED_BY, "databaseId"})


def referenced_ids(graph: Graph, trigger_config: JsonObject) -> frozenset[Id]:
    """Every well-formed id under a reference key of a graph or its trigger."""
    ids: set[Id] = set()
    texts = [graph.failure_automation_id, *(node.action_id for node in graph.nodes)]
    for node in graph.nodes:
        texts += _ids_in(without_literals(node.parameters()))
        texts += _ids_in(without_literals(node.config))
    texts += _ids_in(trigger_config)
    for text in texts:
        parsed = parse_id(text) if text is not None else None
        if parsed is not None:
            ids.add(parsed)
    return frozenset(ids)


def named_by_author(graph: Graph) -> frozenset[tuple[Noun, Id]]:
    """The connections and endpoints a graph names, which its author must see."""
    references: set[tuple[Noun, Id]] = set()
    for node in graph.nodes:
        name = NAMED.get(node.kind)
        text = None if name is None else node.config.get(name)
        parsed = parse_id(text) if isinstance(text, str) else None
        if name is not None and parsed is not None:
            references.add((NAMED_BY[name], parsed))
    return frozenset(references)


def referenced_secrets(graph: Graph, trigger_config: JsonObject) -> frozenset[str]:
    """The name of every secret a graph or its trigger names."""
    named = [secret_names(node.parameters()) for node in graph.nodes]
    if isinstance(trigger_config.get("secretName"), str):
        named.append(frozenset({trigger_config["secretName"]}))
    return frozenset().union(*named)


def _ids_in(value: object) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _ids_in(item)
    if not isinstance(value, dict):
        return
    for key, item in value.items():
        if key in _KEYS and isinstance(item, str):
            yield item
        elif key in _KEYS and isinstance(item, list):
            yield from (text for text in item if isinstance(text, str))
        else:
            yield from _ids_in(item)
