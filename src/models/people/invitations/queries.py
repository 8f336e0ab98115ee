"""Reading invitations."""

from collections.abc import Sequence

from sqlalchemy import ARRAY, Uuid, any_, bindparam, select

from models.core.access.placement import Placement
from models.core.access.rules import Actor
from models.core.base import Id
from models.core.pagination import PageRequest
from models.people.invitations.shapes import InvitationBody, InvitationList
from models.people.invitations.tables import Invitation, invitation
from runtime.database import UnitOfWork
from runtime.prepared_statement import PreparedStatement

_PLACE = PreparedStatement(
    select(invitation.c.workspace_id).where(
        invitation.c.id == bindparam("id", type_=Uuid),
        invitation.c.workspace_id == any_(bindparam("places", type_=ARRAY(Uuid))),
    )
)


async def visible(
    work: UnitOfWork, workspace_ids: Sequence[Id], resource_id: Id, _user_id: Id
) -> Placement | None:
    """Where the invitation leads, if it is to one of these workspaces."""
    row = await _PLACE.first(work, {"id": resource_id, "places": list(workspace_ids)})
    return None if row is None else Placement(row.workspace_id)


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
