"""What the rows of a run say beyond its wire shape."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select

from models.automation.automation_runs.shapes import AutomationRunDetail
from models.automation.automation_runs.tables import automation_run, node_run, node_run_attempt
from models.core.base import Id
from tests.support.engine import Engine


async def error_codes(engine: Engine, run: AutomationRunDetail) -> dict[str, str]:
    """The code of every failed node, by node id."""
    async with engine.database.transaction() as work:
        rows = await work.rows(
            select(node_run.c.node_id, node_run.c.error_code).where(
                node_run.c.run_id == run.id, node_run.c.error_code.is_not(None)
            )
        )
    return {row.node_id: row.error_code for row in rows}


async def attempts(engine: Engine, run_id: Id) -> Sequence[Any]:
    """The attempts that did not succeed, as (node id, attempt, code)."""
    kept = node_run_attempt.c
    async with engine.database.transaction() as work:
        rows = await work.rows(
            select(kept.node_id, kept.attempt, kept.error_code)
            .where(kept.run_id == run_id)
            .order_by(kept.node_id, kept.attempt)
        )
    return [tuple(row) for row in rows]


async def runs_of(engine: Engine, automation_id: Id) -> list[Any]:
    """The runs of an automation, oldest first."""
    async with engine.database.transaction() as work:
        rows = await work.rows(
            select(automation_run)
            .where(automation_run.c.automation_id == automation_id)
            .order_by(automation_run.c.created_at, automation_run.c.id)
        )
    return list(rows)


def states(run: AutomationRunDetail) -> dict[str, str]:
    """The status of every node that has a row, by node id."""
    return {one.node_id: one.status.value for one in run.node_runs}
