"""Members: the users of a workspace and their roles, read, changed and removed."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Annotated, Any

import sqlalchemy as sa
from pydantic import Field

from models.core.access.queries import WorkspaceOf
from models.core.access.rules import Actor, Role, Scope
from models.core.base import Id, Input, Moment, Shape
from models.core.bundles import USER as BUNDLED_USER
from models.core.bundles import BundleKind, ImportTarget, Row, Stage
from models.core.pagination import Listed, PageRequest
from models.people.users import USER, app_user, user_of
from models.people.workspaces import WorkspaceMember, lock_members, workspace, workspace_member
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, DeniedError, NotFoundError
from runtime.postgresql.statements import PreparedStatement

_RANK = {role: place for place, role in enumerate(Role)}


def outranks(role: Role, other_role: Role) -> bool:
    """True when a role is the other or stronger."""
    return _RANK[role] <= _RANK[other_role]


def check_role_given(giver: Role, role: Role) -> None:
    """No one gives a role above their own. Raises `DeniedError`."""
    if not outranks(giver, role):
        raise DeniedError(f"The role {giver} can't assign the role {role}.")


def check_touched(giver: Role, current: Role) -> None:
    """No one changes or removes a member of a higher role. Raises `DeniedError`."""
    if not outranks(giver, current):
        raise DeniedError(f"The role {giver} can't change members with the role {current}.")


RoleInput = Annotated[Role, Field(strict=False)]


class MemberBody(Shape):
    """A member, with name and email from the identity provider."""

    user_id: Id
    email: str | None
    name: str | None
    role: Role
    created_at: Moment


class MemberList(Listed):
    members: list[MemberBody]


class UpdateMember(Input):
    role: RoleInput


class RemovedMember(Shape):
    user_id: Id


visible = WorkspaceOf(workspace_member.c.user_id)
"""The workspace of a member, if it is among the workspaces that are asked for."""


async def list_members(work: UnitOfWork, actor: Actor, page: PageRequest) -> MemberList:
    """The members of the workspace, longest first."""
    members, columns = members_of(actor.workspace_id), workspace_member.c
    longest = (columns.created_at, columns.user_id)
    shown = await page.ascending(work, members, *longest, of=WorkspaceMember)
    return MemberList.of(shown)


async def get_member(work: UnitOfWork, workspace_id: Id, user_id: Id) -> MemberBody:
    """One member. Raises `NotFoundError`."""
    row = await work.one(
        members_of(workspace_id).where(workspace_member.c.user_id == user_id), "user"
    )
    return MemberBody.model_validate(row)


async def members_called(work: UnitOfWork, workspace_id: Id, text: str) -> list[Id]:
    """The members with this e-mail address, else those with this name; at most two."""
    for column in (USER.email, USER.name):
        statement = members_of(workspace_id).where(sa.func.lower(column) == sa.func.lower(text))
        if rows := await work.rows(statement.limit(2)):
            return [row.user_id for row in rows]
    return []


def members_of(workspace_id: Id) -> sa.Select[Any]:
    """The members of a workspace with what their identity provider says of them."""
    return (
        sa.select(workspace_member, USER.email, USER.name)
        .join(*user_of(workspace_member.c.user_id))
        .where(workspace_member.c.workspace_id == workspace_id)
    )


def members_among(
    workspace_id: Id | sa.ColumnElement[Id], user_ids: Iterable[Id] | sa.ColumnElement[Any]
) -> sa.Select[Any]:
    """The ids of the users among these who are members of a workspace.

    `user_ids` is a list or an expression of an array; both may be parameters.
    """
    if not isinstance(user_ids, sa.ColumnElement):
        user_ids = sa.literal(list(user_ids), sa.ARRAY(sa.Uuid))
    return sa.select(workspace_member.c.user_id).where(
        workspace_member.c.workspace_id == workspace_id,
        workspace_member.c.user_id == sa.any_(user_ids),
    )


def roles_among(workspace_id: Id, user_ids: Collection[Id]) -> sa.Select[Any]:
    """The ids and roles of the users among these who are members of a workspace."""
    return members_among(workspace_id, user_ids).add_columns(workspace_member.c.role)


async def strangers(work: UnitOfWork, workspace_id: Id, user_ids: Collection[Id]) -> set[Id]:
    """The users among these who are no members of the workspace."""
    rows = await work.rows(members_among(workspace_id, user_ids))
    return set(user_ids) - {row.user_id for row in rows}


async def has_address(work: UnitOfWork, workspace_id: Id, email: str) -> bool:
    """True when a member of the workspace has this e-mail address, in lower case."""
    theirs = members_of(workspace_id).where(sa.func.lower(USER.email) == email).limit(1)
    return await work.first(theirs) is not None


async def role_of(work: UnitOfWork, workspace_id: Id, user_id: Id) -> Role | None:
    """The role of a user in a workspace now; None for one who is no member."""
    role = await work.scalar(
        sa.select(workspace_member.c.role).where(
            workspace_member.c.workspace_id == workspace_id, workspace_member.c.user_id == user_id
        )
    )
    return None if role is None else Role(role)


async def members_with(work: UnitOfWork, workspace_id: Id, role: Role) -> list[Id]:
    rows = await work.rows(
        sa.select(workspace_member.c.user_id).where(
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
        sa.select(member.workspace_id)
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
    sa.select(workspace_member.c.user_id, workspace_member.c.role)
    .join(workspace, workspace.c.id == workspace_member.c.workspace_id)
    .where(
        workspace_member.c.workspace_id == sa.bindparam("workspace_id", type_=sa.Uuid),
        workspace_member.c.user_id == sa.any_(sa.bindparam("user_ids", type_=sa.ARRAY(sa.Uuid))),
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


RemovalHandler = Callable[[UnitOfWork, Actor, Id], Awaitable[None]]
"""Takes who removes the member, which may be themselves, and the user that was removed."""

_HANDLERS: list[RemovalHandler] = []


def on_member_removal(handler: RemovalHandler) -> None:
    """Call `handler` in the transaction of each removal; registering it again changes nothing.

    Resources of higher domains that hold what is the member's own say here what they then do;
    `models.registrations` lists them.
    """
    if handler not in _HANDLERS:
        _HANDLERS.append(handler)


async def member_removed(work: UnitOfWork, actor: Actor, user_id: Id) -> None:
    """Call the handlers for a user who is no member any more."""
    for handler in _HANDLERS:
        await handler(work, actor, user_id)


async def update_member(
    work: UnitOfWork, actor: Actor, user_id: Id, body: UpdateMember
) -> MemberBody:
    """Change the role of a member.

    Raises `NotFoundError`, `DeniedError` for a role above the actor's own, `ConflictError` when
    no one would own the workspace.
    """
    current = await _held(work, actor, user_id)
    check_touched(actor.role, current)
    check_role_given(actor.role, body.role)
    if body.role is not Role.OWNER:
        await _keep_an_owner(work, actor, user_id, current)
    await work.execute(
        sa.update(workspace_member)
        .where(
            workspace_member.c.workspace_id == actor.workspace_id,
            workspace_member.c.user_id == user_id,
        )
        .values(role=body.role.value)
    )
    return await get_member(work, actor.workspace_id, user_id)


async def remove_member(work: UnitOfWork, actor: Actor, user_id: Id) -> RemovedMember:
    """Take a member out of the workspace, with every grant and all that their keys can do.

    Anyone may leave. Raises what `update_member` raises.
    """
    current = await _held(work, actor, user_id)
    if user_id != actor.user_id:
        if Scope.MEMBERS_MANAGE not in actor.scopes:
            raise DeniedError(f"The credential lacks the scope {Scope.MEMBERS_MANAGE}.")
        check_touched(actor.role, current)
    await _keep_an_owner(work, actor, user_id, current)
    await work.execute(
        sa.delete(workspace_member).where(
            workspace_member.c.workspace_id == actor.workspace_id,
            workspace_member.c.user_id == user_id,
        )
    )
    await member_removed(work, actor, user_id)
    return RemovedMember(user_id=user_id)


async def _held(work: UnitOfWork, actor: Actor, user_id: Id) -> Role:
    """The member's role, until the end of the transaction."""
    await lock_members(work, actor.workspace_id)
    role = await work.scalar(
        sa.select(workspace_member.c.role).where(
            workspace_member.c.workspace_id == actor.workspace_id,
            workspace_member.c.user_id == user_id,
        )
    )
    if role is None:
        raise NotFoundError("user")
    return Role(role)


async def _keep_an_owner(work: UnitOfWork, actor: Actor, user_id: Id, current: Role) -> None:
    if current is not Role.OWNER:
        return
    other_owner = await work.first(
        sa.select(workspace_member.c.user_id)
        .where(
            workspace_member.c.workspace_id == actor.workspace_id,
            workspace_member.c.role == Role.OWNER.value,
            workspace_member.c.user_id != user_id,
        )
        .limit(1)
    )
    if other_owner is None:
        raise ConflictError("A workspace needs an owner. Make another member an owner first.")


def _rows(workspace_id: Id) -> sa.Select[Any]:
    return members_of(workspace_id)


async def _identify(
    work: UnitOfWork, target: ImportTarget, rows: Sequence[Row]
) -> Mapping[str, str]:
    """People are known by their e-mail address; an id alone says nothing on another platform.

    No one enters a workspace that is there already by a bundle: only its members are known.
    """
    emails = {row["email"].lower() for row in rows if row.get("email")}
    address = sa.func.lower(app_user.c.email)
    there = sa.select(workspace.c.id).where(workspace.c.id == target.workspace_id).exists()
    members = sa.select(workspace_member.c.user_id).where(
        workspace_member.c.workspace_id == target.workspace_id
    )
    users = await work.rows(
        sa.select(app_user.c.id, address.label("email"))
        .where(
            address == sa.any_(sa.literal(list(emails), sa.ARRAY(sa.Text))),
            sa.or_(~there, app_user.c.id.in_(members)),
        )
        .order_by(app_user.c.created_at.desc(), app_user.c.id.desc())
    )
    known: dict[str, list[str]] = {}
    for user in users:
        known.setdefault(user.email, []).append(str(user.id))
    named = {row["user_id"]: known.get((row.get("email") or "").lower(), []) for row in rows}
    # Of several people with one address it is the one whose id it was, or else the first.
    return {own: own if own in ids else ids[-1] for own, ids in named.items() if ids}


MEMBERS = BundleKind(
    name="member",
    stage=Stage.CREATING,
    file="members.ndjson",
    table=workspace_member,
    rows=_rows,
    references={"user_id": BUNDLED_USER},
    required=("user_id",),
    order=("user_id",),
    identity="user_id",
    identify=_identify,
    of_members=True,
)
