"""From a node's config to the parameters it runs with: bindings, mocks, simulation."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from activities.automation_runs.node_execution import CalledNode
from activities.automation_runs.nodes.invocation import NodeResult
from activities.automation_runs.nodes.logic import condition_result, switch_result
from activities.automation_runs.runs import ExecutableNode, OpenLoop, OpenRun, read_config
from models.automation.automation_runs.loops import earlier_loop, read_loop
from models.automation.automation_runs.node_writes import NodeKey
from models.automation.automation_runs.rules import NodeError
from models.automation.automations.rules.graph.kinds import EdgeOutcome, NodeKind
from models.automation.automations.rules.language.bindings import SENDERS, BindingContext, resolve
from models.automation.automations.rules.planner.protocol import NodeRef, index_of, loop_of
from models.automation.waits.links import NodeAddress, resume_path
from models.automation.waits.rules import scope_near
from models.core.base import JsonObject
from runtime.database import Database
from runtime.processes.bounded_processes import evaluate_bounded


def run_variable(run: OpenRun, scope_key: str) -> JsonObject:
    """Facts of the run; `resumeUrl` has the path of each such node, as seen from a scope."""
    if run.keys is None:
        return run.header.variable
    paths = {}
    for node in run.graph.nodes.values():
        if node.kind == NodeKind.WAIT_EVENT and node.parameters.get("resumeUrl") is not False:
            scope = scope_near(run.graph.plan, node.id, scope_key)
            if scope is not None:
                paths[node.id] = resume_path(
                    run.keys, NodeAddress(run.header.run_id, node.id, scope)
                )
    return {**run.header.variable, "resumeUrl": paths} if paths else run.header.variable


async def binding_context(
    database: Database, run: OpenRun, reads: Collection[str] | None, scope_key: str
) -> BindingContext:
    """The trigger, the outputs of the nodes in `reads` (None: of all), the item, the run.

    The index is the innermost loop's; the item that of the innermost loop which has items.
    """
    header = run.header
    scope = header.options.get("scope") or {}
    item, index = scope.get("item"), scope.get("index")
    if scope_key:
        item, index = await _item(database, run, scope_key), index_of(scope_key)
    return BindingContext(
        trigger=scope.get("trigger", header.trigger_payload),
        nodes=await run.outputs(database, reads, scope_key),
        run=run_variable(run, scope_key),
        item=item,
        index=index,
        vars={**run.graph.variables, **(scope.get("variables") or {})},
    )


async def _item(database: Database, run: OpenRun, scope_key: str) -> object:
    scope = run.item_scope(scope_key)
    if scope is None:
        return None
    items = (await open_loop(database, run, loop_of(scope))).items or []
    return items[index_of(scope)]


async def open_loop(database: Database, run: OpenRun, ref: NodeRef) -> OpenLoop:
    """A loop that was opened, read from memory or from its row."""
    loop = run.known_loop(ref)
    if loop is None:
        kind = run.graph.nodes[ref.node_id].kind
        key = NodeKey(run.header.workspace_id, run.header.run_id, ref.node_id, ref.scope_key, kind)
        async with database.statement() as work:
            row = await read_loop(work, key)
        assert row is not None, "a loop is opened before its iterations run"
        loop = OpenLoop(read_config(kind, row.input), run.chosen(ref))
        run.keep_loop(ref, loop)
    return loop


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
"""Kinds with side effects, which a simulated test run replaces (interface.md#test-runs)."""
_WAITED = (NodeKind.APPROVAL, NodeKind.WAIT_EVENT)


@dataclass(frozen=True, slots=True)
class ResolvedNode:
    """A node's parameters with bindings resolved, and the context they were resolved in."""

    parameters: JsonObject
    context: BindingContext


async def resolve_parameters(database: Database, invocation: CalledNode) -> ResolvedNode:
    """Resolve a node's bindings against the values it can read.

    Secrets are marks, and only in parameters that are sent. Raises BindingError when a binding
    cannot be evaluated.
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
    raise NodeError("validation_error", "The case of the mock must be the key of a case.")


def _waited_result(kind: str, output: JsonObject) -> NodeResult:
    """The outcome that the mock of a waiting node represents.

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


async def loop_parameters(database: Database, invocation: CalledNode) -> JsonObject:
    """The parameters of a loop. Raises BindingError."""
    run, ref = invocation.run, NodeRef(invocation.key.node_id, invocation.key.scope_key)
    indexes = run.chosen(ref)
    if not indexes:
        return (await resolve_parameters(database, invocation)).parameters
    if ref.node_id in run.repeats:
        return await _earlier_or_own(database, invocation)
    overrides = _given_items(invocation, ref, indexes)
    if len(overrides) == len(indexes):
        # The items of the caller replace those of the loop, which may not be available.
        node = replace(invocation.node, parameters={**invocation.node.parameters, "items": []})
        invocation = replace(invocation, node=node)
    parameters = await _earlier_or_own(database, invocation)
    known = parameters.get("items")
    items = list(known) if isinstance(known, list) else []
    items += [None] * (indexes[-1] + 1 - len(items))
    for index, item in overrides.items():
        items[index] = item
    return {**parameters, "items": items}


def _given_items(invocation: CalledNode, ref: NodeRef, chosen: tuple[int, ...]) -> dict[int, Any]:
    """The items that the caller chose, by iteration."""
    scope = invocation.run.header.options.get("scope") or {}
    if "item" not in scope:
        return {}
    begun = [index for index in chosen if invocation.run.begins_with(ref.iteration(index))]
    return dict.fromkeys(begun, scope["item"])


async def _earlier_or_own(database: Database, invocation: CalledNode) -> JsonObject:
    """The parameters the loop had in a run that this one replays, else those it has now."""
    async with database.statement() as work:
        earlier = await earlier_loop(work, invocation.run.header, invocation.key)
    if earlier is None:
        return (await resolve_parameters(database, invocation)).parameters
    parameters: JsonObject = earlier.input
    return parameters
