"""Users, as their identity providers describe them."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import Field, SQLModel

from models.core.access.rules import Principal, PrincipalType, Role, Scope
from models.core.base import Id, Moment, Shape
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError
from runtime.ids import new_id
from runtime.postgresql.schema import Timestamp, table_of


class AppUser(SQLModel, table=True):
    """One person, known by what one issuer calls them; the profile is the issuer's last word."""

    __tablename__ = "app_user"
    __table_args__ = (sa.UniqueConstraint("issuer", "subject"),)

    id: Id = Field(primary_key=True)
    issuer: str
    subject: str
    email: str | None = None
    name: str | None = None
    platform_admin: bool = Field(
        default=False, sa_column_kwargs={"server_default": sa.text("false")}
    )
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)


app_user = table_of(AppUser)
sa.Index("ix_app_user_email", sa.func.lower(app_user.c.email))


class UserBody(Shape):
    id: Id
    email: str | None
    name: str | None
    created_at: Moment


class Me(Shape):
    """The user the credential speaks for; `workspaceId` is the key's own, absent for a session."""

    user: UserBody
    principal_type: PrincipalType
    principal_id: Id
    workspace_id: Id | None
    platform_admin: bool


class WorkspaceScopes(Shape):
    """The rights of the credential in one workspace: its scopes within the user's live role."""

    workspace_id: Id
    role: Role
    scopes: list[Scope]


class MyScopes(Shape):
    principal_type: PrincipalType
    workspaces: list[WorkspaceScopes]


USER = app_user.c
"""The columns of users that `of_user` and `user_of` select."""


def user_of(user_id: sa.ColumnElement[Any]) -> tuple[sa.FromClause, sa.ColumnElement[bool]]:
    """The join to the user that a column names: `select(…).join(*user_of(resource.c.user_id))`."""
    return app_user, app_user.c.id == user_id


def of_user(user_id: Id, *columns: sa.ColumnElement[Any]) -> sa.Select[Any]:
    """These columns of one user, and of what the caller joins."""
    return sa.select(*columns).where(app_user.c.id == user_id)


async def find_user(work: UnitOfWork, user_id: Id) -> AppUser | None:
    """The row of a user; None for an id that is no one's."""
    return await work.first(sa.select(app_user).where(app_user.c.id == user_id), of=AppUser)


async def display_name(work: UnitOfWork, user_id: Id | None) -> str:
    """The name of a user among people; what acts for no person is an automation."""
    user = None if user_id is None else await find_user(work, user_id)
    if user is None:
        return "An automation"
    return user.name or user.email or "Somebody"


async def display_names(work: UnitOfWork, user_ids: Collection[Id]) -> Mapping[Id, str]:
    """The names of users, else their e-mail addresses; a user without either is left out."""
    name = sa.func.coalesce(app_user.c.name, app_user.c.email).label("name")
    rows = await work.rows(sa.select(app_user.c.id, name).where(app_user.c.id.in_(user_ids)))
    return {row.id: row.name for row in rows if row.name is not None}


def display_name_of(user_id: sa.ColumnElement[Any]) -> sa.ScalarSelect[Any]:
    """The name of the user of a column of the enclosing statement, else the e-mail address."""
    name = sa.func.coalesce(app_user.c.name, app_user.c.email)
    return sa.select(name).where(app_user.c.id == user_id).scalar_subquery()


async def get_me(work: UnitOfWork, principal: Principal) -> Me:
    """The user behind the credential."""
    row = await find_user(work, principal.user_id)
    if row is None:
        raise NotFoundError("user")
    return Me(
        user=UserBody.model_validate(row),
        principal_type=principal.type,
        principal_id=principal.id,
        workspace_id=principal.key_workspace_id,
        platform_admin=principal.platform_admin,
    )


def my_scopes(principal: Principal, roles: Mapping[Id, Role]) -> MyScopes:
    """The scopes of the credential, workspace by workspace."""
    return MyScopes(
        principal_type=principal.type,
        workspaces=[
            WorkspaceScopes(workspace_id=workspace_id, role=role, scopes=_held(principal, role))
            for workspace_id, role in roles.items()
        ],
    )


def _held(principal: Principal, role: Role) -> list[Scope]:
    held = principal.effective_scopes(role)
    return [scope for scope in Scope if scope in held]


async def sync_profile(
    work: UnitOfWork,
    *,
    issuer: str,
    subject: str,
    email: str | None,
    name: str | None,
    platform_admin: bool | None,
) -> Id:
    """Create the user on the first call, follow the provider afterwards; gives the user's id."""
    profile: dict[str, Any] = {"email": email, "name": name, "updated_at": work.now}
    if platform_admin is not None:
        profile["platform_admin"] = platform_admin
    statement = (
        insert(app_user)
        .values(id=new_id(), issuer=issuer, subject=subject, created_at=work.now, **profile)
        .on_conflict_do_update(index_elements=["issuer", "subject"], set_=profile)
        .returning(app_user.c.id)
    )
    user_id: Id = (await work.execute(statement)).scalar_one()
    return user_id


async def make_platform_admin(work: UnitOfWork, user_id: Id) -> None:
    """Let a user administer the platform."""
    await work.execute(
        sa.update(app_user).where(app_user.c.id == user_id).values(platform_admin=True)
    )
