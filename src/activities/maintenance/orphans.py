"""Ends open executions whose row is closed or does not exist (promise I7)."""

from collections.abc import Mapping, Sequence
from typing import Any

import structlog
from sqlalchemy import select
from temporalio import activity
from temporalio.service import RPCError

from activities.maintenance.families import SweepContext, WorkFamily
from models.core.base import Id
from runtime.ids import parse_id

log = structlog.get_logger()


async def end_orphans(context: SweepContext, families: Sequence[WorkFamily[Any]]) -> dict[str, int]:
    """Terminate open executions whose row does not exist, cancel those whose row is closed.

    A row that closed within the grace is left: its execution may be about to end by itself. Gives
    how many were terminated, by the name of the family.
    """
    by_workflow = {name.value: family for family in families for name in family.workflows}
    terminated = dict.fromkeys((family.name for family in families), 0)
    started_before = (activity.info().started_time - context.grace).isoformat()
    query = f"ExecutionStatus = 'Running' AND StartTime < '{started_before}'"
    async for listed in context.client.list_workflows(query):
        try:
            family = await _end(context, by_workflow, listed.id)
        except RPCError:
            # It has ended meanwhile, or the next sweep comes back to it.
            log.warning("an execution could not be reconciled", workflow=listed.id)
            continue
        if family is not None:
            terminated[family.name] += 1
    return terminated


async def _end(
    context: SweepContext, known: Mapping[str, WorkFamily[Any]], workflow_id: str
) -> WorkFamily[Any] | None:
    """The family of the execution if it was terminated.

    An id is `<family>/<row id>`, and below it are the parts of a run's long loops.
    """
    name, _, rest = workflow_id.partition("/")
    family, row_id = known.get(name), parse_id(rest.partition("/")[0])
    if family is None or row_id is None:
        return None
    handle = context.client.get_workflow_handle(workflow_id)
    fate = await _fate(context, family, row_id)
    if fate is None:
        await handle.terminate(reason="There is no row of this id.")
        return family
    if fate:
        await handle.cancel()
    return None


async def _fate(context: SweepContext, family: WorkFamily[Any], row_id: Id) -> bool | None:
    """True when the execution of a row has nothing left to do; None without a row."""
    kind = family.kind
    columns = kind.table.c
    async with context.database.transaction() as work:
        closed = ~kind.is_open & (columns[kind.ended_column] <= work.now - context.grace)
        row = await work.first(select(closed.label("closed")).where(columns.id == row_id))
        return None if row is None else bool(row.closed)
