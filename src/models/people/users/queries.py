"""Reading users."""

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import ColumnElement, ScalarSelect, func, select

from models.core.access.rules import Principal, Role, Scope
from models.core.base import Id
from models.people.users.shapes import Me, MyScopes, UserBody, WorkspaceScopes
from models.people.users.tables import AppUser, app_user
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError


async def find_user(work: UnitOfWork, user_id: Id) -> AppUser | None:
    """The row of a user; None for an id that is nobody's."""
    return await work.first(select(app_user).where(app_user.c.id == user_id), of=AppUser)


async def display_name(work: UnitOfWork, user_id: Id | None) -> str:
    """The name of a user among people; what acts for no person is an automation."""
    user = None if user_id is None else await find_user(work, user_id)
    if user is None:
        return "An automation"
    return user.name or user.email or "Somebody"


async def display_names(work: UnitOfWork, user_ids: Collection[Id]) -> Mapping[Id, str]:
    """The names of users, else their e-mail addresses; a user without either is left out."""
    name = func.coalesce(app_user.c.name, app_user.c.email).label("name")
    rows = await work.rows(select(app_user.c.id, name).where(app_user.c.id.in_(user_ids)))
    return {row.id: row.name for row in rows if row.name is not None}


def display_name_of(user_id: ColumnElement[Any]) -> ScalarSelect[Any]:
    """The name of the user of a column of the enclosing statement, else the e-mail address."""
    name = func.coalesce(app_user.c.name, app_user.c.email)
    return select(name).where(app_user.c.id == user_id).scalar_subquery()


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
