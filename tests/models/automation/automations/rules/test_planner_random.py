"""Any graph, any order of events: what a run must always and must never do."""

import random
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.automation.automations.rules.graph.kinds import EdgeOutcome, JoinMode, NodeKind, OnError
from models.automation.automations.rules.planner.plan import Plan, PlanEdge, PlanNode
from models.automation.automations.rules.planner.planner import Planner
from models.automation.automations.rules.planner.protocol import (
    CancelNode,
    Command,
    EndLoop,
    EndRun,
    Event,
    IterationsReady,
    NextIteration,
    NodeFailed,
    NodeRef,
    NodeSucceeded,
    RunCancelled,
    RunStopped,
    SkipNode,
    StartNode,
)
from tests.support.exploring import examples

SIMULATIONS = examples(1_000, explored=50_000)
OUTCOMES = ("always", "true", "false", "case", "default", "fail")
Graph = tuple[Plan, dict[str, str]]
WAYS = [*(EdgeOutcome(name) for name in OUTCOMES[:-1]), EdgeOutcome.FAILURE, EdgeOutcome.FINALLY]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """A DAG of up to twelve nodes, and how each node ends."""
    size = draw(st.integers(1, 12))
    names = [f"n{index:02}" for index in range(size)]
    pairs = [(a, b) for b in range(size) for a in range(b)]
    chosen = draw(st.lists(st.sampled_from(pairs), max_size=30)) if pairs else []
    edges = tuple(PlanEdge(names[a], names[b], draw(st.sampled_from(WAYS))) for a, b in chosen)
    nodes = tuple(
        PlanNode(
            name,
            NodeKind.TRANSFORM,
            disabled=draw(st.integers(0, 5)) == 0,
            join=draw(st.sampled_from(JoinMode)),
            join_count=draw(st.integers(1, 3)),
        )
        for name in names
    )
    roots = [name for name in names if all(edge.target != name for edge in edges)]
    entries = draw(st.lists(st.sampled_from(roots), unique=True))
    plan = Plan(nodes, edges, tuple(entries), OnError.CONTINUE)
    return plan, {name: draw(st.sampled_from(OUTCOMES)) for name in names}


def is_taken(outcome: EdgeOutcome, how: str) -> bool:
    if how == "skip":
        return False
    if how == "fail":
        return outcome in {"failure", "finally"}
    return outcome in {"always", "success", "finally", how}


def expected(plan: Plan, endings: dict[str, str]) -> dict[str, str]:
    """What becomes of every node, read off the graph in topological (name) order."""
    how: dict[str, str] = {}
    for node in plan.nodes:
        incoming = [edge for edge in plan.edges if edge.target == node.id]
        taken = sum(is_taken(edge.outcome, how[edge.source]) for edge in incoming)
        needed = node.join_count if node.join is JoinMode.COUNT else 1
        if node.id not in plan.entries and taken < needed:
            how[node.id] = "skip"
        else:
            how[node.id] = "always" if node.disabled else endings[node.id]
    return how


@settings(max_examples=examples(80, explored=8_000), deadline=None)
@given(graphs(), st.randoms(use_true_random=False))
def test_every_node_is_resolved_once_as_the_graph_says(graph: Graph, chance: random.Random) -> None:
    plan, endings = graph
    planner = Planner(plan)
    commands = list(planner.begin())
    while not planner.ended:
        ref = chance.choice(planner.active)
        how = endings[ref.node_id]
        event = NodeFailed(ref) if how == "fail" else NodeSucceeded(ref, how)
        commands += planner.apply(event)
    fate = expected(plan, endings)
    started = {n.id for n in plan.nodes if fate[n.id] != "skip" and not n.disabled}
    assert sorted(starts(commands)) == sorted(started)
    assert sorted(skips(commands)) == sorted({n.id for n in plan.nodes} - started)
    handled = {e.source for e in plan.edges if e.outcome in {"failure", "finally"}}
    unhandled = [name for name in started if fate[name] == "fail" and name not in handled]
    end = commands[-1]
    assert isinstance(end, EndRun)
    assert end.succeeded is (not unhandled)
    assert (end.failed is None) if end.succeeded else (end.failed.node_id in unhandled)


@settings(max_examples=examples(40, explored=4_000), deadline=None)
@given(graphs(), st.data())
def test_a_run_from_a_node_starts_only_what_it_reaches(graph: Graph, data: st.DataObject) -> None:
    plan, endings = graph
    start = data.draw(st.sampled_from(plan.nodes)).id
    only = data.draw(st.none() | st.frozensets(st.sampled_from([n.id for n in plan.nodes])))
    restricted = plan.restricted(start, only)
    planner = Planner(restricted)
    commands = list(planner.begin())
    assert getattr(commands[0], "ref", None) == NodeRef(start)
    while not planner.ended:
        ref = planner.active[0]
        how = endings[ref.node_id]
        commands += planner.apply(NodeFailed(ref) if how == "fail" else NodeSucceeded(ref, how))
    resolved = starts(commands) + skips(commands)
    assert sorted(resolved) == sorted(node.id for node in restricted.nodes)
    assert only is None or set(starts(commands)) <= only | {start}


@settings(max_examples=examples(40, explored=4_000), deadline=None)
@given(graphs())
def test_a_plan_survives_json(graph: Graph) -> None:
    plan, _ = graph
    assert Plan.from_json(plan.to_json()) == plan
    start = plan.restricted(plan.nodes[-1].id)
    assert Plan.from_json(start.to_json()) == start


def starts(commands: list[Command]) -> list[str]:
    return [command.ref.node_id for command in commands if isinstance(command, StartNode)]


def skips(commands: list[Command]) -> list[str]:
    return [command.ref.node_id for command in commands if isinstance(command, SkipNode)]


def random_plan(chance: random.Random) -> Plan:
    """A small graph, with a loop in every other one and sometimes a loop inside it."""
    names = [f"n{index}" for index in range(chance.randint(1, 7))]
    edges = [
        PlanEdge(names[source], name, chance.choice(WAYS))
        for index, name in enumerate(names)
        for source in chance.sample(range(index), min(index, chance.randint(0, 2)))
    ]
    if chance.random() < 0.5:
        edges += [PlanEdge(names[0], "loop"), PlanEdge("loop", "body", EdgeOutcome.ITEM)]
        edges += [PlanEdge("body", "tail", chance.choice(WAYS)), PlanEdge("body", "end")]
        edges += [PlanEdge("loop", "after", EdgeOutcome.DONE)]
        names += ["loop", "body", "tail", "end", "after"]
        if chance.random() < 0.5:
            edges += [PlanEdge("tail", "loop2"), PlanEdge("loop2", "deep", EdgeOutcome.ITEM)]
            names += ["loop2", "deep"]
    targets = {edge.target for edge in edges}
    nodes = tuple(
        PlanNode(
            name,
            NodeKind.TRANSFORM,
            disabled=chance.random() < 0.1,
            join=chance.choice(list(JoinMode)),
            join_count=chance.randint(1, 2),
        )
        for name in names
    )
    entries = tuple(name for name in names if name not in targets)
    return Plan(nodes, tuple(edges), entries, chance.choice(list(OnError)))


@dataclass
class Simulation:
    """One seeded run: started nodes end at random moments of a simulated clock.

    So do loops whose iterations have ended, and decisions on whether there is another one.
    """

    seed: int
    trace: list[Command] = field(default_factory=list)
    cancelled_at: int | None = None
    parallelism: dict[NodeRef, int] = field(default_factory=dict)

    def run(self) -> "Simulation":
        chance = random.Random(self.seed)  # noqa: S311 - a seed that gives the same run again
        planner = Planner(random_plan(chance))
        due: list[tuple[float, NodeRef, Command]] = []
        now, events = 0.0, 0
        self._note(planner.begin(), due, chance, now)
        while not planner.ended:
            events += 1
            assert events < 2_000, "the run does not end"
            assert due, "the run waits for nothing"
            if chance.random() < 0.02:
                self.trace += planner.apply(RunCancelled())
                self.cancelled_at = len(self.trace)
                break
            due.sort(key=lambda entry: entry[:2])
            now, _, command = due.pop(0)
            self._note(planner.apply(self._event(command, chance)), due, chance, now)
            self._check_parallelism(planner)
        self._report_late(planner, due)
        return self

    def _note(
        self,
        commands: tuple[Command, ...],
        due: list[tuple[float, NodeRef, Command]],
        chance: random.Random,
        now: float,
    ) -> None:
        self.trace += commands
        # A cancelled node stays in the list: its late report must change nothing.
        due += [
            (now + chance.choice((0, chance.random(), 100)), command.ref, command)
            for command in commands
            if isinstance(command, StartNode | NextIteration | EndLoop)
        ]

    def _event(self, command: Command, chance: random.Random) -> Event:
        assert isinstance(command, StartNode | NextIteration | EndLoop)
        ref = command.ref
        if isinstance(command, EndLoop):
            well = command.succeeded and chance.random() < 0.9
            return NodeSucceeded(ref, EdgeOutcome.DONE) if well else NodeFailed(ref)
        if isinstance(command, NextIteration):
            goes_on = chance.random() < 0.6
            return IterationsReady(ref, command.index + goes_on, more=goes_on)
        if ref.node_id.startswith("loop") and chance.random() < 0.9:
            self.parallelism[ref] = chance.randint(1, 3)
            return IterationsReady(
                ref,
                chance.randint(0, 5),
                self.parallelism[ref],
                stop_on_error=chance.random() < 0.5,
                more=chance.random() < 0.3,
            )
        how = chance.choice([*OUTCOMES, "always", "always", "stop"])
        if how == "fail":
            return NodeFailed(ref)
        if how == "stop" and chance.random() < 0.2:
            return RunStopped(ref, succeeded=chance.random() < 0.5)
        return NodeSucceeded(ref, how)

    def _check_parallelism(self, planner: Planner) -> None:
        """No loop has more iterations going than it may, counted by the nodes that are active."""
        going: dict[NodeRef, set[str]] = {}
        for ref in planner.active:
            loop, scope_key = ref.loop, ref.scope_key
            while loop is not None:
                going.setdefault(loop, set()).add(scope_key)
                loop, scope_key = loop.loop, loop.scope_key
        for loop, scopes in going.items():
            assert loop in planner.active, f"seed {self.seed}: an iteration outlives its loop"
            assert len(scopes) <= self.parallelism[loop], f"seed {self.seed}: too many at once"

    def _report_late(self, planner: Planner, due: list[tuple[float, NodeRef, Command]]) -> None:
        for _, ref, _ in due:
            self.trace += planner.apply(NodeSucceeded(ref))
            self.trace += planner.apply(NodeFailed(ref))
        self.trace += planner.apply(RunCancelled())


@pytest.mark.long
def test_simulated_runs() -> None:
    ends = {"cancelled": 0, "succeeded": 0, "failed": 0, "stopped": 0, "iterated": 0}
    for seed in range(SIMULATIONS):
        simulation = Simulation(seed).run()
        check(simulation)
        assert Simulation(seed).run().trace == simulation.trace, seed
        ends[how_it_ended(simulation)] += 1
        ends["iterated"] += any(
            isinstance(command, StartNode) and command.ref.scope_key for command in simulation.trace
        )
    assert min(ends.values()) > SIMULATIONS // 200, ends


def check(simulation: Simulation) -> None:
    trace, seed = simulation.trace, simulation.seed
    resolved = [c.ref for c in trace if isinstance(c, StartNode | SkipNode)]
    assert len(resolved) == len(set(resolved)), f"seed {seed}: a node twice in one scope"
    cancelled = [c.ref for c in trace if isinstance(c, CancelNode)]
    begun = {c.ref for c in trace if isinstance(c, StartNode)}
    over = [c.ref for c in trace if isinstance(c, EndLoop)]
    assert len(over) == len(set(over)), f"seed {seed}: a loop ended twice"
    for ref in over:
        since = trace[1 + next(i for i, c in enumerate(trace) if c in ends_of(trace, ref)) :]
        late = [c for c in since if isinstance(c, StartNode) and is_inside(c.ref, ref)]
        assert not late, f"seed {seed}: an iteration went on after its loop"
    assert len(cancelled) == len(set(cancelled)), f"seed {seed}: cancelled twice"
    assert begun.issuperset(cancelled), f"seed {seed}: cancelled before its start"
    ends = [index for index, command in enumerate(trace) if isinstance(command, EndRun)]
    if simulation.cancelled_at is not None:
        assert not ends, f"seed {seed}: a cancelled run has an end"
        assert len(trace) == simulation.cancelled_at, f"seed {seed}: something after cancel"
    else:
        assert ends == [len(trace) - 1], f"seed {seed}: the end is not the last command"


def ends_of(trace: list[Command], ref: NodeRef) -> list[Command]:
    return [command for command in trace if isinstance(command, EndLoop) and command.ref == ref]


def is_inside(ref: NodeRef, loop: NodeRef) -> bool:
    """Whether a node is in an iteration of the loop, at any depth."""
    around = ref.loop
    while around is not None and around != loop:
        around = around.loop
    return around is not None


def how_it_ended(simulation: Simulation) -> str:
    end = simulation.trace[-1] if simulation.trace else None
    if not isinstance(end, EndRun):
        return "cancelled"
    if end.stopped_by is not None:
        return "stopped"
    return "succeeded" if end.succeeded else "failed"
