"""Handlers of runs that ended while they waited, for nouns whose work they waited for.

Nouns above say here what they then do; `models.registrations` lists them.
"""

from collections.abc import Awaitable, Callable, Collection

from models.core.base import Id
from runtime.database import UnitOfWork

EndHandler = Callable[[UnitOfWork, Id, Collection[Id]], Awaitable[None]]
"""Takes a workspace and runs of it."""

_HANDLERS: list[EndHandler] = []


def on_run_end(handler: EndHandler) -> None:
    """Call `handler` in the transaction of each end; registering it again changes nothing."""
    if handler not in _HANDLERS:
        _HANDLERS.append(handler)


async def runs_ended(work: UnitOfWork, workspace_id: Id, run_ids: Collection[Id]) -> None:
    """Call the handlers for runs of a workspace that have ended."""
    for handler in _HANDLERS:
        await handler(work, workspace_id, run_ids)
