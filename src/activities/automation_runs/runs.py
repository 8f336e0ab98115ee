"""Open runs as this process keeps them in memory: header, graph, loops and outputs.

Only committed values are kept, except for outputs that a batch is about to write. They are final
but for a run that waited and was moved to another graph: what writes a node then finds a closed
gate, and reads the run anew. A process that has no entry reads it from PostgreSQL.
"""

import json
from collections import OrderedDict
from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

from temporalio.exceptions import ApplicationError

from activities.automation_runs.nodes.logic import COMPUTATIONS
from activities.contracts import NodeEnd
from models.automation.automation_runs import execution, run_header
from models.automation.automation_runs.rules import RunClosedError
from models.automation.automations.graphs import stored_graph
from models.automation.automations.queries import read_graph
from models.automation.automations.rules.graph.configs import CONFIGS, ForEachConfig, RepeatConfig
from models.automation.automations.rules.graph.kinds import CostClass, NodeKind, OnError
from models.automation.automations.rules.graph.shapes import GraphNode
from models.automation.automations.rules.language.static_reads import references
from models.automation.automations.rules.planner import protocol
from models.automation.automations.rules.planner.plan import Plan, PlanNode, PlanRetry, costs_of
from models.automation.automations.rules.planner.planner import PlanState, Topology, topology_of
from models.core.base import Id, JsonObject
from runtime.crypto import KeyRing
from runtime.database import Database, UnitOfWork, Work

KEPT_BYTES = 64 * 1024 * 1024
"""Bytes as JSON; older entries are read again when needed."""
ENTRY_BYTES = 500
"""The bytes an entry takes beside its JSON."""

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class LruCache(Generic[_Key, _Value]):
    """A mapping that drops the values used longest ago."""

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        self._limit = limit
        self._bytes = 0
        self._entries: OrderedDict[_Key, tuple[_Value, int]] = OrderedDict()

    def known(self, key: _Key) -> _Value | None:
        """The value, if this process has it."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def keep(self, key: _Key, value: _Value, weighed: object) -> None:
        """Keep a value whose size is that of `weighed` as JSON."""
        self.forget(key)
        size = ENTRY_BYTES + len(json.dumps(weighed))
        self._entries[key] = value, size
        self._bytes += size
        while self._bytes > self._limit and len(self._entries) > 1:
            _, (_, dropped) = self._entries.popitem(last=False)
            self._bytes -= dropped

    def forget(self, key: _Key) -> None:
        """Drop a value."""
        _, size = self._entries.pop(key, (None, 0))
        self._bytes -= size


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

    @cached_property
    def only_computes(self) -> bool:
        """True when no effect of a node leaves its row."""
        kinds = {node.kind for node in self.nodes.values()}
        return kinds <= COMPUTATIONS.keys() and not self.names_attributes

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
            "The graph of the run was not found.", type="graph_gone", non_retryable=True
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


LoopConfig = ForEachConfig | RepeatConfig


@dataclass(frozen=True, slots=True)
class OpenLoop:
    """A loop that was opened, with all its items."""

    config: LoopConfig
    indexes: tuple[int, ...] = ()
    """The iterations that run; empty when all do (interface.md#runs-from-a-node)."""

    @property
    def items(self) -> list[Any] | None:
        """The items the iterations are given; None for a repeat."""
        return self.config.items if isinstance(self.config, ForEachConfig) else None

    @property
    def count(self) -> int | None:
        """The number of iterations, unless they are decided one by one."""
        if self.indexes:
            return self.indexes[-1] + 1
        return None if self.items is None else len(self.items)

    @property
    def most(self) -> int:
        """The greatest number of iterations."""
        if self.indexes:
            return len(self.indexes)
        if isinstance(self.config, RepeatConfig):
            return self.config.max_iterations
        return len(self.config.items)

    @property
    def parallelism(self) -> int:
        return self.config.parallelism if isinstance(self.config, ForEachConfig) else 1

    @property
    def stops_on_error(self) -> bool:
        return not isinstance(self.config, ForEachConfig) or self.config.on_item_error == "stop"


def read_config(kind: str, parameters: JsonObject) -> LoopConfig:
    """The parameters of a loop, checked. Raises pydantic.ValidationError."""
    config = CONFIGS[NodeKind(kind)].model_validate(parameters)
    assert isinstance(config, ForEachConfig | RepeatConfig), "only loops are opened"
    return config


OpenLoops = LruCache[tuple[Id, protocol.NodeRef], OpenLoop]
"""The loops used last, by run and place."""

Outputs = LruCache[tuple[Id, str, str, str], Any]
"""The outputs used last, by run, graph, node and scope."""


@dataclass(frozen=True, slots=True)
class Body:
    """The plan and topology that an iteration of a loop runs."""

    plan: Plan
    topology: Topology


@dataclass
class OpenRun:
    """A run that has begun."""

    header: run_header.RunHeader
    graph: ExecutableGraph
    _loops: OpenLoops
    _outputs: Outputs
    keys: KeyRing | None = None
    plan_states: dict[str, PlanState] = field(default_factory=dict)
    """The state of each execution of the run, if this process has followed it from the start."""
    writes_batches: bool = False
    """True when this process has begun it, the first of all: no node was executed before. A repeat
    reads what the iteration before has written."""
    unwritten: dict[tuple[str, str], JsonObject] = field(default_factory=dict)
    """The outputs that a batch holds, by node and scope: they alone are not committed."""
    _bodies: dict[str, Body] = field(default_factory=dict)

    @cached_property
    def plan(self) -> Plan:
        """The part of the graph that this run executes (interface.md#runs-from-a-node)."""
        header = self.header
        return run_header.executed_plan(self.graph.plan, header.start_node_id, header.options)

    @cached_property
    def costs(self) -> dict[str, CostClass]:
        """The cost class by which each node is executed."""
        return costs_of(self.plan)

    @cached_property
    def topology(self) -> Topology:
        return topology_of(self.plan)

    @property
    def is_one_write(self) -> bool:
        """True when one write may begin and end it: its nodes compute, and it ends alone."""
        header = self.header
        alone = header.ends_alone and header.options.get("refusal") is None
        return alone and self.graph.only_computes

    @cached_property
    def repeats(self) -> frozenset[str]:
        """The loops whose iterations see the one before."""
        return frozenset(node.id for node in self.plan.nodes if node.kind == NodeKind.REPEAT)

    async def skip(self, work: UnitOfWork, nodes: Iterable[tuple[str, str]]) -> None:
        """Show nodes, each in a scope, as those to which the run does not come."""
        skipped = [(node_id, scope, self.graph.nodes[node_id].kind) for node_id, scope in nodes]
        await execution.skip_nodes(work, self.header.workspace_id, self.header.run_id, skipped)

    def body(self, loop_id: str, *, stops_on_error: bool) -> Body:
        """The body that each iteration of a loop runs."""
        key = f"{loop_id}:{stops_on_error}"
        if key not in self._bodies:
            on_error = OnError.STOP if stops_on_error else OnError.CONTINUE
            plan = self.plan.iteration(loop_id, on_error)
            self._bodies[key] = Body(plan, topology_of(plan))
        return self._bodies[key]

    def chosen(self, ref: protocol.NodeRef) -> tuple[int, ...]:
        """The iterations of a loop that run, when only some do (interface.md#runs-from-a-node)."""
        scopes = (scope for scope, _ in self.plan.resumed)
        return tuple(
            sorted(protocol.index_of(scope) for scope in scopes if protocol.loop_of(scope) == ref)
        )

    def item_scope(self, scope_key: str) -> str | None:
        """The iteration whose item a scope knows: that of the innermost loop which has items, so
        that a repeat inside a for_each still knows what it is about.
        """
        scopes = protocol.own_scopes(scope_key)[:-1]
        return next(
            (one for one in scopes if protocol.loop_of(one).node_id not in self.repeats), None
        )

    def begins_with(self, scope_key: str) -> bool:
        """True when the run was asked to begin with the item of this iteration."""
        starts = run_header.starts_of(
            self.graph.plan, self.header.start_node_id, self.header.options
        )
        return any(self.item_scope(scope) == scope_key for _, scope in starts)

    async def outputs(
        self, database: Database, node_ids: Collection[str] | None, scope_key: str = ""
    ) -> dict[str, Any]:
        """Outputs of the requested nodes (None: of all) that this scope sees.

        Those pinned by the caller count everywhere.

        See interface.md#bindings.
        """
        pinned: JsonObject = self.header.options.get("pinned") or {}
        own = protocol.own_scopes(scope_key)
        if node_ids is not None:
            known = self._cached_outputs(node_ids, own)
            if all(node_id in known or node_id in pinned for node_id in node_ids):
                return known | pinned
        scopes = [*own, *protocol.earlier_scopes(scope_key, self.repeats)]
        async with database.statement() as work:
            rows = await run_header.load_outputs(work, self.header, node_ids, scopes)
        for row in rows:
            if row.run_id == self.header.run_id:
                self.keep(row.node_id, row.scope_key, row.output)
        unwritten = {
            node_id: output
            for (node_id, scope), output in self.unwritten.items()
            if scope in own and (node_ids is None or node_id in node_ids)
        }
        return {row.node_id: row.output for row in rows} | unwritten | pinned

    def _cached_outputs(self, node_ids: Collection[str], scopes: Sequence[str]) -> dict[str, Any]:
        outputs = {}
        for node_id in node_ids:
            for scope in scopes:
                output = self.unwritten.get((node_id, scope))
                if output is None:
                    output = self._outputs.known(self._place(node_id, scope))
                if output is not None:
                    outputs[node_id] = output
        return outputs

    def follow(self, part: str, applied: int, ends: Sequence[NodeEnd]) -> PlanState | None:
        """The plan state after `ends`, or None when this process has lost the thread."""
        plan_state = self.plan_states.get(part)
        if plan_state is None or plan_state.applied != applied:
            self.plan_states.pop(part, None)
            return None
        for end in ends:
            plan_state.apply(end.event)
        return plan_state

    def keep(self, node_id: str, scope_key: str, output: JsonObject) -> None:
        """Remember an output that is committed."""
        self._outputs.keep(self._place(node_id, scope_key), output, output)

    def _place(self, node_id: str, scope_key: str) -> tuple[Id, str, str, str]:
        return self.header.run_id, self.header.graph_checksum, node_id, scope_key

    def known_loop(self, ref: protocol.NodeRef) -> OpenLoop | None:
        """A loop that iterates, if this process has it."""
        return self._loops.known((self.header.run_id, ref))

    def keep_loop(self, ref: protocol.NodeRef, loop: OpenLoop) -> None:
        """Remember a loop that was just opened or read."""
        self._loops.keep((self.header.run_id, ref), loop, loop.items)

    def forget_loop(self, ref: protocol.NodeRef) -> None:
        """The loop has ended."""
        self._loops.forget((self.header.run_id, ref))


class RunCache:
    """The runs used last."""

    def __init__(
        self,
        database: Database,
        graphs: GraphCache,
        keys: KeyRing | None = None,
        capacity: int = 500,
    ) -> None:
        """`keys` sign the URLs that resume nodes."""
        self._database = database
        self._graphs = graphs
        self._keys = keys
        self._capacity = capacity
        self._loops = OpenLoops()
        self._outputs = Outputs()
        self._runs: OrderedDict[Id, OpenRun] = OrderedDict()

    async def get(self, run_id: Id) -> OpenRun:
        """The run, from memory or the database. Raises RunClosedError for one that is not open."""
        run = self._runs.get(run_id)
        if run is None:
            async with self._database.statement() as work:
                header = await run_header.load_header(work, run_id)
            if header is None:
                raise RunClosedError
            run = await self.open(header)
        self._runs.move_to_end(run_id)
        return run

    async def open(self, header: run_header.RunHeader) -> OpenRun:
        """Keep a run that has just begun."""
        graph = await self._graphs.get(self._database, header.automation_id, header.graph_checksum)
        run = OpenRun(header, graph, self._loops, self._outputs, self._keys)
        self._runs[header.run_id] = run
        if len(self._runs) > self._capacity:
            self._runs.popitem(last=False)
        return run

    async def renew(self, run_id: Id) -> bool:
        """Read a run anew; True when it is open and executes another graph than before."""
        before = self._runs.pop(run_id, None)
        if before is None:
            return False
        async with self._database.statement() as work:
            header = await run_header.load_header(work, run_id)
        if header is None or header.graph_checksum == before.header.graph_checksum:
            return False
        await self.open(header)
        return True

    def forget(self, run_id: Id) -> None:
        """The run has ended."""
        self._runs.pop(run_id, None)
