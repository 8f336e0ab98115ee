"""Reading invitations."""

from sqlalchemy import select

from models.core.access.queries import WorkspaceOf
from models.core.access.rules import Actor
from models.core.pagination import PageRequest
from models.people.invitations.shapes import InvitationBody, InvitationList
from models.people.invitations.tables import Invitation, invitation
from runtime.database import UnitOfWork

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
