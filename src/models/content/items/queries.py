"""Places of items, the items that a caller sees, their lists and viewers, the search by title."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, Protocol

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import array

from models.content.items.joins import item, item_grant, live, subtree, way_to_root
from models.content.items.rules import TRASH_DAYS, AccessMode, ItemKind
from models.content.items.shapes import ItemDetail, ItemList, ItemRow
from models.core.access.rules import MANAGERS, ROLE_LEVELS, Actor, Level, Placement, Role, level_on
from models.core.base import Id
from models.core.pagination import PageRequest
from runtime.database import UnitOfWork, Work
from runtime.errors import NotFoundError
from runtime.postgresql.statements import Prefetch, PreparedStatement

_CHILD = item.alias("child")
_RESTRICTED = AccessMode.RESTRICTED.value


def placed_items() -> sa.Select[Any]:
    """The start of a `PlacementOf`: narrowed by its maker, by joins if need be.

    It must take the parameters `id` and `workspace_ids`.
    """
    return sa.select(
        item.c.workspace_id,
        item.c.id.label("item_id"),
        item.c.id.label("passed_id"),
        item.c.parent_item_id,
        item.c.access_mode,
        item.c.deleted_at,
        sa.literal(0, sa.Integer).label("restrictions"),
    ).where(item.c.workspace_id == sa.any_(sa.bindparam("workspace_ids", type_=sa.ARRAY(sa.Uuid))))


def placed(resource: sa.FromClause, item_id: str = "item_id") -> sa.Select[Any]:
    """`placed_items` with the rows of a resource that name their item in this column."""
    of_item = sa.and_(
        resource.c.workspace_id == item.c.workspace_id,
        resource.c[item_id] == item.c.id,
    )
    return placed_items().join(resource, of_item)


class PlacementOf:
    """Finds the one item that `start` selects, judged along its way to the root.

    The nearest restricted item on the way ends what the role gives and bounds the grants that
    count; an item in the trash hides what is below it.
    """

    def __init__(self, start: sa.Select[Any], *, in_trash: bool = False) -> None:
        """With `in_trash` the trash hides nothing."""
        self._statement = PreparedStatement(_judged(start, in_trash=in_trash))

    def prefetch(self, resource_id: Id) -> Prefetch:
        """The statement of a call, for a caller whose key says who they are, and where."""
        return Prefetch(self._statement, {"id": resource_id})

    async def __call__(
        self, work: UnitOfWork, workspace_ids: Sequence[Id], resource_id: Id, user_id: Id
    ) -> Placement | None:
        """The placement, or None when none of these workspaces shows the resource."""
        parameters = {
            "id": resource_id,
            "workspace_ids": list(workspace_ids),
            "user_id": user_id,
        }
        row = await self._statement.first(work, parameters)
        if row is None:
            return None
        return _placement(row)

    async def level(self, work: UnitOfWork, actor: Actor, resource_id: Id) -> Level:
        """The actor's level on the resource; NONE for one they do not see."""
        found = await self(work, [actor.workspace_id], resource_id, actor.user_id)
        return Level.NONE if found is None else level_on(found, actor.role)


class _JudgedItem(Protocol):
    workspace_id: Id
    item_id: Id
    restricted: bool
    granted: int


def _placement(row: _JudgedItem) -> Placement:
    return Placement(
        workspace_id=row.workspace_id,
        item_id=row.item_id,
        restricted=row.restricted,
        granted=Level(row.granted),
    )


def _judged(start: sa.Select[Any], *, in_trash: bool) -> sa.Select[Any]:
    way = way_to_root(start)
    judged = (
        sa.select(
            way.c.workspace_id,
            way.c.item_id,
            sa.func.bool_or(way.c.access_mode == _RESTRICTED).label("restricted"),
            sa.func.coalesce(
                sa.func.max(item_grant.c.level).filter(way.c.restrictions == 0), Level.NONE.value
            ).label("granted"),
        )
        .outerjoin(
            item_grant,
            sa.and_(
                item_grant.c.workspace_id == way.c.workspace_id,
                item_grant.c.item_id == way.c.passed_id,
                item_grant.c.user_id == sa.bindparam("user_id", type_=sa.Uuid),
            ),
        )
        .group_by(way.c.workspace_id, way.c.item_id)
    )
    return judged if in_trash else judged.having(sa.func.bool_and(way.c.deleted_at.is_(None)))


def placement_of(resource: sa.FromClause, item_id: str = "item_id") -> PlacementOf:
    """Finds where a resource is placed by its own id: `await visible(work, workspace_ids, id, …)`.

    Its rows name their item in the column `item_id`.
    """
    return PlacementOf(
        placed(resource, item_id).where(resource.c.id == sa.bindparam("id", type_=sa.Uuid))
    )


placement = PlacementOf(placed_items().where(item.c.id == sa.bindparam("id", type_=sa.Uuid)))
"""The place of an item: `await placement(work, workspace_ids, item_id, user_id)`."""

restorable = PlacementOf(
    placed_items().where(
        item.c.id == sa.bindparam("id", type_=sa.Uuid),
        sa.or_(
            item.c.deleted_at.is_(None),
            item.c.deleted_at > sa.func.now() - timedelta(days=TRASH_DAYS),
        ),
    ),
    in_trash=True,
)
"""The place of an item, or the place it had before the trash, as long as it can come back."""


def closed_items(actor: Actor, level: Level = Level.VIEW) -> sa.CTE:
    """Ids of the items on which this member is below a level, of the whole workspace.

    These are the items in the trash; for members who are no managers also the items that neither
    their role nor a grant opens to that level (interface.md#item-levels). Whatever is below an item
    went to the trash with it (`own_tree`). Of neither set PostgreSQL expects more rows than there
    are items, as it does of a recursion: so it looks ids up in a hash table of them, and does not
    compare each with all.
    """
    mine = item.c.workspace_id == actor.workspace_id
    if actor.role in MANAGERS:
        return sa.select(item.c.id).where(mine, item.c.deleted_at.is_not(None)).cte("closed")
    return sa.select(item.c.id).where(mine).except_(open_items(actor, level)).cte("closed")


def open_items(actor: Actor, level: Level = Level.VIEW) -> sa.Select[Any]:
    """Ids of what a member sees: from the root and from every grant downwards, until a restriction
    or the trash. Owners and administrators see more: what is restricted, too.
    """
    granted = sa.select(item_grant.c.item_id).where(
        item_grant.c.workspace_id == actor.workspace_id,
        item_grant.c.user_id == actor.user_id,
        item_grant.c.level >= level,
    )
    by_role = sa.and_(
        sa.literal(actor.level >= level),
        item.c.parent_item_id.is_(None),
        item.c.access_mode != _RESTRICTED,
    )
    top = (
        sa.select(item.c.id)
        .where(
            item.c.workspace_id == actor.workspace_id,
            item.c.deleted_at.is_(None),
            sa.or_(by_role, item.c.id.in_(granted)),
        )
        .cte("opened", recursive=True)
    )
    open_tree = top.union(
        sa.select(_CHILD.c.id).where(
            _CHILD.c.workspace_id == actor.workspace_id,
            _CHILD.c.parent_item_id == top.c.id,
            _CHILD.c.access_mode != _RESTRICTED,
            _CHILD.c.deleted_at.is_(None),
        )
    )
    return sa.select(open_tree.c.id)


def sees_items(actor: Actor, *item_ids: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
    """The condition that this member sees the items in these columns; null is always seen."""
    closed = sa.select(closed_items(actor).c.id)
    return sa.and_(*(sa.or_(item_id.is_(None), item_id.not_in(closed)) for item_id in item_ids))


def seen_items(actor: Actor, ids: Sequence[Id]) -> sa.Select[Any]:
    """The ids of the items among these that the actor sees."""
    return sa.select(item.c.id).where(
        item.c.workspace_id == actor.workspace_id,
        item.c.id == sa.func.any(ids),
        sees_items(actor, item.c.id),
    )


_JUDGED = PreparedStatement(
    _judged(
        placed_items().where(item.c.id == sa.any_(sa.bindparam("ids", type_=sa.ARRAY(sa.Uuid)))),
        in_trash=True,
    )
)


async def seen_before_trash(work: UnitOfWork, actor: Actor, ids: Collection[Id]) -> frozenset[Id]:
    """The ids of the items among these that the actor sees, or saw until they went to the trash."""
    if actor.role in MANAGERS or not ids:
        return frozenset(ids)
    parameters = {
        "ids": list(ids),
        "workspace_ids": [actor.workspace_id],
        "user_id": actor.user_id,
    }
    rows = await _JUDGED.rows(work, parameters)
    return frozenset(row.item_id for row in rows if level_on(_placement(row), actor.role))


async def items_below(work: UnitOfWork, actor: Actor, item_id: Id, limit: int) -> Sequence[ItemRow]:
    """An item and what the actor sees below it, from the top down."""
    below = subtree(actor.workspace_id, item_id)
    return await work.rows(
        sa.select(item)
        .join(below, below.c.id == item.c.id)
        .where(
            item.c.workspace_id == actor.workspace_id,
            item.c.id.not_in(sa.select(closed_items(actor).c.id)),
        )
        .order_by(below.c.depth, item.c.position, item.c.id)
        .limit(limit),
        of=ItemRow,
    )


async def deleted_with(work: UnitOfWork, workspace_id: Id, item_id: Id) -> Sequence[ItemRow]:
    """An item and all below it, visible or not, from the top down."""
    below = subtree(workspace_id, item_id)
    return await work.rows(
        sa.select(item)
        .join(below, below.c.id == item.c.id)
        .where(item.c.workspace_id == workspace_id)
        .order_by(below.c.depth, item.c.id),
        of=ItemRow,
    )


_ITEM = PreparedStatement(
    sa.select(item).where(
        *live(sa.bindparam("workspace_id", type_=sa.Uuid), sa.bindparam("id", type_=sa.Uuid))
    ),
    ItemRow,
)


async def find_item(work: UnitOfWork, workspace_id: Id, item_id: Id) -> ItemRow:
    """An item's row. Raises `NotFoundError`, also when it is in the trash."""
    found = await _ITEM.first(work, {"workspace_id": workspace_id, "id": item_id})
    if found is None:
        raise NotFoundError
    return found


async def titles_of(work: UnitOfWork, actor: Actor, ids: Collection[Id]) -> Mapping[Id, str]:
    """The titles of items that the actor sees, by the ids of the items and of their targets."""
    columns = item.c
    named = sa.or_(columns.id.in_(ids), columns.target_id.in_(ids))
    mine = columns.workspace_id == actor.workspace_id, sees_items(actor, columns.id)
    rows = await work.rows(
        sa.select(columns.id, columns.target_id, columns.title).where(*mine, named)
    )
    return {id_: row.title for row in rows for id_ in (row.id, row.target_id) if id_ in ids}


async def item_of_target(
    work: UnitOfWork, workspace_id: Id, item_id: Id | None, target_id: Id | None
) -> ItemRow | None:
    """The item of this id, or else the one that places a target; None for one in the trash."""
    of_target = item.c.target_id == target_id if item_id is None else item.c.id == item_id
    here = (item.c.workspace_id == workspace_id, item.c.deleted_at.is_(None))
    return await work.first(sa.select(item).where(*here, of_target), of=ItemRow)


async def get_item(work: UnitOfWork, workspace_id: Id, item_id: Id) -> ItemDetail:
    """An item. Raises `NotFoundError`."""
    return item_detail(await find_item(work, workspace_id, item_id))


def target_of(row: ItemRow) -> Id:
    """The id of what stands behind an item of any kind but a folder."""
    assert row.target_id is not None, "only a folder has no target"
    return row.target_id


def item_detail(row: ItemRow) -> ItemDetail:
    """A row of the item table as the interface shows it."""
    return ItemDetail.model_validate(
        {
            "id": row.id,
            "workspace_id": row.workspace_id,
            "parent_item_id": row.parent_item_id,
            "kind": row.kind,
            "target_id": row.target_id,
            "title": row.title,
            "icon": row.icon,
            "color": row.color,
            "order": row.position,
            "archived": row.archived,
            "access_mode": row.access_mode,
            "metadata": row.metadata,
            "created_at": row.created_at,
            "updated_at": row.updated_at,
        }
    )


async def list_items(
    work: UnitOfWork,
    actor: Actor,
    page: PageRequest,
    *,
    kind: ItemKind | None = None,
    parent_id: Id | Literal["root"] | None = None,
    archived: bool = False,
) -> ItemList:
    """The items the actor sees: children in their order, all of the workspace newest first.

    Raises `NotFoundError` for a parent the actor does not see.
    """
    statement = sa.select(item).where(
        item.c.workspace_id == actor.workspace_id,
        item.c.deleted_at.is_(None),
        item.c.archived.is_(archived),
        item.c.id.not_in(sa.select(closed_items(actor).c.id)),
    )
    if kind is not None:
        statement = statement.where(item.c.kind == kind.value)
    if parent_id is None:
        # Ids of items are made in the order of time.
        shown = await page.descending(work, statement, item.c.id, of=ItemRow)
    else:
        children = statement.where(await _children_of(work, actor, parent_id))
        shown = await page.ascending(work, children, item.c.position, item.c.id, of=ItemRow)
    return ItemList.of(shown, item_detail)


async def _children_of(
    work: UnitOfWork, actor: Actor, parent_id: Id | Literal["root"]
) -> sa.ColumnElement[bool]:
    if isinstance(parent_id, str):
        return item.c.parent_item_id.is_(None)
    if await placement.level(work, actor, parent_id) < Level.VIEW:
        raise NotFoundError
    return item.c.parent_item_id == parent_id


def items_titled(actor: Actor, text: str, closed_items: sa.CTE) -> sa.Select[Any]:
    """The items with the text in their titles; none archived, in the trash or in `closed_items`."""
    is_database = item.c.kind == ItemKind.DATABASE.value
    return sa.select(
        item.c.id,
        item.c.title,
        item.c.id.label("item_id"),
        item.c.kind.label("item_kind"),
        item.c.title.label("item_title"),
        sa.case((is_database, item.c.target_id), else_=sa.null())
        .cast(sa.Uuid)
        .label("database_id"),
        item.c.icon,
        item.c.updated_at,
    ).where(
        item.c.workspace_id == actor.workspace_id,
        item.c.deleted_at.is_(None),
        item.c.archived.is_(False),
        item.c.title.icontains(text, autoescape=True),
        item.c.id.not_in(sa.select(closed_items.c.id)),
    )


async def viewers_among(
    work: UnitOfWork, workspace_id: Id, item_id: Id, roles: Mapping[Id, Role]
) -> Collection[Id]:
    """The members among these who see an item; managers see it in the trash, too."""
    seeing = {user_id for user_id, role in roles.items() if role in MANAGERS}
    for user_id in sorted(roles.keys() - seeing):
        found = await placement(work, [workspace_id], item_id, user_id)
        if found is not None and level_on(found, roles[user_id]) >= Level.VIEW:
            seeing.add(user_id)
    return seeing


@dataclass(frozen=True, slots=True)
class Audience:
    """The viewers of an item, judged as its `Placement` is: by roles, and by grants that count."""

    restricted: bool
    granted: frozenset[Id]

    def has(self, user_id: Id, role: Role) -> bool:
        """True when this member sees the item."""
        if role in MANAGERS or user_id in self.granted:
            return True
        return not self.restricted and ROLE_LEVELS[role] >= Level.VIEW


class _Row(Protocol):
    item_id: Id
    restricted: bool
    granted: Sequence[Id]


def _seeing() -> sa.Select[Any]:
    way = way_to_root(
        placed_items().where(item.c.id == sa.any_(sa.bindparam("ids", type_=sa.ARRAY(sa.Uuid))))
    )
    granted = sa.func.array_agg(item_grant.c.user_id).filter(
        way.c.restrictions == 0, item_grant.c.user_id.is_not(None)
    )
    return (
        sa.select(
            way.c.item_id,
            sa.func.bool_or(way.c.access_mode == _RESTRICTED).label("restricted"),
            sa.func.coalesce(granted, array([], type_=sa.Uuid)).label("granted"),
        )
        .outerjoin(
            item_grant,
            sa.and_(
                item_grant.c.workspace_id == way.c.workspace_id,
                item_grant.c.item_id == way.c.passed_id,
            ),
        )
        .group_by(way.c.item_id)
    )


_AUDIENCES = PreparedStatement(_seeing(), _Row)


async def audiences(
    work: Work, workspace_id: Id, item_ids: Collection[Id]
) -> Mapping[Id, Audience]:
    """The viewers of these items, also of items in the trash; an item that is gone is left out."""
    if not item_ids:
        return {}
    parameters = {"workspace_ids": [workspace_id], "ids": list(item_ids)}
    rows = await _AUDIENCES.rows(work, parameters)
    return {row.item_id: Audience(row.restricted, frozenset(row.granted)) for row in rows}
