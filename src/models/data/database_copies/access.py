"""What the actor of a copy must be allowed to do."""

from sqlalchemy import select

from models.content.items.commands import check_parent
from models.content.items.joins import ITEM, live_item_of
from models.core.access.placement import level_on
from models.core.access.rules import Actor, Level
from models.core.base import Id
from models.data.database_copies.rules import outward
from models.data.databases.queries import visible as visible_database
from models.data.databases.rules.fields import FieldSpecs
from models.data.databases.tables import database
from runtime.database import UnitOfWork
from runtime.errors import DeniedError, NotFoundError


async def check_parent_of_copy(work: UnitOfWork, actor: Actor, database_id: Id) -> None:
    """Check that the actor may create an item beside a database. Raises `DeniedError`."""
    parent_id: Id | None = await work.scalar(
        select(ITEM.parent_item_id)
        .select_from(database)
        .join(*live_item_of(database))
        .where(
            database.c.workspace_id == actor.workspace_id,
            database.c.id == database_id,
        )
    )
    try:
        await check_parent(work, actor, parent_id)
    except NotFoundError as error:
        raise DeniedError("The copy is put beside the database, where you see nothing.") from error


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
