"""The rights that an actor needs to make a copy."""

from models.content.items.commands import check_parent
from models.core.access.placement import level_on
from models.core.access.rules import Actor, Level, Scope
from models.core.base import Id
from models.data.database_copies.queries import SourceDatabase
from models.data.database_copies.rules import outward
from models.data.fields.queries import visible as visible_database
from models.data.fields.rules.fields import FieldSpecs
from runtime.database import UnitOfWork
from runtime.errors import DeniedError, NotFoundError

_DATABASE = frozenset({Scope.DATABASES_READ, Scope.DATABASES_WRITE})
_RECORDS = frozenset({Scope.RECORDS_READ, Scope.RECORDS_WRITE})


def check_copy_scopes(actor: Actor, *, with_records: bool) -> None:
    """Raise `DeniedError` unless the actor may read what is copied, and write what is made of it.

    Nobody reads by copying what their credential keeps them from.
    """
    missing = sorted((_DATABASE | _RECORDS if with_records else _DATABASE) - actor.scopes)
    if missing:
        raise DeniedError(f"The credential lacks the scope {' and '.join(missing)}.")


async def parent_of_copy(work: UnitOfWork, actor: Actor, source: SourceDatabase) -> Id | None:
    """The parent of a copy: the source's, or None, the root, for an actor who may not create there.

    Raises `DeniedError` for an actor who may create nothing at the root either.
    """
    try:
        await check_parent(work, actor, source.parent_item_id)
    except (NotFoundError, DeniedError):
        await check_parent(work, actor, None)
        return None
    return source.parent_item_id


async def closed_targets(
    work: UnitOfWork, actor: Actor, source_id: Id, fields: FieldSpecs
) -> set[Id]:
    """The databases that these relations point into and the actor does not edit.

    Copied, such a relation would add its other side to them.
    """
    closed = set()
    for target_id in sorted({spec.target_id for spec in outward(fields, source_id)}):
        place = await visible_database(work, [actor.workspace_id], target_id, actor.user_id)
        if place is not None and level_on(place, actor.role) < Level.EDIT:
            closed.add(target_id)
    return closed


async def check_relation_targets(
    work: UnitOfWork, actor: Actor, source_id: Id, fields: FieldSpecs
) -> None:
    """Raise `DeniedError` for a relation into a database the actor does not edit any more."""
    if await closed_targets(work, actor, source_id, fields):
        raise DeniedError("The database that a relation points into was closed meanwhile.")
