"""From a node's config to the parameters it runs with: bindings, mocks, simulation."""

from dataclasses import dataclass

from activities.graphs import ExecutableNode
from activities.nodes.invocation import NodeResult
from activities.nodes.logic import condition_result, switch_result
from activities.runs import OpenRun
from models.automation_runs.rules import RunSource
from models.automations.rules.bindings import BindingContext, resolve
from models.automations.rules.kinds import NodeKind
from models.base import JsonObject
from runtime.database import Database

SIMULATED = frozenset(
    {
        NodeKind.CREATE_RECORD,
        NodeKind.UPDATE_RECORD,
        NodeKind.DELETE_RECORD,
        NodeKind.HTTP_REQUEST,
    }
)
"""Kinds with side effects, which a simulated test run replaces (decisions D3)."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A node's parameters with bindings resolved, and the context they were resolved in."""

    parameters: JsonObject
    context: BindingContext


async def prepare(database: Database, run: OpenRun, node: ExecutableNode) -> Prepared:
    """Load the outputs the node can read and resolve its bindings.

    Raises BindingError when a binding cannot be evaluated.
    """
    facts = run.facts
    scope = facts.options.get("scope") or {}
    context = BindingContext(
        trigger=scope.get("trigger", facts.trigger_payload),
        nodes=await run.outputs(database, node.reads),
        run=facts.variable,
        item=scope.get("item"),
        index=scope.get("index"),
        vars=scope.get("variables") or {},
    )
    return Prepared(resolve(node.parameters, context), context)


def substitute(run: OpenRun, node: ExecutableNode) -> NodeResult | None:
    """What a test run puts in a node's place: its mock, or `{simulated: true}`; else None."""
    if run.facts.source != RunSource.TEST:
        return None
    options = run.facts.options
    output = options.get("mocks", {}).get(node.id, node.mock)
    if output is None:
        if not (options.get("simulate") and node.kind in SIMULATED):
            return None
        output = {"simulated": True}
    if node.kind == NodeKind.CONDITION:
        return condition_result(bool(output.get("result")))
    if node.kind == NodeKind.SWITCH:
        return switch_result(output.get("case"))
    return NodeResult(output)
