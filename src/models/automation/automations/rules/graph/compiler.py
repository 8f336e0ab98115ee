"""The compiler: from a graph to a plan, or to the list of its issues."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum

import pydantic

from models.automation.automations.rules.graph import structure
from models.automation.automations.rules.graph.catalog import (
    ReferenceCatalog,
    Resource,
    mail_warnings,
    referenced_ids,
    trigger_reference_problems,
)
from models.automation.automations.rules.graph.configs import JoinConfig
from models.automation.automations.rules.graph.kinds import EdgeOutcome, JoinMode, NodeKind, shorten
from models.automation.automations.rules.graph.node_checks import edge_problems, node_problems
from models.automation.automations.rules.graph.shapes import Graph, GraphEdge, GraphNode, Retry
from models.automation.automations.rules.language import bindings, static_reads
from models.automation.automations.rules.planner.plan import Plan, PlanEdge, PlanNode, PlanRetry
from models.automation.automations.rules.triggers.configs import read_trigger, trigger_problems
from models.core.base import JsonObject, Shape
from models.core.http_requests import GIVE_AGAIN, left_hidden
from models.data.fields.rules.fields import FieldSpecs
from runtime.errors import Detail

__all__ = ["Compiled", "ReferenceCatalog", "ReferenceIssue", "compile_graph", "referenced_ids"]

MAX_CEL = 128 * 1024
"""Characters of CEL in one graph. Compiling them takes up to two seconds, during which the process
serves no one else."""


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
    warned = (
        ()
        if _is_too_long(graph)
        else (
            *structure.output_key_warnings(graph),
            *mail_warnings(graph, catalog),
        )
    )
    warnings = tuple(
        ReferenceIssue(node_id=at, message=message, severity=Severity.WARNING)
        for at, message in warned
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
) -> Iterator[structure.Problem]:
    if _is_too_long(graph):
        yield "", f"Expressions and templates have more than {MAX_CEL} characters of CEL."
        return
    yield from structure.structure_problems(graph)
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
            yield node.id, f"Waits for {join.count} edges, but fewer lead to it."


def _is_too_long(graph: Graph) -> bool:
    return sum(static_reads.cel_length(node.parameters()) for node in graph.nodes) > MAX_CEL


def _trigger(trigger_config: JsonObject, catalog: ReferenceCatalog) -> Iterator[Detail]:
    try:
        yield from trigger_problems(read_trigger(trigger_config))
    except pydantic.ValidationError:
        yield Detail("triggerConfig", "The trigger is invalid. Save it again.")
    else:
        yield from trigger_reference_problems(trigger_config, catalog)


def _failure_automation(graph: Graph, catalog: ReferenceCatalog) -> Iterator[str]:
    wanted = graph.failure_automation_id
    if wanted is None:
        return
    if wanted.lower() == catalog.automation_id:
        yield "failureAutomationId: An automation cannot handle its own failures."
    elif not catalog.has(Resource.AUTOMATION, wanted):
        yield "failureAutomationId: Automation not found."


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
        tuple(structure.entries_of(graph)),
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


def value_problems(graph: Graph, catalog: ReferenceCatalog) -> Iterator[structure.Problem]:
    """Secrets that are not there or would stay here, and variables the graph does not have.

    A graph that declares variables declares all it reads; one that declares none leaves them to
    the runs, which may bring values along (interface.md#runs-from-a-node).
    """
    for node in graph.nodes:
        yield from ((node.id, message) for message in _secret_problems(node, catalog))
        for place in left_hidden(node.parameters(), bindings.written):
            yield node.id, f"{'.'.join(map(str, place))}: {GIVE_AGAIN}"
        if not graph.variables:
            continue
        read = static_reads.node_references(node, "vars") or frozenset()
        for key in sorted(read - graph.variables.keys()):
            yield node.id, f'Reads the variable "{shorten(key)}", which the graph does not have.'


def _secret_problems(node: GraphNode, catalog: ReferenceCatalog) -> Iterator[str]:
    for path, name in static_reads.secrets_in(node.parameters()):
        if node.kind not in bindings.SENDERS:
            yield f"{path}: {bindings.SECRETS_LEAVE}"
        if name not in catalog.secrets:
            yield f"{path}: {bindings.no_secret(name)}"


_WRITING = (NodeKind.CREATE_RECORD, NodeKind.UPDATE_RECORD)


def field_problems(
    graph: Graph, trigger_config: JsonObject, catalog: ReferenceCatalog
) -> Iterator[structure.Problem]:
    """Keys that a node reads of the trigger's record, or of one that a node wrote, and never finds.

    At run time such a key would read as null, or fail the node.
    """
    records = dict(_records(graph, trigger_config, catalog))
    if not records:
        return
    for node in graph.nodes:
        for text in static_reads.expressions_of(node):
            yield from ((node.id, message) for message in static_reads.unknown_keys(text, records))
        for path in static_reads.paths_of(node):
            yield from (
                (node.id, message) for message in static_reads.unknown_keys_of(path, records)
            )


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
