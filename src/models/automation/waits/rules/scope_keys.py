"""Scope keys, held against the loops of a plan (decisions C8)."""

import re

from models.automation.automations.rules.graph.configs.loops import MAX_ITEMS
from models.automation.automations.rules.graph.loop_nesting import enclosing, homes_of
from models.automation.automations.rules.planner.plan import Plan

_INDEX = re.compile(r"0|[1-9]\d{0,5}")


def is_scope_of(plan: Plan, node_id: str, scope_key: str) -> bool:
    """True when a node of the plan can run in this scope."""
    around = _around(plan, node_id)
    steps = scope_key.split("/") if scope_key else []
    if len(steps) != len(around):
        return False
    for loop, step in zip(around, steps, strict=True):
        name, _, index = step.rpartition(":")
        if name != loop or not _INDEX.fullmatch(index) or int(index) >= MAX_ITEMS:
            return False
    return True


def scope_near(plan: Plan, node_id: str, scope_key: str) -> str | None:
    """The scope in which a node runs as seen from another; None when there is more than one."""
    around = _around(plan, node_id)
    steps = scope_key.split("/") if scope_key else []
    shared = steps[: len(around)]
    same = tuple(step.rpartition(":")[0] for step in shared) == around
    return "/".join(shared) if same else None


def _around(plan: Plan, node_id: str) -> tuple[str, ...]:
    return enclosing(node_id, homes_of([node.id for node in plan.nodes], plan.edges))
