"""The table of views."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.core.base import Id
from models.data.views.rules.kinds import Placement, ViewKind, ViewScope
from runtime.postgresql.schema import Timestamp, one_of, partial_index, same_workspace, table_of


class View(SQLModel, table=True):
    """A view of a database; `item_id` is set for one that stands in the tree by itself.

    `definition_version` counts the manifests it has had; `position` orders its siblings.
    """

    __tablename__ = "view"
    __table_args__ = (
        sa.UniqueConstraint("workspace_id", "id"),
        sa.UniqueConstraint("workspace_id", "database_id", "key"),
        same_workspace("database_id", "database.id"),
        same_workspace("item_id", "item.id"),
        sa.ForeignKeyConstraint(["relation_field_id"], ["field.id"], ondelete="SET NULL"),
        sa.ForeignKeyConstraint(["owner_user_id"], ["app_user.id"]),
        one_of("kind", ViewKind),
        one_of("placement", Placement),
        one_of("scope", ViewScope),
        sa.CheckConstraint("(scope = 'personal') = (owner_user_id IS NOT NULL)", name="owner"),
        sa.CheckConstraint("(placement = 'item') = (item_id IS NOT NULL)", name="item"),
        partial_index(
            "ix_view_relation_field_id", "relation_field_id", where="relation_field_id IS NOT NULL"
        ),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    database_id: Id
    item_id: Id | None = None
    key: str
    label: str
    kind: str
    placement: str
    manifest: dict[str, Any] = Field(sa_type=JSONB)
    relation_field_id: Id | None = None
    owner_user_id: Id | None = None
    scope: str
    locked: bool
    definition_version: int
    position: float
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)


view = table_of(View)
