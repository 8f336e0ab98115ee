"""Handlers of the removal of a member, for nouns that hold what is the member's own.

Nouns of higher wings say here what they then do; `models.registrations` lists them.
"""

from collections.abc import Awaitable, Callable

from models.core.access.rules import Actor
from models.core.base import Id
from runtime.database import UnitOfWork

RemovalHandler = Callable[[UnitOfWork, Actor, Id], Awaitable[None]]
"""Takes who removes the member, which may be themselves, and the user that was removed."""

_HANDLERS: list[RemovalHandler] = []


def on_member_removal(handler: RemovalHandler) -> None:
    """Call `handler` in the transaction of each removal; registering it again changes nothing."""
    if handler not in _HANDLERS:
        _HANDLERS.append(handler)


async def member_removed(work: UnitOfWork, actor: Actor, user_id: Id) -> None:
    """Call the handlers for a user who is no member any more."""
    for handler in _HANDLERS:
        await handler(work, actor, user_id)
