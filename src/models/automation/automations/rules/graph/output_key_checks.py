"""Warnings about keys that a node reads of another's output and never finds (decisions C8).

They refuse nothing: a binding of such a key gives null, and a graph may have lived with that.
"""

from collections.abc import Iterator

from models.automation.automations.rules.graph.kinds import shorten
from models.automation.automations.rules.graph.outputs import (
    AFTER_FAILURE,
    SIMULATED,
    readable_keys,
)
from models.automation.automations.rules.graph.shapes import Graph, GraphNode
from models.automation.automations.rules.graph.structure import Problem
from models.automation.automations.rules.language.record_paths import plain_reads
from models.automation.automations.rules.language.static_reads import (
    expressions_of,
    filter_paths_of,
    paths_of,
)
from models.core.nearest import known


def output_key_warnings(graph: Graph) -> Iterator[Problem]:
    """The reads of keys that no output of the other node has, each with those there are."""
    keys = {node.id: _keys(node) for node in graph.nodes}
    for node in graph.nodes:
        for other, key in sorted(set(_reads(node))):
            there = keys.get(other)
            if there is None or key in {*there, *AFTER_FAILURE, SIMULATED}:
                continue
            has = known(key, there) if there else "it is empty"
            what = f'"{shorten(key)}" of the output of the node "{shorten(other)}"'
            yield node.id, f"It reads {what}, which never has it; {has}."


def _keys(node: GraphNode) -> list[str] | None:
    """The keys of a node's output in a fixed order; None when they cannot be known."""
    keys = readable_keys(node.kind, node.parameters())
    mocked = (node.mock.output or {}) if node.mock is not None else {}
    return None if keys is None else sorted({*keys, *mocked})


def _reads(node: GraphNode) -> Iterator[tuple[str, str]]:
    """The nodes and keys of their outputs that a node reads without asking whether they are."""
    paths = [*paths_of(node), *filter_paths_of(node)]
    for text in expressions_of(node):
        paths += (("nodes", *path) for path in plain_reads(text, "nodes"))
    for path in paths:
        match path:
            case "nodes", other, key, *_:
                yield other, key
