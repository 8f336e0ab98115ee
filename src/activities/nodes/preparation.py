"""From a node's config to the parameters it runs with: bindings, mocks, simulation."""

from dataclasses import dataclass

from activities.graphs import ExecutableNode
from activities.nodes.invocation import NodeResult
from activities.nodes.logic import condition_result, switch_result
from models.automation_runs.gate import RunContext, load_outputs
from models.automation_runs.rules import RunSource
from models.automations.rules.bindings import BindingContext, resolve
from models.automations.rules.kinds import NodeKind
from models.base import JsonObject
from runtime.database import UnitOfWork

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
    parameters: JsonObject
    context: BindingContext


async def prepare(work: UnitOfWork, context: RunContext, node: ExecutableNode) -> Prepared:
    """Load the outputs the node can read and resolve its bindings.

    Raises ExpressionError when a binding cannot be evaluated.
    """
    scope = context.options.get("scope") or {}
    binding_context = BindingContext(
        trigger=scope.get("trigger", context.trigger_payload),
        nodes=await load_outputs(work, context, node.reads),
        run=context.facts,
        item=scope.get("item"),
        index=scope.get("index"),
        vars=scope.get("variables") or {},
    )
    return Prepared(resolve(node.parameters, binding_context), binding_context)


def substitute(context: RunContext, node: ExecutableNode) -> NodeResult | None:
    """What a test run puts in a node's place: its mock, or `{simulated: true}`; else None."""
    if context.source != RunSource.TEST:
        return None
    output = context.options.get("mocks", {}).get(node.id, node.mock)
    if output is None:
        if not (context.options.get("simulate") and node.kind in SIMULATED):
            return None
        output = {"simulated": True}
    if node.kind == NodeKind.CONDITION:
        return condition_result(bool(output.get("result")))
    if node.kind == NodeKind.SWITCH:
        return switch_result(output.get("case"))
    return NodeResult(output)
