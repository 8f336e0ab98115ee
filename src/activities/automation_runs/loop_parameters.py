"""The parameters a loop is opened with; where only some iterations run, with their items (D3)."""

from dataclasses import replace
from typing import Any

from activities.automation_runs.node_execution import CalledNode
from activities.automation_runs.nodes.resolution import resolve_parameters
from models.automation.automation_runs.loops import earlier_loop
from models.automation.automations.rules.planner.protocol import NodeRef
from models.core.base import JsonObject
from runtime.database import Database


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
        # What the caller gives stands for items that perhaps cannot be had.
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
