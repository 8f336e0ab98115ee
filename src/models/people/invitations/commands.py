"""Creating, revoking and accepting invitations."""

from collections.abc import Mapping

from sqlalchemy import insert, select, update

from models.core.access.rules import Actor, Principal, Role
from models.core.base import Id
from models.people.invitations.queries import OPEN, is_addressed, open_invitation
from models.people.invitations.rules import LIFETIME, new_token
from models.people.invitations.shapes import CreateInvitation, InvitationBody, IssuedInvitation
from models.people.invitations.tables import Invitation, invitation
from models.people.members.queries import has_address
from models.people.members.rules import check_role_given, outranks
from models.people.workspaces.commands import add_member, lock_members
from models.people.workspaces.queries import get_workspace
from models.people.workspaces.shapes import WorkspaceEntry
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, NotFoundError
from runtime.ids import new_id


async def create_invitation(
    work: UnitOfWork, actor: Actor, keys: KeyRing, body: CreateInvitation
) -> IssuedInvitation:
    """Invite somebody by e-mail address; an earlier open invitation of theirs is revoked.

    Raises `DeniedError` for a role above the actor's own, `ConflictError` for a member.
    """
    check_role_given(actor.role, body.role)
    email = body.email.lower()
    # Two invitations of one person wait for each other.
    await lock_members(work, actor.workspace_id)
    if await has_address(work, actor.workspace_id, email):
        raise ConflictError("This person is a member of the workspace already.")
    await work.execute(
        update(invitation)
        .where(invitation.c.workspace_id == actor.workspace_id, invitation.c.email == email, *OPEN)
        .values(revoked_at=work.now)
    )
    token = new_token()
    row = await work.first(
        insert(invitation)
        .values(
            id=new_id(),
            workspace_id=actor.workspace_id,
            email=email,
            role=body.role.value,
            digest=keys.digest(token.encode()),
            invited_by_user_id=actor.user_id,
            created_at=work.now,
            expires_at=work.now + LIFETIME,
        )
        .returning(invitation)
    )
    return IssuedInvitation(invitation=InvitationBody.model_validate(row), token=token)


async def revoke_invitation(work: UnitOfWork, actor: Actor, invitation_id: Id) -> InvitationBody:
    """Close an open invitation for ever; a closed one is returned as it is.

    Raises `NotFoundError`.
    """
    this = (invitation.c.workspace_id == actor.workspace_id, invitation.c.id == invitation_id)
    await work.execute(update(invitation).where(*this, *OPEN).values(revoked_at=work.now))
    row = await work.first(select(invitation).where(*this))
    if row is None:
        raise NotFoundError("invitation")
    return InvitationBody.model_validate(row)


async def accept_invitation(
    work: UnitOfWork, principal: Principal, roles: Mapping[Id, Role], keys: KeyRing, token: str
) -> WorkspaceEntry:
    """Make the caller a member, if the invitation is open and to their e-mail address.

    A member keeps the stronger role. Raises `NotFoundError` for everything else, so that a token
    tells nothing to those it was not made for.
    """
    statement = open_invitation(keys, token, work.now).with_for_update(of=invitation)
    row = await work.first(statement, of=Invitation)
    if row is None or not await is_addressed(work, principal, row):
        raise NotFoundError("invitation")
    await work.execute(
        update(invitation).where(invitation.c.id == row.id).values(accepted_at=work.now)
    )
    role = Role(row.role)
    current = roles.get(row.workspace_id)
    if current is not None and outranks(current, role):
        role = current
    await add_member(work, row.workspace_id, principal.user_id, role)
    return await get_workspace(work, principal, row.workspace_id, role)
