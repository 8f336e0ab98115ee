"""Reading members."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from sqlalchemy import ARRAY, ColumnElement, Select, Uuid, any_, bindparam, func, literal, select

from models.core.access.queries import WorkspaceOf
from models.core.access.rules import Actor, Role
from models.core.base import Id
from models.core.pagination import PageRequest
from models.people.members.shapes import MemberBody, MemberList
from models.people.users.joins import USER, user_of
from models.people.workspaces.tables import WorkspaceMember, workspace, workspace_member
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError
from runtime.prepared_statement import PreparedStatement

visible = WorkspaceOf(workspace_member.c.user_id)
"""The workspace of a member, if it is among the workspaces that are asked for."""


async def list_members(work: UnitOfWork, actor: Actor, page: PageRequest) -> MemberList:
    """The members of the workspace, longest first."""
    members, columns = members_of(actor.workspace_id), workspace_member.c
    longest = (columns.created_at, columns.user_id)
    shown = await page.ascending(work, members, *longest, of=WorkspaceMember)
    return MemberList(
        members=[MemberBody.model_validate(row) for row in shown.items], cursor=shown.cursor
    )


async def get_member(work: UnitOfWork, workspace_id: Id, user_id: Id) -> MemberBody:
    """One member. Raises `NotFoundError`."""
    row = await work.first(members_of(workspace_id).where(workspace_member.c.user_id == user_id))
    if row is None:
        raise NotFoundError("user")
    return MemberBody.model_validate(row)


async def members_called(work: UnitOfWork, workspace_id: Id, text: str) -> list[Id]:
    """The members with this e-mail address, else those with this name; at most two."""
    for column in (USER.email, USER.name):
        statement = members_of(workspace_id).where(func.lower(column) == func.lower(text))
        if rows := await work.rows(statement.limit(2)):
            return [row.user_id for row in rows]
    return []


def members_of(workspace_id: Id) -> Select[Any]:
    """The members of a workspace with what their identity provider says of them."""
    return (
        select(workspace_member, USER.email, USER.name)
        .join(*user_of(workspace_member.c.user_id))
        .where(workspace_member.c.workspace_id == workspace_id)
    )


def members_among(
    workspace_id: Id | ColumnElement[Id], user_ids: Iterable[Id] | ColumnElement[Any]
) -> Select[Any]:
    """The ids of the users among these who are members of a workspace.

    `user_ids` is a list or an expression of an array; both may be parameters.
    """
    if not isinstance(user_ids, ColumnElement):
        user_ids = literal(list(user_ids), ARRAY(Uuid))
    return select(workspace_member.c.user_id).where(
        workspace_member.c.workspace_id == workspace_id,
        workspace_member.c.user_id == any_(user_ids),
    )


def roles_among(workspace_id: Id, user_ids: Collection[Id]) -> Select[Any]:
    """The ids and roles of the users among these who are members of a workspace."""
    return members_among(workspace_id, user_ids).add_columns(workspace_member.c.role)


async def strangers(work: UnitOfWork, workspace_id: Id, user_ids: Collection[Id]) -> set[Id]:
    """The users among these who are no members of the workspace."""
    rows = await work.rows(members_among(workspace_id, user_ids))
    return set(user_ids) - {row.user_id for row in rows}


async def has_address(work: UnitOfWork, workspace_id: Id, email: str) -> bool:
    """True when a member of the workspace has this e-mail address, in lower case."""
    theirs = members_of(workspace_id).where(func.lower(USER.email) == email).limit(1)
    return await work.first(theirs) is not None


async def role_of(work: UnitOfWork, workspace_id: Id, user_id: Id) -> Role | None:
    """The role of a user in a workspace now; None for one who is no member."""
    role = await work.scalar(
        select(workspace_member.c.role).where(
            workspace_member.c.workspace_id == workspace_id, workspace_member.c.user_id == user_id
        )
    )
    return None if role is None else Role(role)


async def members_with(work: UnitOfWork, workspace_id: Id, role: Role) -> list[Id]:
    """The members of the workspace who have this role."""
    rows = await work.rows(
        select(workspace_member.c.user_id).where(
            workspace_member.c.workspace_id == workspace_id, workspace_member.c.role == role.value
        )
    )
    return [row.user_id for row in rows]


async def longest_workspace(
    work: UnitOfWork, user_id: Id, apart_from: Collection[Id] = ()
) -> Id | None:
    """The workspace in which a user has been a member longest, deleted ones and these apart."""
    member = workspace_member.c
    workspace_id: Id | None = await work.scalar(
        select(member.workspace_id)
        .join(workspace, workspace.c.id == member.workspace_id)
        .where(
            member.user_id == user_id,
            member.workspace_id.not_in(apart_from),
            workspace.c.deleted_at.is_(None),
        )
        .order_by(member.created_at, member.workspace_id)
        .limit(1)
    )
    return workspace_id


_ROLES = PreparedStatement(
    select(workspace_member.c.user_id, workspace_member.c.role)
    .join(workspace, workspace.c.id == workspace_member.c.workspace_id)
    .where(
        workspace_member.c.workspace_id == bindparam("workspace_id", type_=Uuid),
        workspace_member.c.user_id == any_(bindparam("user_ids", type_=ARRAY(Uuid))),
        workspace.c.deleted_at.is_(None),
    ),
    WorkspaceMember,
)


async def roles_in(
    work: UnitOfWork, workspace_id: Id, user_ids: Collection[Id]
) -> Mapping[Id, Role]:
    """The roles of these users in a workspace.

    Users who are no members, or all if it is deleted, are left out.
    """
    parameters = {"workspace_id": workspace_id, "user_ids": list(user_ids)}
    return {row.user_id: Role(row.role) for row in await _ROLES.rows(work, parameters)}
