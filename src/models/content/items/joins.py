"""The tables of items and of their grants, and the parts of statements that others make of them."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.content.items.rules import AccessMode, ItemKind
from models.core.base import Id
from runtime.database import UnitOfWork
from runtime.postgresql.schema import Timestamp, one_of, partial_index, same_workspace, table_of
from runtime.postgresql.statements import PreparedStatement


class Item(SQLModel, table=True):
    """One place in the tree; `target_id` names the resource behind it.

    `position` is the interface's `order`; `deleted_at` puts the item and its target in the trash,
    and `deleted_with` names the item whose deletion did so: itself, or one above it.
    """

    __tablename__ = "item"
    __table_args__ = (
        sa.UniqueConstraint("workspace_id", "id"),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        same_workspace("parent_item_id", "item.id"),
        one_of("kind", ItemKind),
        one_of("access_mode", AccessMode),
        sa.CheckConstraint("parent_item_id <> id", name="not_its_own_parent"),
        sa.Index(
            "ix_item_workspace_id_parent_item_id_position_id",
            "workspace_id",
            "parent_item_id",
            "position",
            "id",
        ),
        partial_index(
            "ix_item_closed",
            "workspace_id",
            "id",
            where="deleted_at IS NOT NULL OR access_mode = 'restricted'",
        ),
        partial_index(
            "ix_item_workspace_id_target_id",
            "workspace_id",
            "target_id",
            where="target_id IS NOT NULL",
        ),
        partial_index("ix_item_trash", "deleted_at", "id", where="deleted_at IS NOT NULL"),
        partial_index(
            "ix_item_workspace_id_deleted_with",
            "workspace_id",
            "deleted_with",
            where="deleted_with IS NOT NULL",
        ),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    parent_item_id: Id | None = None
    kind: str
    target_id: Id | None = None
    title: str
    icon: str | None = None
    color: str | None = None
    position: float
    archived: bool = Field(default=False, sa_column_kwargs={"server_default": sa.text("false")})
    access_mode: str = Field(
        default=AccessMode.OPEN, sa_column_kwargs={"server_default": sa.text("'open'")}
    )
    metadata_: dict[str, Any] = Field(
        sa_type=JSONB,
        sa_column_kwargs={"name": "metadata", "server_default": sa.text("'{}'::jsonb")},
    )
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)
    deleted_at: datetime | None = Field(default=None, sa_type=Timestamp)
    deleted_with: Id | None = None


class ItemGrant(SQLModel, table=True):
    """The rights of one member on an item and on all below it; `level` is that of `Level`."""

    __tablename__ = "item_grant"
    __table_args__ = (
        same_workspace("item_id", "item.id", ondelete="CASCADE"),
        same_workspace("user_id", "workspace_member.user_id", ondelete="CASCADE"),
        sa.CheckConstraint("level BETWEEN 1 AND 5", name="level"),
        sa.Index("ix_item_grant_workspace_id_user_id", "workspace_id", "user_id"),
    )

    workspace_id: Id = Field(primary_key=True)
    item_id: Id = Field(primary_key=True)
    user_id: Id = Field(primary_key=True)
    level: int
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)


item = table_of(Item)
item_grant = table_of(ItemGrant)


_PARENT = item.alias("parent")
_CHILD = item.alias("child")


def live(
    workspace_id: Id | sa.ColumnElement[Id], item_id: Id | sa.ColumnElement[Id]
) -> tuple[sa.ColumnElement[bool], ...]:
    """The conditions of one item that is not in the trash."""
    return (
        item.c.workspace_id == workspace_id,
        item.c.id == item_id,
        item.c.deleted_at.is_(None),
    )


_WAY = (
    sa.select(item.c.id, item.c.parent_item_id)
    .where(*live(sa.bindparam("workspace_id", type_=sa.Uuid), sa.bindparam("id", type_=sa.Uuid)))
    .cte("way_up", recursive=True)
)
_WAY_UP = _WAY.union(
    sa.select(_PARENT.c.id, _PARENT.c.parent_item_id).where(
        _PARENT.c.workspace_id == sa.bindparam("workspace_id", type_=sa.Uuid),
        _PARENT.c.id == _WAY.c.parent_item_id,
    )
)
_ABOVE = PreparedStatement(sa.select(_WAY_UP.c.id))


async def way_up(work: UnitOfWork, workspace_id: Id, item_id: Id) -> list[Id]:
    """The ids of an item and of all above it, up to the root; in no order."""
    rows = await _ABOVE.rows(work, {"workspace_id": workspace_id, "id": item_id})
    return [row.id for row in rows]


def way_to_root(start: sa.Select[Any]) -> sa.CTE:
    """The items that `placed_items` selects, with all above them."""
    way = start.cte("way", recursive=True)
    # UNION, not UNION ALL: a row met twice ends the walk even if the tree had a cycle.
    return way.union(
        sa.select(
            _PARENT.c.workspace_id,
            way.c.item_id,
            _PARENT.c.id,
            _PARENT.c.parent_item_id,
            _PARENT.c.access_mode,
            _PARENT.c.deleted_at,
            sa.case(
                (way.c.access_mode == AccessMode.RESTRICTED.value, 1), else_=way.c.restrictions
            ),
        ).where(_PARENT.c.workspace_id == way.c.workspace_id, _PARENT.c.id == way.c.parent_item_id)
    )


def subtree(workspace_id: Id, item_id: Id) -> sa.CTE:
    """An item and what is below it, as far as it is not in the trash: `id` and `depth` from 0."""
    top = (
        sa.select(item.c.id, sa.literal(0, sa.Integer).label("depth"))
        .where(*live(workspace_id, item_id))
        .cte("subtree", recursive=True)
    )
    return top.union_all(
        sa.select(_CHILD.c.id, top.c.depth + 1).where(
            _CHILD.c.workspace_id == workspace_id,
            _CHILD.c.parent_item_id == top.c.id,
            _CHILD.c.deleted_at.is_(None),
        )
    )


ITEM = item.c
"""The columns of items in the statements that this module and `queries` begin."""


def live_item_of(resource: sa.FromClause) -> tuple[sa.FromClause, sa.ColumnElement[bool]]:
    """The join to the item of a resource's rows, unless it is in the trash.

    To be spread: `select(…).join(*live_item_of(resource))`.
    """
    live_item = sa.and_(
        item.c.workspace_id == resource.c.workspace_id,
        item.c.id == resource.c.item_id,
        item.c.deleted_at.is_(None),
    )
    return item, live_item


def placing(file: sa.FromClause) -> sa.ColumnElement[bool]:
    """The condition of the item that places a file, in the trash or not."""
    return sa.and_(
        item.c.workspace_id == file.c.workspace_id,
        item.c.kind == ItemKind.FILE.value,
        item.c.target_id == file.c.id,
    )


def item_placing(file: sa.FromClause) -> tuple[sa.FromClause, sa.ColumnElement[bool]]:
    """The join to the item that places a file: `select(…).outerjoin(*item_placing(file))`."""
    return item, placing(file)


def live_items(workspace_id: Id, *columns: sa.ColumnElement[Any]) -> sa.Select[Any]:
    """The items of a workspace outside the trash: these columns of them, or all."""
    return sa.select(*(columns or (item,))).where(
        item.c.workspace_id == workspace_id, item.c.deleted_at.is_(None)
    )
