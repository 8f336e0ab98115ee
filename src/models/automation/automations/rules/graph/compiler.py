"""The compiler: from a graph to a plan, or to the list of its issues (decisions C8)."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import pydantic

from models.automation.automations.rules.graph.catalog import Noun, ReferenceCatalog, referenced_ids
from models.automation.automations.rules.graph.configs import JoinConfig
from models.automation.automations.rules.graph.field_checks import field_problems
from models.automation.automations.rules.graph.kinds import EdgeOutcome, JoinMode, NodeKind
from models.automation.automations.rules.graph.node_checks import edge_problems, node_problems
from models.automation.automations.rules.graph.output_key_checks import output_key_warnings
from models.automation.automations.rules.graph.reference_checks import trigger_reference_problems
from models.automation.automations.rules.graph.shapes import Graph, GraphEdge, GraphNode, Retry
from models.automation.automations.rules.graph.structure import (
    Problem,
    entries_of,
    structure_problems,
)
from models.automation.automations.rules.graph.value_checks import value_problems
from models.automation.automations.rules.language.static_reads import cel_length
from models.automation.automations.rules.planner.plan import Plan, PlanEdge, PlanNode, PlanRetry
from models.automation.automations.rules.triggers.configs import read_trigger, trigger_problems
from models.core.base import JsonObject, Shape
from runtime.errors import Detail

__all__ = ["Compiled", "ReferenceCatalog", "ReferenceIssue", "compile_graph", "referenced_ids"]

MAX_CEL = 128 * 1024
"""Characters of CEL in one graph. Compiling them takes up to two seconds, during which the process
serves nobody else."""


class Severity(StrEnum):
    """The weight of an issue: an error keeps a version from being published, a warning does not."""

    ERROR = "error"
    WARNING = "warning"


class ReferenceIssue(Shape):
    """One thing that is wrong with a graph; `nodeId` is empty for the graph as a whole.

    An `error` keeps the version from being published, a `warning` does not.
    """

    node_id: str
    message: str
    severity: Severity = Severity.ERROR


@dataclass(frozen=True, slots=True)
class Compiled:
    """A plan, or the issues. `details` are the issues with their places in the body.

    `warnings` stand beside either.
    """

    plan: Plan | None
    details: tuple[Detail, ...] = ()
    issues: tuple[ReferenceIssue, ...] = ()
    warnings: tuple[ReferenceIssue, ...] = ()

    @property
    def all_issues(self) -> list[ReferenceIssue]:
        """The issues and the warnings, as they are answered."""
        return [*self.issues, *self.warnings]


def compile_graph(graph: Graph, trigger_config: JsonObject, catalog: ReferenceCatalog) -> Compiled:
    """Check a graph and its trigger, and compile the graph if there are no issues."""
    trigger = tuple(dict.fromkeys(_trigger(trigger_config, catalog)))
    problems = tuple(dict.fromkeys(_problems(graph, trigger_config, catalog)))
    warnings = tuple(
        ReferenceIssue(node_id=at, message=message, severity=Severity.WARNING)
        for at, message in ([] if _is_too_long(graph) else output_key_warnings(graph))
    )
    if not trigger and not problems:
        return Compiled(_plan(graph), warnings=warnings)
    places = (Detail(f"graph.{at}" if at else "graph", message) for at, message in problems)
    # An issue has no place besides its node, so the message about a trigger names the place.
    of_trigger = [("", f"{detail.path}: {detail.message}") for detail in trigger]
    issues = (
        ReferenceIssue(node_id=at, message=message) for at, message in (*of_trigger, *problems)
    )
    return Compiled(None, (*trigger, *places), tuple(issues), warnings)


def _problems(
    graph: Graph, trigger_config: JsonObject, catalog: ReferenceCatalog
) -> Iterator[Problem]:
    if _is_too_long(graph):
        yield "", f"Its expressions and templates have more than {MAX_CEL} characters of CEL."
        return
    yield from structure_problems(graph)
    yield from value_problems(graph, catalog)
    yield from field_problems(graph, trigger_config, catalog)
    yield from (("", message) for message in _failure_automation(graph, catalog))
    nodes = {node.id: node for node in graph.nodes}
    ways_out: dict[str, list[GraphEdge]] = {}
    arrivals: dict[str, int] = {}
    for edge in graph.edges:
        ways_out.setdefault(edge.source, []).append(edge)
        arrivals[edge.target] = arrivals.get(edge.target, 0) + 1
    for node in graph.nodes:
        for message in node_problems(node, nodes, catalog):
            yield node.id, message
        for message in edge_problems(node, ways_out.get(node.id, [])):
            yield node.id, message
        join = _join(node)
        if join is not None and (join.count or 0) > arrivals.get(node.id, 0):
            yield node.id, f"It waits for {join.count} edges, but fewer lead to it."


def _is_too_long(graph: Graph) -> bool:
    return sum(cel_length(node.parameters()) for node in graph.nodes) > MAX_CEL


def _trigger(trigger_config: JsonObject, catalog: ReferenceCatalog) -> Iterator[Detail]:
    try:
        yield from trigger_problems(read_trigger(trigger_config))
    except pydantic.ValidationError:
        yield Detail("triggerConfig", "It cannot be read; save it again.")
    else:
        yield from trigger_reference_problems(trigger_config, catalog)


def _failure_automation(graph: Graph, catalog: ReferenceCatalog) -> Iterator[str]:
    wanted = graph.failure_automation_id
    if wanted is None:
        return
    if wanted.lower() == catalog.automation_id:
        yield "failureAutomationId: An automation cannot handle its own failures."
    elif not catalog.has(Noun.AUTOMATION, wanted):
        yield "failureAutomationId: There is no such automation."


def _join(node: GraphNode) -> JoinConfig | None:
    if node.kind != NodeKind.JOIN:
        return None
    try:
        return JoinConfig.model_validate(node.parameters())
    except pydantic.ValidationError:
        return None


def _plan(graph: Graph) -> Plan:
    return Plan(
        tuple(_plan_node(node) for node in graph.nodes),
        tuple(_plan_edge(edge) for edge in graph.edges),
        tuple(entries_of(graph)),
        graph.on_error,
    )


def _plan_node(node: GraphNode) -> PlanNode:
    join = _join(node)
    return PlanNode(
        id=node.id,
        kind=node.kind.value,
        label=node.label or "",
        timeout_seconds=node.timeout_seconds,
        retry=None if node.retry is None else _plan_retry(node.retry),
        disabled=node.disabled,
        join=JoinMode.ALL if join is None else join.mode,
        join_count=0 if join is None else join.count or 0,
        pauses=node.kind == NodeKind.REPEAT and node.parameters().get("delaySeconds", 0) != 0,
    )


def _plan_retry(retry: Retry) -> PlanRetry:
    return PlanRetry(
        max_attempts=retry.max_attempts,
        initial_delay_seconds=retry.initial_delay_seconds,
        backoff_multiplier=retry.backoff_multiplier,
        max_delay_seconds=retry.max_delay_seconds,
    )


def _plan_edge(edge: GraphEdge) -> PlanEdge:
    outcome = edge.outcome
    if outcome is EdgeOutcome.SUCCESS:
        outcome = EdgeOutcome.ALWAYS
    return PlanEdge(edge.source, edge.target, outcome, edge.case_key)
