"""Graphs as runs execute them, kept in memory: addressed by content, a graph never changes."""

from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cached_property

from temporalio.exceptions import ApplicationError

from models.automation.automations.queries import read_graph
from models.automation.automations.rules.graph.kinds import NodeKind
from models.automation.automations.rules.graph.shapes import GraphNode
from models.automation.automations.rules.language.static_reads import references
from models.automation.automations.rules.planner.plan import Plan, PlanNode, PlanRetry
from models.automation.automations.stored_graphs import stored_graph
from models.core.base import Id, JsonObject
from runtime.database import Database
from runtime.work import Work


@dataclass(frozen=True, slots=True)
class ExecutableNode:
    """A node with what its execution needs; `reads` None means any other node's output."""

    id: str
    kind: str
    label: str
    retry: PlanRetry | None
    timeout_seconds: int
    parameters: JsonObject
    mock: JsonObject | None
    reads: frozenset[str] | None
    action_id: str | None = None

    @property
    def names_attributes(self) -> bool:
        """True for a node that gives its run attributes."""
        return self.kind == NodeKind.TRANSFORM and bool(self.parameters.get("attributes"))


@dataclass(frozen=True)
class ExecutableGraph:
    plan: Plan
    nodes: dict[str, ExecutableNode]
    variables: JsonObject = field(default_factory=dict)

    @cached_property
    def names_attributes(self) -> bool:
        """True when one of its nodes gives its run attributes."""
        return any(node.names_attributes for node in self.nodes.values())

    def label(self, node_id: str) -> str:
        """The name a person gives the node."""
        return self.nodes[node_id].label or node_id


class GraphCache:
    """The graphs used last, by automation and checksum."""

    def __init__(self, capacity: int = 500) -> None:
        self._capacity = capacity
        self._graphs: OrderedDict[tuple[Id, str], ExecutableGraph] = OrderedDict()

    async def get(self, database: Database, automation_id: Id, checksum: str) -> ExecutableGraph:
        """The graph a run was accepted with."""
        key = (automation_id, checksum)
        graph = self._graphs.get(key)
        if graph is None:
            async with database.statement() as work:
                graph = await _load(work, automation_id, checksum)
            self._graphs[key] = graph
            if len(self._graphs) > self._capacity:
                self._graphs.popitem(last=False)
        else:
            self._graphs.move_to_end(key)
        return graph


async def _load(work: Work, automation_id: Id, checksum: str) -> ExecutableGraph:
    row = await stored_graph(work, automation_id, checksum)
    if row is None or row.plan is None:
        # No repetition mends this: the execution fails, and the reconciler closes the run.
        raise ApplicationError(
            "The graph of the run is gone.", type="graph_gone", non_retryable=True
        )
    plan = Plan.from_json(row.plan)
    planned = plan.nodes_by_id()
    graph = read_graph(row.graph)
    nodes = {node.id: _executable(node, planned[node.id]) for node in graph.nodes}
    return ExecutableGraph(plan, nodes, graph.variables)


def _executable(node: GraphNode, planned: PlanNode) -> ExecutableNode:
    parameters = node.parameters()
    return ExecutableNode(
        id=node.id,
        kind=node.kind,
        label=node.label or "",
        retry=planned.retry,
        timeout_seconds=planned.timeout_seconds,
        parameters=parameters,
        mock=node.mock.output if node.mock is not None and node.mock.enabled else None,
        reads=references(parameters),
        action_id=node.action_id,
    )
