"""Choosing a workspace for a client, and reading one's own choice."""

from collections.abc import Container

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert

from models.core.access.rules import Principal
from models.core.base import Id
from models.people.oauth_clients.shapes import ChooseWorkspace, OauthClientWorkspace
from models.people.oauth_clients.tables import oauth_client_choice
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, DeniedError

MAX_CHOICES = 1_000
"""Clients for which one person has chosen (promise I12)."""


class NoMemberError(DeniedError):
    """The caller is no member of the workspace, or there is no such workspace."""

    def __init__(self) -> None:
        super().__init__("The caller is not a member of the workspace.")


async def choose_workspace(
    work: UnitOfWork, principal: Principal, member_of: Container[Id], body: ChooseWorkspace
) -> OauthClientWorkspace:
    """Make or replace the choice of the caller, who is a member of these workspaces.

    Raises NoMemberError, and ConflictError for too many clients.
    """
    if body.workspace_id not in member_of:
        raise NoMemberError
    values = {"workspace_id": body.workspace_id, "updated_at": work.now}
    await work.execute(
        insert(oauth_client_choice)
        .values(user_id=principal.user_id, oauth_client_id=body.oauth_client_id, **values)
        .on_conflict_do_update(index_elements=["user_id", "oauth_client_id"], set_=values)
    )
    mine = select(func.count()).where(oauth_client_choice.c.user_id == principal.user_id)
    if await work.scalar(mine) > MAX_CHOICES:
        raise ConflictError(f"A person can choose for {MAX_CHOICES} clients.")
    return OauthClientWorkspace(
        oauth_client_id=body.oauth_client_id, workspace_id=body.workspace_id
    )


async def read_choice(
    work: UnitOfWork, principal: Principal, member_of: Container[Id], oauth_client_id: str
) -> OauthClientWorkspace:
    """The caller's own choice; none where the caller is a member no more."""
    workspace_id = await work.scalar(
        select(oauth_client_choice.c.workspace_id).where(
            oauth_client_choice.c.user_id == principal.user_id,
            oauth_client_choice.c.oauth_client_id == oauth_client_id,
        )
    )
    seen = workspace_id if workspace_id is not None and workspace_id in member_of else None
    return OauthClientWorkspace(oauth_client_id=oauth_client_id, workspace_id=seen)
