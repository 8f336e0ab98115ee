"""The workspace that a person chose for a client that signs in for them by OAuth."""

from collections.abc import Container
from datetime import datetime
from typing import Annotated

import sqlalchemy as sa
from pydantic import Field
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import Field as TableField
from sqlmodel import SQLModel

from models.core.access.rules import Principal
from models.core.base import EXAMPLE_ID, Id, Input, InputId, Nullable, Shape, example
from models.core.repository import Bound
from runtime.database import UnitOfWork
from runtime.errors import DeniedError
from runtime.postgresql.schema import Timestamp, table_of


class OauthClientChoice(SQLModel, table=True):
    """The workspace that a user last chose for a client."""

    __tablename__ = "oauth_client_choice"
    __table_args__ = (
        sa.ForeignKeyConstraint(["user_id"], ["app_user.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"], ondelete="CASCADE"),
        sa.Index("ix_oauth_client_choice_workspace_id", "workspace_id"),
    )

    user_id: Id = TableField(primary_key=True)
    oauth_client_id: str = TableField(primary_key=True)
    workspace_id: Id
    updated_at: datetime = TableField(sa_type=Timestamp)


oauth_client_choice = table_of(OauthClientChoice)

OauthClientId = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[\x21-\x7e]+$")]
"""An identifier of a client: visible ASCII characters (RFC 6749, appendix A.1)."""


class ChooseWorkspace(Input):
    """Body of the choice; it replaces the one before."""

    model_config = example({"oauthClientId": "example-client", "workspaceId": EXAMPLE_ID})

    oauth_client_id: OauthClientId
    workspace_id: InputId


class OauthClientWorkspace(Shape):
    """The workspace that the caller last set for a client, or null."""

    oauth_client_id: str
    workspace_id: Nullable[Id]


CHOICES = Bound(oauth_client_choice, 1_000, "clients", by=("user_id",), remedy="")
"""Clients for which one person has chosen (architecture.md#bounds)."""


class NoMemberError(DeniedError):
    """The caller is not a member of the workspace, or it does not exist."""

    def __init__(self) -> None:
        super().__init__("You are not a member of this workspace.")


async def choose_workspace(
    work: UnitOfWork, principal: Principal, member_of: Container[Id], body: ChooseWorkspace
) -> OauthClientWorkspace:
    """Make or replace the choice of the caller, who is a member of these workspaces.

    Raises NoMemberError, and ConflictError for too many clients.
    """
    if body.workspace_id not in member_of:
        raise NoMemberError
    values = {"workspace_id": body.workspace_id, "updated_at": work.now}
    async with CHOICES.place(work, principal.user_id):
        await work.execute(
            insert(oauth_client_choice)
            .values(user_id=principal.user_id, oauth_client_id=body.oauth_client_id, **values)
            .on_conflict_do_update(index_elements=["user_id", "oauth_client_id"], set_=values)
        )
    return OauthClientWorkspace(
        oauth_client_id=body.oauth_client_id, workspace_id=body.workspace_id
    )


async def read_choice(
    work: UnitOfWork, principal: Principal, member_of: Container[Id], oauth_client_id: str
) -> OauthClientWorkspace:
    """The caller's own choice; none where the caller is a member no more."""
    workspace_id = await work.scalar(
        sa.select(oauth_client_choice.c.workspace_id).where(
            oauth_client_choice.c.user_id == principal.user_id,
            oauth_client_choice.c.oauth_client_id == oauth_client_id,
        )
    )
    seen = workspace_id if workspace_id is not None and workspace_id in member_of else None
    return OauthClientWorkspace(oauth_client_id=oauth_client_id, workspace_id=seen)
