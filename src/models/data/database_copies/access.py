"""What the actor of a copy must be allowed to do."""

from models.content.items.commands import check_parent
from models.core.access.placement import level_on
from models.core.access.rules import Actor, Level
from models.core.base import Id
from models.data.database_copies.queries import SourceDatabase
from models.data.database_copies.rules import outward
from models.data.databases.queries import visible as visible_database
from models.data.databases.rules.fields import FieldSpecs
from runtime.database import UnitOfWork
from runtime.errors import DeniedError, NotFoundError


async def parent_of_copy(work: UnitOfWork, actor: Actor, source: SourceDatabase) -> Id | None:
    """Where a copy is put: beside its source, or at the root for an actor who may not create there.

    Raises `DeniedError` for an actor who may create nothing at the root either.
    """
    try:
        await check_parent(work, actor, source.parent_item_id)
    except (NotFoundError, DeniedError):
        await check_parent(work, actor, None)
        return None
    return source.parent_item_id


async def check_relation_targets(
    work: UnitOfWork, actor: Actor, source_id: Id, fields: FieldSpecs
) -> None:
    """Raise `DeniedError` for a relation into a database the actor does not edit."""
    for target_id in sorted({spec.target_id for spec in outward(fields, source_id)}):
        place = await visible_database(work, [actor.workspace_id], target_id, actor.user_id)
        if place is not None and level_on(place, actor.role) < Level.EDIT:
            raise DeniedError(
                "The copy of a relation needs edit access to the database it points into, which"
                " gets its other side."
            )
