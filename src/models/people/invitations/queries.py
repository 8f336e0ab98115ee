"""Reading invitations."""

from datetime import datetime
from typing import Any

from sqlalchemy import Select, func, select

from models.core.access.queries import WorkspaceOf
from models.core.access.rules import Actor, Principal, Role
from models.core.pagination import PageRequest
from models.people.invitations.shapes import InvitationBody, InvitationList
from models.people.invitations.tables import Invitation, invitation
from models.people.users.queries import find_user
from models.people.workspaces.queries import get_workspace, live_workspace_of
from models.people.workspaces.shapes import WorkspaceEntry
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError

OPEN = (invitation.c.accepted_at.is_(None), invitation.c.revoked_at.is_(None))

visible = WorkspaceOf(invitation.c.id)
"""The workspace of an invitation, if it is among the workspaces that are asked for."""


async def list_invitations(work: UnitOfWork, actor: Actor, page: PageRequest) -> InvitationList:
    """The invitations to the workspace, newest first, without their tokens."""
    statement = select(invitation).where(invitation.c.workspace_id == actor.workspace_id)
    shown = await page.descending(
        work, statement, invitation.c.created_at, invitation.c.id, of=Invitation
    )
    return InvitationList(
        invitations=[InvitationBody.model_validate(row) for row in shown.items],
        cursor=shown.cursor,
    )


def open_invitation(keys: KeyRing, token: str, now: datetime) -> Select[Any]:
    """The invitation of a token, if it can be accepted."""
    return (
        select(invitation)
        .join(*live_workspace_of(invitation))
        .where(
            invitation.c.digest.in_(keys.digests(token.encode("utf-8", "replace"))),
            invitation.c.expires_at > now,
            *OPEN,
        )
    )


async def invited_to(
    work: UnitOfWork, principal: Principal, keys: KeyRing, token: str
) -> WorkspaceEntry:
    """The workspace that an open invitation is to, as its person would see it.

    Raises `NotFoundError` for everything else, so that a token tells nothing to others.
    """
    row = await work.first(open_invitation(keys, token, work.now), of=Invitation)
    if row is None or not await is_addressed(work, principal, row):
        raise NotFoundError("invitation")
    return await get_workspace(work, principal, row.workspace_id, Role(row.role))


async def is_addressed(work: UnitOfWork, principal: Principal, row: Invitation) -> bool:
    """True for an invitation to the e-mail address of the caller."""
    user = await find_user(work, principal.user_id)
    return user is not None and (user.email or "").lower() == row.email


async def open_invitations(work: UnitOfWork, until: datetime) -> int:
    """The number of open invitations, of all workspaces, that were made before a moment."""
    statement = (
        select(func.count())
        .select_from(invitation)
        .join(*live_workspace_of(invitation))
        .where(invitation.c.created_at < until, invitation.c.expires_at > work.now, *OPEN)
    )
    return int(await work.scalar(statement))
