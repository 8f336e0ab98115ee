"""What the compiler is told about the workspace, and what it has to be told about."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from models.automations.rules.bindings import without_literals
from models.automations.rules.graph import Graph
from models.base import Id
from runtime.ids import parse_id


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceFacts:
    """What exists and may be used, by canonical id; `automation_id` is the graph's own."""

    automation_id: str | None = None
    databases: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The field keys of each database."""
    automations: frozenset[str] = frozenset()


_NAMED = frozenset(
    {
        "actionId",
        "automationId",
        "databaseId",
        "dataSourceId",
        "failureAutomationId",
        "recordId",
        "viewId",
    }
)
_NAMED_LISTS = frozenset({"automationIds", "databaseIds", "recordIds"})


def referenced_ids(graph: Graph) -> frozenset[Id]:
    """Every well-formed id a graph names under a key that names things, at any depth."""
    found: set[Id] = set()
    texts = [graph.failure_automation_id, *(node.action_id for node in graph.nodes)]
    for node in graph.nodes:
        texts += _ids_in(without_literals(node.parameters()))
        texts += _ids_in(without_literals(node.config))
    for text in texts:
        parsed = parse_id(text) if text is not None else None
        if parsed is not None:
            found.add(parsed)
    return frozenset(found)


def _ids_in(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _ids_in(item)
    if not isinstance(value, dict):
        return
    for key, item in value.items():
        if key in _NAMED and isinstance(item, str):
            yield item
        elif key in _NAMED_LISTS and isinstance(item, list):
            yield from (text for text in item if isinstance(text, str))
        else:
            yield from _ids_in(item)
