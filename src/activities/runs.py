"""Open runs as this process knows them: facts, graph and outputs that can no longer change.

Only what is committed and final is kept, so an entry is never stale; a process that has none
reads it from PostgreSQL.
"""

from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from activities.contracts import NodeEnd
from activities.graphs import ExecutableGraph, GraphCache
from models.automation_runs.errors import RunClosedError
from models.automation_runs.facts import RunFacts, load_facts, load_outputs
from models.automations.rules.course import Course
from models.automations.rules.plan import Plan
from models.base import Id, JsonObject
from runtime.database import Database

KEPT_OUTPUT_NODES = 50
"""Outputs kept per run; what is beyond is read again when needed."""


@dataclass(slots=True)
class OpenRun:
    """A run that has begun."""

    facts: RunFacts
    graph: ExecutableGraph
    course: Course | None = None
    """Where the run stands, if this process has followed it from the start."""
    _outputs: dict[str, Any] = field(default_factory=dict)

    def plan(self) -> Plan:
        """The part of the graph that this run executes (decisions D3)."""
        plan, options = self.graph.plan, self.facts.options
        if self.facts.start_node_id is not None:
            only = options.get("only")
            plan = plan.restricted(
                self.facts.start_node_id, None if only is None else frozenset(only)
            )
        if (last := options.get("stopAtNodeId")) is not None:
            plan = plan.until(last)
        return plan

    async def outputs(self, database: Database, node_ids: Collection[str] | None) -> dict[str, Any]:
        """Outputs of the nodes asked for (None: of all), those pinned by the caller included."""
        pinned: JsonObject = self.facts.options.get("pinned") or {}
        if node_ids is not None:
            known = {key: self._outputs[key] for key in node_ids if key in self._outputs}
            missing = [key for key in node_ids if key not in known and key not in pinned]
            if not missing:
                return known | pinned
        async with database.statement() as work:
            loaded = await load_outputs(work, self.facts, node_ids)
        return loaded | pinned

    def follow(self, applied: int, ends: Sequence[NodeEnd]) -> Course | None:
        """The course after `ends`, or None when this process has lost the thread."""
        course = self.course
        if course is None or course.applied != applied:
            self.course = None
            return None
        for end in ends:
            course.apply(end.event)
        return course

    def keep(self, node_id: str, scope_key: str, output: JsonObject) -> None:
        """Remember an output that was just committed."""
        if scope_key == "" and len(self._outputs) < KEPT_OUTPUT_NODES:
            self._outputs[node_id] = output


class RunCache:
    """The runs used last."""

    def __init__(self, database: Database, graphs: GraphCache, capacity: int = 500) -> None:
        self._database = database
        self._graphs = graphs
        self._capacity = capacity
        self._runs: OrderedDict[Id, OpenRun] = OrderedDict()

    async def get(self, run_id: Id) -> OpenRun:
        """The run, from memory or the database. Raises RunClosedError for one that is not open."""
        run = self._runs.get(run_id)
        if run is None:
            async with self._database.statement() as work:
                facts = await load_facts(work, run_id)
            if facts is None:
                raise RunClosedError
            run = await self.open(facts)
        self._runs.move_to_end(run_id)
        return run

    async def open(self, facts: RunFacts) -> OpenRun:
        """Keep a run that has just begun."""
        graph = await self._graphs.get(self._database, facts.automation_id, facts.graph_checksum)
        run = self._runs[facts.run_id] = OpenRun(facts, graph)
        if len(self._runs) > self._capacity:
            self._runs.popitem(last=False)
        return run

    def forget(self, run_id: Id) -> None:
        """The run has ended."""
        self._runs.pop(run_id, None)
