"""References from the settings of a field to nouns elsewhere in the workspace (decisions C2).

A noun of a higher wing that fields may name registers how it is checked; `models.registrations`
lists them.
"""

from collections.abc import Awaitable, Callable, Iterable

from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.data.fields.queries import require_edit
from models.data.fields.rules.kinds import FieldKind
from runtime.database import UnitOfWork
from runtime.ids import parse_id

KindAndSettings = tuple[FieldKind, JsonObject | None]
"""The kind and the settings of a field in a body."""

ReferenceCheck = Callable[[UnitOfWork, Actor, Id], Awaitable[None]]
"""Raises `NotFoundError` or `DeniedError` when the actor may not name what has this id."""

_SETTINGS = {FieldKind.RELATION: "databaseId", FieldKind.BUTTON: "actionId"}
"""The setting of a field kind that names something."""


def check_reference_with(kind: FieldKind, check: ReferenceCheck) -> None:
    """Have what fields of a kind name checked by `check`; one for each kind."""
    _CHECKS[kind] = check


async def check_references(
    work: UnitOfWork, actor: Actor, fields: Iterable[KindAndSettings]
) -> None:
    """Check that the actor may name what these fields name, before anything else is checked.

    A value that is no id is left to the check of the settings. Raises `NotFoundError` for what the
    actor does not see, `DeniedError` without edit access to a database that would get the other
    side of a relation.
    """
    named = {
        (kind, found)
        for kind, settings in fields
        if kind in _SETTINGS and (found := _id((settings or {}).get(_SETTINGS[kind]))) is not None
    }
    for kind, id_ in sorted(named):
        await _CHECKS[kind](work, actor, id_)


def _id(value: object) -> Id | None:
    return parse_id(value) if isinstance(value, str) else None


async def _check_database(work: UnitOfWork, actor: Actor, database_id: Id) -> None:
    needed = (
        "A relation needs edit access to the database it points into, which gets its other side."
    )
    await require_edit(work, actor, database_id, needed)


_CHECKS: dict[FieldKind, ReferenceCheck] = {FieldKind.RELATION: _check_database}
