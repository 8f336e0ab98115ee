"""The way of every sweep over open rows: page by page, one row's trouble for itself."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any

import structlog
from sqlalchemy import Row
from temporalio import activity

from models.core.base import Id

log = structlog.get_logger()

RowsAfter = Callable[[Id | None], Awaitable[Sequence[Row[Any]]]]
"""The next rows in the order of their ids, none when there are no more."""
Repair = Callable[[Row[Any]], Awaitable[str | None]]
"""Makes a row and its execution agree; says what it did, None for nothing."""


async def reconcile(
    rows_after: RowsAfter, repair: Repair, repairs: Collection[str]
) -> dict[str, int]:
    """Repair every row; how often each of the `repairs` was made."""
    counts = dict.fromkeys(repairs, 0)
    last: Id | None = None
    while rows := await rows_after(last):
        for row in rows:
            activity.heartbeat()
            try:
                done = await repair(row)
            except Exception:
                # One row's trouble must not keep the sweep from the others.
                log.exception("a row could not be reconciled", id=str(row.id))
                continue
            if done is not None:
                counts[done] += 1
        last = rows[-1].id
    return counts
