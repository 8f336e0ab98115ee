"""Handlers of what happens to items, for nouns that act by themselves.

An item that goes to the trash, comes back from it, or is archived or unarchived takes its target
with it. Nouns of higher wings say here what they then do; `models.registrations` lists them.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from models.content.items.rules import ItemKind
from models.core.base import Id
from runtime.database import UnitOfWork

PlacementHandler = Callable[[UnitOfWork, Id, Sequence[Id]], Awaitable[None]]
"""Takes a workspace and the targets of its items that went or came back."""

_HANDLERS: dict[ItemKind, PlacementHandler] = {}


def on_placement_change(kind: ItemKind, handler: PlacementHandler) -> None:
    """Call `handler` for items of a kind, in the transaction of each change; one for each kind."""
    _HANDLERS[kind] = handler


def kinds_with_handlers() -> Sequence[ItemKind]:
    """The kinds of which somebody hears."""
    return list(_HANDLERS)


async def placement_changed(
    work: UnitOfWork, workspace_id: Id, targets: Mapping[str, Sequence[Id]]
) -> None:
    """Call the handlers for the targets, by kind, of items that went or came back."""
    for kind, handler in _HANDLERS.items():
        if found := targets.get(kind.value):
            await handler(work, workspace_id, found)
