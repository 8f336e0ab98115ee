"""The people and files that values name: they are looked up in the record's own workspace."""

from collections.abc import Collection, Iterable, Sequence

from sqlalchemy import ARRAY, Uuid, bindparam, func, literal, or_, select

from models.content.files.queries import placing
from models.content.files.tables import file
from models.content.items.queries import closed_items
from models.content.items.tables import item
from models.core.access.rules import Actor, Level
from models.core.base import Id
from models.data.databases.rules.fields import Schema
from models.data.databases.rules.kinds import FieldKind
from models.data.records.rules.write.data import ids_in
from models.data.records.rules.write.writes import Checked
from models.people.workspaces.tables import workspace_member
from runtime.database import UnitOfWork
from runtime.errors import Detail, NotFoundError
from runtime.prepared_statement import PreparedStatement

_MEMBERS = PreparedStatement(
    select(workspace_member.c.user_id).where(
        workspace_member.c.workspace_id == bindparam("workspace_id", type_=Uuid),
        workspace_member.c.user_id == func.any(bindparam("ids", type_=ARRAY(Uuid))),
    )
)


async def check_references(
    work: UnitOfWork, actor: Actor, schema: Schema, checked: Sequence[Checked]
) -> list[Detail]:
    """A problem for every person a value newly names who is no member.

    Nobody else's id tells whether it exists. Raises `NotFoundError` for a file the actor does not
    see. What a record names already may stay.
    """
    files = _named(schema, checked, FieldKind.FILE)
    if files:
        await _check_files(work, actor, files)
    people = _named(schema, checked, FieldKind.PERSON)
    if not people:
        return []
    parameters = {"workspace_id": schema.workspace_id, "ids": [Id(user) for user in people]}
    members = {str(row.user_id) for row in await _MEMBERS.rows(work, parameters)}
    return [
        Detail(path, f"{user} is not a member of this workspace")
        for user, paths in people.items()
        if user not in members
        for path in paths
    ]


async def _check_files(work: UnitOfWork, actor: Actor, named: Collection[str]) -> None:
    places = select(item.c.id).where(placing(file))
    open_place = places.where(item.c.id.not_in(select(closed_items(actor).c.id))).exists()
    # A file without a place is at the root of its workspace.
    seen = or_(open_place, ~places.exists()) if actor.level >= Level.VIEW else open_place
    rows = await work.rows(
        select(file.c.id).where(
            file.c.workspace_id == actor.workspace_id,
            file.c.id == func.any(literal([Id(entry) for entry in named], ARRAY(Uuid))),
            file.c.deleted_at.is_(None),
            seen,
        )
    )
    if len(rows) < len(named):
        raise NotFoundError("file")


def _named(schema: Schema, checked: Iterable[Checked], kind: FieldKind) -> dict[str, list[str]]:
    """Each id that values of fields of a kind newly name, and the paths where it stands."""
    if all(spec.kind is not kind for spec in schema.fields.values()):
        return {}
    named: dict[str, list[str]] = {}
    for one in checked:
        held = {} if one.before is None else one.before.data
        for key, entry in ids_in(one.change, schema.fields, kind):
            known = held.get(key)
            if not isinstance(known, list) or entry not in known:
                named.setdefault(entry, []).append(f"{one.write.at}data.{key}")
    return named
