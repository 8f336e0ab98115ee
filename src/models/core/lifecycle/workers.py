"""Since when work waits for a worker that was lost, which the wing of the whole platform knows.

It says so through `find_lost_workers_with`; `models.registrations` lists it.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime

from runtime.database import UnitOfWork

FindLost = Callable[[UnitOfWork], Awaitable[datetime | None]]
"""Gives since when a queue has no worker although it had one; None when all have some."""

_FIND: list[FindLost] = []


def find_lost_workers_with(find: FindLost) -> None:
    """Ask `find` for lost workers; registering it again changes nothing."""
    if find not in _FIND:
        _FIND.append(find)


async def waiting_for_worker_since(work: UnitOfWork, accepted: datetime) -> datetime | None:
    """Since when open work, accepted then, waits for a lost worker; None when it does not."""
    for find in _FIND:
        if (lost := await find(work)) is not None:
            return max(lost, accepted)
    return None
