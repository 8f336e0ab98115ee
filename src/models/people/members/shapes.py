"""Members on the wire (decisions C16, C17)."""

from typing import Annotated

from pydantic import Field

from models.core.access.rules import Role
from models.core.base import Id, Input, Moment, Nullable, Shape

RoleInput = Annotated[Role, Field(strict=False)]


class MemberBody(Shape):
    """One member; name and e-mail are what their identity provider says."""

    user_id: Id
    email: str | None
    name: str | None
    role: Role
    created_at: Moment


class MemberList(Shape):
    members: list[MemberBody]
    cursor: Nullable[str]


class UpdateMember(Input):
    role: RoleInput


class RemovedMember(Shape):
    user_id: Id
