"""Handlers of the deletion of a workspace, for nouns that act by themselves.

Nouns of higher wings say here what they then do; `models.registrations` lists them.
"""

from collections.abc import Awaitable, Callable

from models.core.base import Id
from runtime.database import UnitOfWork

DeletionHandler = Callable[[UnitOfWork, Id], Awaitable[None]]
"""Takes the workspace that was deleted."""

_HANDLERS: list[DeletionHandler] = []


def on_workspace_deletion(handler: DeletionHandler) -> None:
    """Call `handler` in the transaction of each deletion; registering it again changes nothing."""
    if handler not in _HANDLERS:
        _HANDLERS.append(handler)


async def workspace_deleted(work: UnitOfWork, workspace_id: Id) -> None:
    """Call the handlers for a workspace that was deleted."""
    for handler in _HANDLERS:
        await handler(work, workspace_id)
