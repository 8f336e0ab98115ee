"""The wait of open work for a worker that was lost.

The wing of the whole platform knows of lost workers, and says so through
`find_lost_workers_with`; `models.registrations` lists it.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime

from runtime.database import UnitOfWork

FindLost = Callable[[UnitOfWork], Awaitable[datetime | None]]
"""Gives the time at which a queue lost its last worker; None while all have one."""

_FIND: list[FindLost] = []


def find_lost_workers_with(find: FindLost) -> None:
    """Ask `find` for lost workers; registering it again changes nothing."""
    if find not in _FIND:
        _FIND.append(find)


async def waiting_for_worker_since(work: UnitOfWork, accepted: datetime) -> datetime | None:
    """The start of the wait of open work, accepted then, for a lost worker; None if it has none."""
    for find in _FIND:
        if (lost := await find(work)) is not None:
            return max(lost, accepted)
    return None
