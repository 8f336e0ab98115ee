"""Checks of the fields that nodes read of records whose database is known (decisions C8)."""

from collections.abc import Collection, Iterator

from models.automation.automations.rules.graph.catalog import ReferenceCatalog
from models.automation.automations.rules.graph.kinds import NodeKind
from models.automation.automations.rules.graph.shapes import Graph
from models.automation.automations.rules.graph.structure import Problem
from models.automation.automations.rules.language.record_paths import unknown_keys, unknown_keys_of
from models.automation.automations.rules.language.static_reads import expressions_of, paths_of
from models.core.base import JsonObject
from models.data.fields.rules.fields import FieldSpecs

_WRITING = (NodeKind.CREATE_RECORD, NodeKind.UPDATE_RECORD)


def field_problems(
    graph: Graph, trigger_config: JsonObject, catalog: ReferenceCatalog
) -> Iterator[Problem]:
    """Keys that a node reads of the trigger's record, or of one that a node wrote, and never finds.

    At run time such a key would read as null, or fail the node.
    """
    records = dict(_records(graph, trigger_config, catalog))
    if not records:
        return
    for node in graph.nodes:
        for text in expressions_of(node):
            yield from ((node.id, message) for message in unknown_keys(text, records))
        for path in paths_of(node):
            yield from ((node.id, message) for message in unknown_keys_of(path, records))


def _records(
    graph: Graph, trigger_config: JsonObject, catalog: ReferenceCatalog
) -> Iterator[tuple[tuple[str, ...], Collection[str]]]:
    """The paths of records whose fields are known, with their fields."""
    fields = _fields(trigger_config, catalog)
    if fields is not None and trigger_config.get("kind") != "time_entry_completed":
        yield ("trigger", "record"), fields
        yield ("trigger", "before"), fields
    for node in graph.nodes:
        fields = _fields(node.parameters(), catalog) if node.kind in _WRITING else None
        if fields is not None:
            yield ("nodes", node.id, "record"), fields


def _fields(config: JsonObject, catalog: ReferenceCatalog) -> FieldSpecs | None:
    database_id = config.get("databaseId")
    return catalog.databases.get(database_id.lower()) if isinstance(database_id, str) else None
