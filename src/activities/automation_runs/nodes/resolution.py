"""From a node's config to the parameters it runs with: bindings, mocks, simulation."""

from dataclasses import dataclass, replace

from activities.automation_runs.binding_contexts import binding_context
from activities.automation_runs.graphs import ExecutableNode
from activities.automation_runs.node_execution import CalledNode
from activities.automation_runs.nodes.invocation import NodeResult
from activities.automation_runs.nodes.logic import condition_result, switch_result
from activities.automation_runs.runs import OpenRun
from models.automation.automation_runs.errors import NodeError
from models.automation.automations.rules.graph.kinds import EdgeOutcome, NodeKind
from models.automation.automations.rules.language.bindings import BindingContext, resolve
from models.automation.automations.rules.language.secret_marks import SENDERS
from models.core.base import JsonObject
from runtime.bounded_processes import evaluate_bounded
from runtime.database import Database

SIMULATED = frozenset(
    {
        NodeKind.ACTION,
        NodeKind.CALL_AUTOMATION,
        NodeKind.CREATE_RECORD,
        NodeKind.UPDATE_RECORD,
        NodeKind.DELETE_RECORD,
        NodeKind.HTTP_REQUEST,
        NodeKind.NOTIFY,
        NodeKind.SEND_EMAIL,
        NodeKind.SEND_WEBHOOK,
    }
)
"""Kinds with side effects, which a simulated test run replaces (decisions D3)."""
_WAITED = (NodeKind.APPROVAL, NodeKind.WAIT_EVENT)


@dataclass(frozen=True, slots=True)
class ResolvedNode:
    """A node's parameters with bindings resolved, and the context they were resolved in."""

    parameters: JsonObject
    context: BindingContext


async def resolve_parameters(database: Database, invocation: CalledNode) -> ResolvedNode:
    """Resolve a node's bindings in what it can read.

    Secrets are there as marks, and only in what is sent. Raises BindingError when a binding cannot
    be evaluated.
    """
    node = invocation.node
    context = await binding_context(database, invocation.run, node.reads, invocation.key.scope_key)
    context = replace(context, sends_secrets=node.kind in SENDERS)
    parameters = await evaluate_bounded(lambda: resolve(node.parameters, context))
    return ResolvedNode(parameters, context)


def substitute(run: OpenRun, node: ExecutableNode) -> NodeResult | None:
    """The end a test run puts in a node's place: its mock, or `{simulated: true}`; else None."""
    if not run.header.is_test:
        return None
    options = run.header.options
    output = options.get("mocks", {}).get(node.id, node.mock)
    if output is None:
        if not (options.get("simulate") and node.kind in SIMULATED):
            return None
        output = {"simulated": True}
    if node.kind == NodeKind.CONDITION:
        return condition_result(bool(output.get("result")))
    if node.kind == NodeKind.SWITCH:
        return switch_result(_case(output))
    if node.kind in _WAITED:
        return _waited_result(node.kind, output)
    return NodeResult(output)


def _case(mock: JsonObject) -> str | None:
    """The case that a mock chooses. Raises NodeError for what no edge can be named after."""
    key = mock.get("case")
    if isinstance(key, str | None):
        return key
    raise NodeError("validation_error", "The mock's case must be the key of a case.")


def _waited_result(kind: str, output: JsonObject) -> NodeResult:
    """The outcome that the mock of a waiting node stands for.

    `{timeout: true}` is the end of the time; an approval is approved unless its `decision` says
    otherwise.
    """
    decision = output.get("decision")
    if output.get("timeout") is True or decision == EdgeOutcome.TIMEOUT:
        return NodeResult(output, EdgeOutcome.TIMEOUT)
    if kind == NodeKind.WAIT_EVENT:
        return NodeResult(output)
    rejected = decision == EdgeOutcome.REJECTED
    return NodeResult(output, EdgeOutcome.REJECTED if rejected else EdgeOutcome.APPROVED)
