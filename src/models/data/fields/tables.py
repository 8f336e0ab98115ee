"""Tables of databases and their fields."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.core.base import Id
from runtime.postgresql.schema import Timestamp, same_workspace, table_of


class Database(SQLModel, table=True):
    """A database; its item says where it is, and whether it is archived or in the trash.

    A copy that is still being made has no item yet, so that it is not found. `next_number` is the
    next value of an auto_number field.
    """

    __tablename__ = "database"
    __table_args__ = (
        sa.UniqueConstraint("workspace_id", "id"),
        sa.UniqueConstraint("workspace_id", "key"),
        same_workspace("item_id", "item.id"),
        sa.Index("ix_database_workspace_id_created_at_id", "workspace_id", "created_at", "id"),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    item_id: Id | None = Field(default=None, unique=True)
    key: str
    label: str
    description: str | None = None
    settings: dict[str, Any] = Field(sa_type=JSONB)
    record_layout: dict[str, Any] = Field(sa_type=JSONB)
    next_number: int = Field(
        default=1, sa_type=sa.BigInteger, sa_column_kwargs={"server_default": sa.text("1")}
    )
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)


class DatabaseField(SQLModel, table=True):
    """A field; `position` is the interface's `order`, `default_value` the text form of a value.

    `index_id` names its entries in the side index, which queries use once `index_ready` is true.
    A command that changes the values of the field in another way sets it to NULL. `former_keys` are
    `{key, until}` of the renames of the field, the first one first.
    """

    __tablename__ = "field"
    __table_args__ = (
        sa.UniqueConstraint("workspace_id", "database_id", "key"),
        same_workspace("database_id", "database.id"),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    database_id: Id
    key: str
    label: str
    kind: str
    required: bool
    default_value: str | None = None
    options: list[dict[str, Any]] = Field(sa_type=JSONB)
    settings: dict[str, Any] = Field(sa_type=JSONB)
    position: float
    index_id: Id | None = None
    index_ready: bool = Field(default=False, sa_column_kwargs={"server_default": sa.text("false")})
    former_keys: list[dict[str, str]] = Field(
        default_factory=list,
        sa_type=JSONB,
        sa_column_kwargs={"server_default": sa.text("'[]'")},
    )
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)


class RemovedField(SQLModel, table=True):
    """A removed field whose values some records still store under its key.

    Until they are removed no other field gets the key, because it would show them.
    """

    __tablename__ = "removed_field"
    __table_args__ = (
        sa.UniqueConstraint("workspace_id", "database_id", "key"),
        same_workspace("database_id", "database.id"),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    database_id: Id
    key: str
    removed_at: datetime = Field(sa_type=Timestamp)


database = table_of(Database)
field = table_of(DatabaseField)
removed_field = table_of(RemovedField)
