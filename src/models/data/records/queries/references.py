"""The people and files that values name: they are looked up in the record's own workspace."""

from collections.abc import Collection, Iterable, Sequence

from sqlalchemy import ARRAY, Uuid, bindparam

from models.content.files.queries import seen_files
from models.core.access.rules import Actor
from models.core.base import Id
from models.data.fields.rules.fields import Schema
from models.data.fields.rules.kinds import FieldKind
from models.data.records.rules.write.data import ids_in
from models.data.records.rules.write.writes import Checked
from models.people.members.queries import members_among
from runtime.database import UnitOfWork
from runtime.errors import Detail, NotFoundError
from runtime.prepared_statement import PreparedStatement

_MEMBERS = PreparedStatement(
    members_among(bindparam("workspace_id", type_=Uuid), bindparam("ids", type_=ARRAY(Uuid)))
)


async def check_references(
    work: UnitOfWork, actor: Actor, schema: Schema, checked_writes: Sequence[Checked]
) -> list[Detail]:
    """A problem for every person a value newly names who is no member.

    Nobody else's id tells whether it exists. Raises `NotFoundError` for a file the actor does not
    see. What a record names already may stay.
    """
    files = _named(schema, checked_writes, FieldKind.FILE)
    if files:
        await _check_files(work, actor, files)
    people = _named(schema, checked_writes, FieldKind.PERSON)
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


async def _check_files(work: UnitOfWork, actor: Actor, file_ids: Collection[str]) -> None:
    rows = await work.rows(seen_files(actor, [Id(entry) for entry in file_ids]))
    if len(rows) < len(file_ids):
        raise NotFoundError("file")


def _named(
    schema: Schema, checked_writes: Iterable[Checked], kind: FieldKind
) -> dict[str, list[str]]:
    """Each id that values of fields of a kind newly name, and the paths where it stands."""
    if all(spec.kind is not kind for spec in schema.fields.values()):
        return {}
    paths: dict[str, list[str]] = {}
    for one in checked_writes:
        held = {} if one.before is None else one.before.data
        for key, entry in ids_in(one.change, schema.fields, kind):
            known = held.get(key)
            if not isinstance(known, list) or entry not in known:
                paths.setdefault(entry, []).append(f"{one.write.at}data.{key}")
    return paths
