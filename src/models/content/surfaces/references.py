"""Checking that the actor sees every item, file, record, … that blocks name.

One statement for each kind. Nouns of higher wings register how their ids are looked up.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sqlalchemy import (
    ARRAY,
    Select,
    Text,
    any_,
    cast,
    func,
    literal,
    select,
)

from models.content.files.queries import unhidden_files
from models.content.items.queries import seen_items
from models.content.surfaces.rules.references import Reference, references
from models.content.surfaces.tables import block
from models.core.access.rules import Actor
from models.core.base import Id
from models.people.members.queries import members_among
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError


async def check_references(
    work: UnitOfWork,
    actor: Actor,
    surface_id: Id,
    contents: Iterable[Any],
    new_blocks: Iterable[Id] = (),
) -> None:
    """Check that the actor sees what contents name, unless the surface names it already.

    So whoever may edit a page can save it, although others have put on it what the actor does not
    see, or something has been deleted. Raises `NotFoundError` of the first noun that fails.
    """
    named = references(list(contents)) - {Reference("block", id_) for id_ in new_blocks}
    missing: set[Reference] = set()
    for noun in sorted({reference.noun for reference in named}):
        wanted = [reference.id for reference in named if reference.noun == noun]
        seen = _blocks(actor, surface_id, wanted) if noun == "block" else _SEEN[noun](actor, wanted)
        rows = await work.rows(seen)
        missing |= {Reference(noun, id_) for id_ in set(wanted) - {row.id for row in rows}}
    if missing:
        missing -= await _named_already(work, actor, surface_id, missing)
    if missing:
        raise NotFoundError(min(reference.noun for reference in missing))


async def _named_already(
    work: UnitOfWork, actor: Actor, surface_id: Id, missing: set[Reference]
) -> set[Reference]:
    patterns = literal([f"%{reference.id}%" for reference in missing], ARRAY(Text))
    rows = await work.rows(
        select(block.c.content).where(
            block.c.workspace_id == actor.workspace_id,
            block.c.surface_id == surface_id,
            cast(block.c.content, Text).like(any_(patterns)),
        )
    )
    return references([row.content for row in rows])


def _users(actor: Actor, ids: Sequence[Id]) -> Select[Any]:
    member = members_among(actor.workspace_id, ids).subquery()
    return select(member.c.user_id.label("id"))


def _blocks(actor: Actor, surface_id: Id, ids: Sequence[Id]) -> Select[Any]:
    return select(block.c.id).where(
        block.c.workspace_id == actor.workspace_id,
        block.c.surface_id == surface_id,
        block.c.id == func.any(ids),
    )


Seen = Callable[[Actor, Sequence[Id]], Select[Any]]
"""Selects, as `id`, the ids among these that the actor sees."""

_SEEN: dict[str, Seen] = {"item": seen_items, "file": unhidden_files, "user": _users}


def register_reference(noun: str, query: Seen) -> None:
    """Let contents name things of a higher wing; `models.registrations` lists them."""
    _SEEN[noun] = query
