"""Reading relation fields, and the fields that follow them to values of other databases."""

from collections.abc import Collection, Sequence
from typing import Any, Protocol

from sqlalchemy import ARRAY, Text, Uuid, and_, any_, bindparam, func, literal, select

from models.core.base import Id
from models.data.fields.rules.kinds import FieldKind
from models.data.fields.tables import field
from runtime.database import UnitOfWork
from runtime.prepared_statement import PreparedStatement


class RelationSettings(Protocol):
    """The key and the settings of a relation field."""

    key: str
    settings: dict[str, Any]


class FollowedRelation(RelationSettings, Protocol):
    """A relation field, once for each rollup or lookup that follows it to `target`."""

    id: Id
    label: str
    database_id: Id
    follower: str | None
    target: str


_RELATION = field.alias("relation")
_FOLLOWER = field.alias("follower")
_FOLLOWING = [FieldKind.ROLLUP.value, FieldKind.LOOKUP.value]
_FOLLOWED = PreparedStatement(
    select(
        _RELATION.c.id,
        _RELATION.c.key,
        _RELATION.c.label,
        _RELATION.c.database_id,
        _RELATION.c.settings,
        _FOLLOWER.c.key.label("follower"),
        _FOLLOWER.c.settings["targetFieldKey"].astext.label("target"),
    )
    .outerjoin(
        _FOLLOWER,
        and_(
            _FOLLOWER.c.workspace_id == _RELATION.c.workspace_id,
            _FOLLOWER.c.database_id == _RELATION.c.database_id,
            _FOLLOWER.c.kind == any_(literal(_FOLLOWING, ARRAY(Text))),
            _FOLLOWER.c.settings["relationFieldKey"].astext == _RELATION.c.key,
        ),
    )
    .where(
        _RELATION.c.workspace_id == bindparam("workspace_id", type_=Uuid),
        _RELATION.c.id == func.any(bindparam("ids", type_=ARRAY(Uuid))),
    )
    .order_by(_RELATION.c.id, _FOLLOWER.c.key),
    FollowedRelation,
)
_SETTINGS = PreparedStatement(
    select(field.c.key, field.c.settings).where(
        field.c.workspace_id == bindparam("workspace_id", type_=Uuid),
        field.c.id == bindparam("id", type_=Uuid),
    ),
    RelationSettings,
)


async def followed_relations(
    work: UnitOfWork, workspace_id: Id, field_ids: Collection[Id]
) -> Sequence[FollowedRelation]:
    """These relation fields with what follows them, in the order of their ids."""
    return await _FOLLOWED.rows(work, {"workspace_id": workspace_id, "ids": list(field_ids)})


async def relation_settings(
    work: UnitOfWork, workspace_id: Id, field_id: Id
) -> RelationSettings | None:
    """The key and the settings of a relation field; None when it is gone."""
    return await _SETTINGS.first(work, {"workspace_id": workspace_id, "id": field_id})
