"""What the settings of a field name elsewhere in the workspace (decisions C2)."""

from collections.abc import Iterable
from typing import Any

from models.automation.actions.queries import visible as visible_action
from models.core.access.placement import level_on
from models.core.access.rules import Actor, Level
from models.core.base import Id, JsonObject
from models.data.databases.queries import visible as visible_database
from models.data.databases.rules.kinds import FieldKind
from runtime.database import UnitOfWork
from runtime.errors import DeniedError, NotFoundError
from runtime.ids import parse_id

Described = tuple[FieldKind, JsonObject | None]
"""The kind and the settings of a field in a body."""


async def check_references(work: UnitOfWork, actor: Actor, described: Iterable[Described]) -> None:
    """Whether the actor may name what these fields name; asked before the rest is judged.

    What is no id at all is left to the check of the settings. Raises `NotFoundError` for what the
    actor does not see, `DeniedError` without edit access to a database that would get the other
    side of a relation.
    """
    named = {
        (kind, found)
        for kind, settings in described
        if kind in _NAMES and (found := _id((settings or {}).get(_NAMES[kind]))) is not None
    }
    for kind, id_ in sorted(named):
        if kind is FieldKind.RELATION:
            await _check_database(work, actor, id_)
        else:
            await _check_action(work, actor, id_)


_NAMES = {FieldKind.RELATION: "databaseId", FieldKind.BUTTON: "actionId"}


def _id(value: Any) -> Id | None:
    return parse_id(value) if isinstance(value, str) else None


async def _check_database(work: UnitOfWork, actor: Actor, database_id: Id) -> None:
    found = await visible_database(work, [actor.workspace_id], database_id, actor.user_id)
    level = Level.NONE if found is None else level_on(found, actor.role)
    if level < Level.VIEW:
        raise NotFoundError("database")
    if level < Level.EDIT:
        raise DeniedError(
            "A relation needs edit access to the database it points into, which gets its other"
            " side."
        )


async def _check_action(work: UnitOfWork, actor: Actor, action_id: Id) -> None:
    found = await visible_action(work, [actor.workspace_id], action_id, actor.user_id)
    if found is None or level_on(found, actor.role) < Level.VIEW:
        raise NotFoundError("action")
