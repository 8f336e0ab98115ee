"""The tables of items, and of the grants that say who sees them."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.content.items.rules import AccessMode, ItemKind
from models.core.base import Id
from runtime.postgresql.schema import Timestamp, one_of, partial_index, same_workspace, table_of


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
