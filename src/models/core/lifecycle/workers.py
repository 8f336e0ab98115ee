"""The wait of open work for a worker that was lost, and the last sign of any worker.

The wing of the whole platform knows of workers, and says so through `find_lost_workers_with` and
`find_last_sign_with`; `models.registrations` lists them.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Protocol, TypeVar

from runtime.database import UnitOfWork

FindLost = Callable[[UnitOfWork], Awaitable[datetime | None]]
"""Gives the time at which a queue lost its last worker; None while all have one."""

FindSign = Callable[[UnitOfWork], Awaitable[datetime | None]]
"""Gives the time at which a worker said last that it is there; None when none is remembered."""

_FIND: list[FindLost] = []
_FIND_SIGN: list[FindSign] = []


def find_lost_workers_with(find: FindLost) -> None:
    """Ask `find` for lost workers; registering it again changes nothing."""
    if find not in _FIND:
        _FIND.append(find)


class OpenWork(Protocol):
    """An answer about work that says when it was accepted."""

    created_at: datetime
    waiting_for_worker_since: datetime | None


Answer = TypeVar("Answer", bound=OpenWork)


async def with_worker_wait(work: UnitOfWork, answer: Answer, *, is_open: bool) -> Answer:
    """The answer about work, with the time since which it waits for a lost worker."""
    if is_open:
        answer.waiting_for_worker_since = await waiting_for_worker_since(work, answer.created_at)
    return answer


async def waiting_for_worker_since(work: UnitOfWork, accepted: datetime) -> datetime | None:
    """The start of the wait of open work, accepted then, for a lost worker; None if it has none."""
    for find in _FIND:
        if (lost := await find(work)) is not None:
            return max(lost, accepted)
    return None


def find_last_sign_with(find: FindSign) -> None:
    """Ask `find` for the last sign of a worker; registering it again changes nothing."""
    if find not in _FIND_SIGN:
        _FIND_SIGN.append(find)


async def last_sign(work: UnitOfWork) -> datetime | None:
    """The time at which a worker said last that it is there; None when none is remembered.

    A worker that ended in order is forgotten at once.
    """
    (find,) = _FIND_SIGN
    return await find(work)
