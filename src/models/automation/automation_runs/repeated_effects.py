"""Facts for whoever is about to retry many runs: retries before, and effects that happen again."""

from collections.abc import Sequence
from typing import Any, Protocol

from sqlalchemy import Select, exists, func, select

from models.automation.automation_runs.rules import NodeStatus, RunSource
from models.automation.automation_runs.tables import automation_run, node_run
from models.automation.automations.joins import AUTOMATION
from models.automation.automations.rules.graph.kinds import NODE_KINDS, CostClass, NodeKind
from models.core.base import Id
from runtime.database import UnitOfWork

EFFECTS = tuple(
    kind
    for kind, spec in NODE_KINDS.items()
    if spec.cost in {CostClass.OUTSIDE, CostClass.ACTION} or kind is NodeKind.CALL_AUTOMATION
)
"""The kinds of nodes whose effect no retry can find done."""


class RepeatedEffect(Protocol):
    """A node, and the number of runs in which it succeeded."""

    automation_id: Id
    automation_label: str
    node_id: str
    node_kind: str
    runs: int


async def count_retried(work: UnitOfWork, runs: Select[Any]) -> int:
    """The number of runs, among these ids, that another run runs again already."""
    picked, replay = runs.subquery("picked"), automation_run.alias("replay").c
    retried = exists().where(
        replay.replay_of_run_id == picked.c.id, replay.source == RunSource.REPLAY.value
    )
    count: int = await work.scalar(select(func.count()).select_from(picked).where(retried))
    return count


async def repeated_effects(
    work: UnitOfWork, runs: Select[Any], most: int, *, only_failed: bool
) -> Sequence[RepeatedEffect]:
    """The nodes whose effects succeeded in runs (ids and `automation_id`), and would be repeated.

    With `only_failed` what ended well is reused; but a loop that failed runs whole again.
    """
    picked, node, loop = runs.subquery("picked"), node_run.c, node_run.alias("loop").c
    count = func.count(picked.c.id.distinct())
    statement = (
        select(
            picked.c.automation_id,
            AUTOMATION.label.label("automation_label"),
            node.node_id,
            node.node_kind,
            count.label("runs"),
        )
        .join(node_run, node.run_id == picked.c.id)
        .join(AUTOMATION.id.table, AUTOMATION.id == picked.c.automation_id)
        .where(node.node_kind.in_(EFFECTS), node.status == NodeStatus.SUCCEEDED)
        .group_by(picked.c.automation_id, AUTOMATION.label, node.node_id, node.node_kind)
        .order_by(count.desc(), AUTOMATION.label, node.node_id)
        .limit(most)
    )
    if only_failed:
        around = func.split_part(node.scope_key, ":", 1)
        stands = exists().where(
            loop.run_id == node.run_id,
            loop.node_id == around,
            loop.scope_key == "",
            loop.status == NodeStatus.SUCCEEDED,
        )
        statement = statement.where(node.scope_key != "", ~stands)
    return await work.rows(statement, of=RepeatedEffect)
