"""Checks of secrets and variables that nodes refer to (C8)."""

from collections.abc import Iterator

from models.automation.automations.rules.graph.catalog import ReferenceCatalog
from models.automation.automations.rules.graph.kinds import shorten
from models.automation.automations.rules.graph.shapes import Graph, GraphNode
from models.automation.automations.rules.graph.structure import Problem
from models.automation.automations.rules.language.credentials import written
from models.automation.automations.rules.language.secret_marks import (
    SECRETS_LEAVE,
    SENDERS,
    no_secret,
)
from models.automation.automations.rules.language.static_reads import node_references, secrets_in
from models.core.credentials import GIVE_AGAIN, left_hidden


def value_problems(graph: Graph, catalog: ReferenceCatalog) -> Iterator[Problem]:
    """Secrets that are not there or would stay here, and variables the graph does not have.

    A graph that declares variables declares all it reads; one that declares none leaves them to
    the runs, which may bring values along (decisions D3).
    """
    for node in graph.nodes:
        yield from ((node.id, message) for message in _secret_problems(node, catalog))
        for place in left_hidden(node.parameters(), written):
            yield node.id, f"{'.'.join(map(str, place))}: {GIVE_AGAIN}"
        if not graph.variables:
            continue
        read = node_references(node, "vars") or frozenset()
        for key in sorted(read - graph.variables.keys()):
            yield node.id, f'It reads the variable "{shorten(key)}", which the graph does not have.'


def _secret_problems(node: GraphNode, catalog: ReferenceCatalog) -> Iterator[str]:
    for path, name in secrets_in(node.parameters()):
        if node.kind not in SENDERS:
            yield f"{path}: {SECRETS_LEAVE}"
        if name not in catalog.secrets:
            yield f"{path}: {no_secret(name)}"
