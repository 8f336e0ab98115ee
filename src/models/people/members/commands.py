"""Changing the roles of members, and removing members."""

from sqlalchemy import delete, select, update

from models.core.access.rules import Actor, Role, Scope
from models.core.base import Id
from models.people.members.handlers import member_removed
from models.people.members.queries import get_member
from models.people.members.rules import check_role_given, check_touched
from models.people.members.shapes import MemberBody, RemovedMember, UpdateMember
from models.people.workspaces.commands import lock_members
from models.people.workspaces.tables import workspace_member
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, DeniedError, NotFoundError


async def update_member(
    work: UnitOfWork, actor: Actor, user_id: Id, body: UpdateMember
) -> MemberBody:
    """Change the role of a member.

    Raises `NotFoundError`, `DeniedError` for a role above the actor's own, `ConflictError` when
    nobody would own the workspace.
    """
    current = await _held(work, actor, user_id)
    check_touched(actor.role, current)
    check_role_given(actor.role, body.role)
    if body.role is not Role.OWNER:
        await _keep_an_owner(work, actor, user_id, current)
    await work.execute(
        update(workspace_member)
        .where(
            workspace_member.c.workspace_id == actor.workspace_id,
            workspace_member.c.user_id == user_id,
        )
        .values(role=body.role.value)
    )
    return await get_member(work, actor.workspace_id, user_id)


async def remove_member(work: UnitOfWork, actor: Actor, user_id: Id) -> RemovedMember:
    """Take a member out of the workspace, with every grant and all that their keys can do.

    Anybody may leave. Raises what `update_member` raises.
    """
    current = await _held(work, actor, user_id)
    if user_id != actor.user_id:
        if Scope.MEMBERS_MANAGE not in actor.scopes:
            raise DeniedError(f"The credential lacks the scope {Scope.MEMBERS_MANAGE}.")
        check_touched(actor.role, current)
    await _keep_an_owner(work, actor, user_id, current)
    await work.execute(
        delete(workspace_member).where(
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
        select(workspace_member.c.role).where(
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
        select(workspace_member.c.user_id)
        .where(
            workspace_member.c.workspace_id == actor.workspace_id,
            workspace_member.c.role == Role.OWNER.value,
            workspace_member.c.user_id != user_id,
        )
        .limit(1)
    )
    if other_owner is None:
        raise ConflictError("A workspace needs an owner; make somebody else one first.")
