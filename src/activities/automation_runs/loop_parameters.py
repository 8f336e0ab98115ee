"""The parameters a loop is opened with; where only some iterations run, with their items (D3)."""

from dataclasses import replace
from typing import Any

from activities.automation_runs.node_execution import CalledNode
from activities.automation_runs.nodes.resolution import resolve_parameters
from models.automation.automation_runs.loops import earlier_loop
from models.automation.automations.rules.planner.protocol import NodeRef
from models.core.base import JsonObject
from runtime.database import Database


async def loop_parameters(database: Database, called: CalledNode) -> JsonObject:
    """The parameters of a loop. Raises BindingError."""
    run, ref = called.run, NodeRef(called.key.node_id, called.key.scope_key)
    chosen = run.chosen(ref)
    if not chosen:
        return (await resolve_parameters(database, called)).parameters
    if ref.node_id in run.repeats:
        return await _earlier_or_own(database, called)
    given = _given_items(called, ref, chosen)
    if len(given) == len(chosen):
        # What the caller gives stands for items that perhaps cannot be had.
        node = replace(called.node, parameters={**called.node.parameters, "items": []})
        called = replace(called, node=node)
    parameters = await _earlier_or_own(database, called)
    known = parameters.get("items")
    items = list(known) if isinstance(known, list) else []
    items += [None] * (chosen[-1] + 1 - len(items))
    for index, item in given.items():
        items[index] = item
    return {**parameters, "items": items}


def _given_items(called: CalledNode, ref: NodeRef, chosen: tuple[int, ...]) -> dict[int, Any]:
    """The items that the caller chose, by iteration."""
    scope = called.run.header.options.get("scope") or {}
    if "item" not in scope:
        return {}
    begun = [index for index in chosen if called.run.begins_with(ref.iteration(index))]
    return dict.fromkeys(begun, scope["item"])


async def _earlier_or_own(database: Database, called: CalledNode) -> JsonObject:
    """The parameters the loop had in a run that this one replays, else those it has now."""
    async with database.statement() as work:
        earlier = await earlier_loop(work, called.run.header, called.key)
    if earlier is None:
        return (await resolve_parameters(database, called)).parameters
    parameters: JsonObject = earlier.input
    return parameters
