"""Counters of a month that cost as much at its end as at its begin.

Rows that can no longer change are counted once, and kept as totals. A read adds the rows since.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import Select, func, or_, select
from sqlalchemy.dialects.postgresql import insert

from models.automation.automation_runs.queries import runs_since
from models.core.base import Id
from models.messages.webhook_endpoints.queries import deliveries_since
from models.people.request_logs.queries import calls_since
from models.people.workspaces.queries import every_workspace
from models.workspace.usage.tables import UsageTotal, usage_total
from runtime.database import UnitOfWork

SETTLED_AFTER = timedelta(minutes=10)
"""Rows older than this are all committed: no transaction takes nearly as long."""
COUNTED_EVERY = timedelta(minutes=10)
WORKSPACES_AT_ONCE = 100


class UsageCounter(StrEnum):
    AUTOMATION_RUNS = "automation_runs"
    API_CALLS = "api_calls"
    WEBHOOK_DELIVERIES = "webhook_deliveries"


RowsSince = Callable[[Id, datetime, datetime | None], Select[Any]]
_ROWS: Mapping[UsageCounter, RowsSince] = {
    UsageCounter.AUTOMATION_RUNS: runs_since,
    UsageCounter.API_CALLS: calls_since,
    UsageCounter.WEBHOOK_DELIVERIES: deliveries_since,
}


def month_of(now: datetime) -> datetime:
    """The begin of a moment's month in UTC."""
    return now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)


async def month_totals(work: UnitOfWork, workspace_id: Id) -> dict[UsageCounter, int]:
    """Count what a workspace made this month, by counter."""
    kept = await _kept(work, workspace_id)
    month = month_of(work.now)
    return {
        counter: number + await _count(work, rows(workspace_id, since, None))
        for counter, rows in _ROWS.items()
        for number, since in [_settled(kept.get(counter), month)]
    }


async def settle_totals(work: UnitOfWork) -> int:
    """Bring the totals of some workspaces up to date, the longest uncounted first.

    Returns their number; repeat until 0.
    """
    until = work.now - SETTLED_AFTER
    workspace = every_workspace()
    due = (
        select(workspace.c.id)
        .outerjoin(
            usage_total,
            (usage_total.c.workspace_id == workspace.c.id)
            & (usage_total.c.counter == UsageCounter.API_CALLS),
        )
        .where(
            or_(
                usage_total.c.counted_until.is_(None),
                usage_total.c.counted_until < until - COUNTED_EVERY,
            )
        )
        .order_by(usage_total.c.counted_until.nulls_first(), workspace.c.id)
        .limit(WORKSPACES_AT_ONCE)
    )
    workspace_ids = [row.id for row in await work.rows(due)]
    for workspace_id in workspace_ids:
        await _settle(work, workspace_id, until)
    return len(workspace_ids)


async def _settle(work: UnitOfWork, workspace_id: Id, until: datetime) -> None:
    kept, month = await _kept(work, workspace_id), month_of(until)
    values = []
    for counter, rows in _ROWS.items():
        number, since = _settled(kept.get(counter), month)
        number += await _count(work, rows(workspace_id, since, until))
        values.append(
            {
                "workspace_id": workspace_id,
                "counter": counter.value,
                "month": month,
                "number": number,
                "counted_until": until,
            }
        )
    statement = insert(usage_total).values(values)
    await work.execute(
        statement.on_conflict_do_update(
            index_elements=["workspace_id", "counter"],
            set_={name: statement.excluded[name] for name in ("month", "number", "counted_until")},
            # Of two sweeps at once the later one counted on from what it read.
            where=usage_total.c.counted_until < statement.excluded.counted_until,
        )
    )


async def _kept(work: UnitOfWork, workspace_id: Id) -> dict[str, UsageTotal]:
    rows = await work.rows(
        select(usage_total).where(usage_total.c.workspace_id == workspace_id), of=UsageTotal
    )
    return {row.counter: row for row in rows}


def _settled(kept: UsageTotal | None, month: datetime) -> tuple[int, datetime]:
    """The number that is counted of a month already, and the moment from which it is not."""
    return (0, month) if kept is None or kept.month != month else (kept.number, kept.counted_until)


async def _count(work: UnitOfWork, rows: Select[Any]) -> int:
    return int(await work.scalar(select(func.count()).select_from(rows.subquery())))
