"""Workspaces on the wire (decisions C4, C17)."""

from typing import Annotated

from pydantic import Field

from models.access.rules import Role, Scope
from models.base import Id, Input, Label, Moment, Shape

SLUG = r"^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$"


class WorkspaceBody(Shape):
    id: Id
    name: str
    slug: str
    icon: str | None
    created_at: Moment


class WorkspaceEntry(Shape):
    """A workspace as one caller sees it: `permissions` is what they may do there."""

    workspace: WorkspaceBody
    role: Role
    permissions: list[Scope]


class CreateWorkspace(Input):
    name: Label
    slug: Annotated[str, Field(pattern=SLUG)] | None = None
    icon: Annotated[str, Field(min_length=1, max_length=200)] | None = None
