"""Invitations on the wire (decisions C16, C17)."""

from typing import Annotated

from pydantic import Field

from models.core.access.rules import Role
from models.core.base import Id, Input, Moment, Nullable, Shape
from models.people.members.shapes import RoleInput

_ADDRESS = r"^[^@\s<>()\",;:\\]+@[^@\s.<>()\",;:\\]+(\.[^@\s.<>()\",;:\\]+)+$"


class CreateInvitation(Input):
    email: Annotated[str, Field(max_length=254, pattern=_ADDRESS)]
    role: RoleInput


class InvitationBody(Shape):
    id: Id
    workspace_id: Id
    email: str
    role: Role
    invited_by_user_id: Id
    created_at: Moment
    expires_at: Moment
    accepted_at: Moment | None
    revoked_at: Moment | None


class IssuedInvitation(Shape):
    """The answer to a creation: the only place the token is ever shown."""

    invitation: InvitationBody
    token: str


class InvitationList(Shape):
    invitations: list[InvitationBody]
    cursor: Nullable[str]
