"""Tables of surfaces, their blocks and their comments."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.content.surfaces.rules.contents import SurfaceKind
from models.core.base import Id
from runtime.postgresql.schema import Timestamp, one_of, same_workspace, table_of


class Surface(SQLModel, table=True):
    """The ground that blocks stand on: an item's, or the content of a record or a record template.

    `version` counts the writes, so that a client can say which content it means to change.
    """

    __tablename__ = "surface"
    __table_args__ = (
        sa.UniqueConstraint("workspace_id", "id"),
        same_workspace("item_id", "item.id", ondelete="CASCADE"),
        same_workspace("database_id", "database.id", ondelete="CASCADE"),
        same_workspace("record_id", "record.id", ondelete="CASCADE"),
        one_of("kind", SurfaceKind),
        sa.CheckConstraint(
            "num_nonnulls(item_id, database_id) = 1 AND (kind = 'record') = (item_id IS NULL)"
            " AND (record_id IS NULL OR database_id IS NOT NULL)",
            name="placed_once",
        ),
        sa.Index("uq_surface_item_id", "item_id", unique=True),
        sa.Index("uq_surface_record_id", "record_id", unique=True),
        sa.Index("ix_surface_workspace_id_database_id", "workspace_id", "database_id"),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    item_id: Id | None = None
    database_id: Id | None = None
    record_id: Id | None = None
    kind: str
    version: int = Field(default=1, sa_column_kwargs={"server_default": sa.text("1")})
    settings: dict[str, Any] = Field(
        sa_type=JSONB, sa_column_kwargs={"server_default": sa.text("'{}'::jsonb")}
    )
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)


class Block(SQLModel, table=True):
    """One block. Its id is unique on its surface alone, so a client may choose it, and a copy of
    a surface keeps it: what refers to a block by id then refers to the copy.

    `position` is the interface's `order`; `byte_size` is the size of `content` as JSON.
    """

    __tablename__ = "block"
    __table_args__ = (
        same_workspace("surface_id", "surface.id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["surface_id", "parent_block_id"],
            ["block.surface_id", "block.id"],
            ondelete="CASCADE",
        ),
        sa.CheckConstraint("parent_block_id <> id", name="not_its_own_parent"),
        sa.Index(
            "ix_block_surface_id_parent_block_id_position_id",
            "surface_id",
            "parent_block_id",
            "position",
            "id",
        ),
    )

    surface_id: Id = Field(primary_key=True)
    id: Id = Field(primary_key=True)
    workspace_id: Id
    parent_block_id: Id | None = None
    kind: str
    position: float
    content: dict[str, Any] = Field(sa_type=JSONB)
    x: float | None = None
    y: float | None = None
    w: float | None = None
    h: float | None = None
    byte_size: int
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)


class SurfaceComment(SQLModel, table=True):
    """A comment; one without `parent_comment_id` begins a thread, the others answer it.

    `block_id` is what it is about and refers to nothing: words outlive the block, and are there
    again when an undo brings the block back.
    """

    __tablename__ = "surface_comment"
    __table_args__ = (
        sa.UniqueConstraint("surface_id", "id"),
        same_workspace("surface_id", "surface.id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["surface_id", "parent_comment_id"],
            ["surface_comment.surface_id", "surface_comment.id"],
            ondelete="CASCADE",
        ),
        sa.Index("ix_surface_comment_surface_id_created_at_id", "surface_id", "created_at", "id"),
        sa.Index(
            "ix_surface_comment_surface_id_parent_comment_id", "surface_id", "parent_comment_id"
        ),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    surface_id: Id
    block_id: Id | None = None
    parent_comment_id: Id | None = None
    author_user_id: Id
    body: str
    resolved_at: datetime | None = Field(default=None, sa_type=Timestamp)
    resolved_by_user_id: Id | None = None
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)


surface = table_of(Surface)
block = table_of(Block)
surface_comment = table_of(SurfaceComment)
