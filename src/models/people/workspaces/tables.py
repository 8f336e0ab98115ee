"""The tables of workspaces and their members."""

from datetime import datetime

from sqlalchemy import ForeignKeyConstraint, Index
from sqlmodel import Field, SQLModel

from models.core.access.rules import Role
from models.core.base import Id
from models.people.workspaces.rules import Plan
from runtime.schema import Timestamp, one_of, partial_index, table_of


class Workspace(SQLModel, table=True):
    """The boundary of everything: no row of another table is seen across it."""

    __tablename__ = "workspace"
    __table_args__ = (
        ForeignKeyConstraint(["created_by_user_id"], ["app_user.id"]),
        one_of("plan", Plan),
        partial_index("uq_workspace_slug", "slug", where="deleted_at IS NULL", unique=True),
    )

    id: Id = Field(primary_key=True)
    name: str
    slug: str
    icon: str | None = None
    plan: str = Field(default=Plan.FREE.value, sa_column_kwargs={"server_default": Plan.FREE.value})
    created_by_user_id: Id
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)
    deleted_at: datetime | None = Field(default=None, sa_type=Timestamp)


class WorkspaceMember(SQLModel, table=True):
    """The role of a user in a workspace; leaving deletes the row, and every right with it."""

    __tablename__ = "workspace_member"
    __table_args__ = (
        ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        ForeignKeyConstraint(["user_id"], ["app_user.id"]),
        one_of("role", Role),
        Index("ix_workspace_member_user_id", "user_id"),
    )

    workspace_id: Id = Field(primary_key=True)
    user_id: Id = Field(primary_key=True)
    role: str
    created_at: datetime = Field(sa_type=Timestamp)


workspace = table_of(Workspace)
workspace_member = table_of(WorkspaceMember)
