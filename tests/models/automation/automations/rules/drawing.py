"""Plans drawn as text, and a run of the planner in memory."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from models.automation.automations.rules.graph.kinds import EdgeOutcome, JoinMode, NodeKind, OnError
from models.automation.automations.rules.planner.plan import Plan, PlanEdge, PlanNode
from models.automation.automations.rules.planner.planner import Planner
from models.automation.automations.rules.planner.protocol import (
    CancelNode,
    Command,
    EndLoop,
    EndRun,
    Event,
    NextIteration,
    NodeFailed,
    NodeRef,
    NodeSucceeded,
    RunStopped,
    SkipNode,
    StartNode,
)

_ARROW = re.compile(r"\s*-(?:(\w+)(?:=(\w+))?-)?>\s*")


def draw(
    *lines: str,
    entries: Iterable[str] = (),
    disabled: Iterable[str] = (),
    joins: Mapping[str, tuple[JoinMode, int]] | None = None,
    on_error: OnError = OnError.STOP,
) -> Plan:
    """`a -> b -true-> c` and `s -case=x-> d`; without entries, the nodes nothing leads to."""
    names: dict[str, None] = {}
    edges: list[PlanEdge] = []
    for line in lines:
        parts = _ARROW.split(line.strip())
        names.update(dict.fromkeys(parts[::3]))
        for index in range(0, len(parts) - 3, 3):
            source, outcome, case_key, target = parts[index : index + 4]
            edges.append(PlanEdge(source, target, EdgeOutcome(outcome or "always"), case_key))
    targets = {edge.target for edge in edges}
    off, joined = set(disabled), joins or {}
    nodes = tuple(
        PlanNode(
            name,
            NodeKind.TRANSFORM,
            disabled=name in off,
            join=joined.get(name, (JoinMode.ALL, 0))[0],
            join_count=joined.get(name, (JoinMode.ALL, 0))[1],
        )
        for name in names
    )
    starts = tuple(entries) or tuple(name for name in names if name not in targets)
    return Plan(nodes, tuple(edges), starts, on_error)


@dataclass
class Trace:
    """What a run did, as short texts: `a`, `body@loop:0`."""

    started: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    loops: list[EndLoop] = field(default_factory=list)
    asked: list[NextIteration] = field(default_factory=list)
    end: EndRun | None = None

    def note(self, commands: Iterable[Command]) -> None:
        for command in commands:
            match command:
                case StartNode(ref):
                    self.started.append(short(ref))
                case SkipNode(ref):
                    self.skipped.append(short(ref))
                case CancelNode(ref):
                    self.cancelled.append(short(ref))
                case EndLoop():
                    self.loops.append(command)
                case NextIteration():
                    self.asked.append(command)
                case EndRun():
                    assert self.end is None
                    self.end = command


def short(ref: NodeRef) -> str:
    return f"{ref.node_id}@{ref.scope_key}" if ref.scope_key else ref.node_id


def ending(ref: NodeRef, how: object) -> Event:
    """`fail`, `stop`, `stop failed`, an outcome, `case=x`, an event, or a function of the ref."""
    match how:
        case "fail":
            return NodeFailed(ref)
        case "stop":
            return RunStopped(ref, succeeded=True)
        case "stop failed":
            return RunStopped(ref, succeeded=False)
        case str():
            outcome, _, case_key = how.partition("=")
            return NodeSucceeded(ref, outcome, case_key or None)
        case _:
            assert callable(how)
            event: Event = how(ref)
            return event


Endings = Mapping[str, str | Callable[[NodeRef], Event]]


def closed(command: EndLoop) -> Event:
    """The loop's own end, as it is reported once it is written."""
    if command.succeeded:
        return NodeSucceeded(command.ref, EdgeOutcome.DONE)
    return NodeFailed(command.ref)


def run(plan: Plan, endings: Endings | None = None, *, last: Iterable[str] = ()) -> Trace:
    """Run a plan: started nodes end in the order they started, those in `last` after all others.

    A loop's iterations are asked for by its function in `endings`, its end follows at once.
    """
    planner, trace, slow = Planner(plan), Trace(), set(last)
    iterating: set[NodeRef] = set()
    trace.note(planner.begin())
    order: list[NodeRef] = []
    ended = 0
    while not planner.ended:
        if len(trace.loops) > ended:
            ended += 1
            trace.note(planner.apply(closed(trace.loops[ended - 1])))
            continue
        order = [ref for ref in order if ref in planner.active]
        order += [ref for ref in planner.active if ref not in order]
        waiting = [ref for ref in order if ref not in iterating]
        ref = next((ref for ref in waiting if ref.node_id not in slow), None) or waiting[0]
        how = (endings or {}).get(short(ref)) or (endings or {}).get(ref.node_id) or "always"
        if callable(how):
            iterating.add(ref)
        trace.note(planner.apply(ending(ref, how)))
    return trace
