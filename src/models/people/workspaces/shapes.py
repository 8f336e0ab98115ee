"""Workspaces on the wire (decisions C4, C17)."""

from typing import Annotated

from pydantic import Field

from models.core.access.rules import Role, Scope
from models.core.base import Id, Input, Label, Moment, Nullable, Shape
from models.people.workspaces.rules import Plan

Slug = Annotated[str, Field(pattern=r"^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$")]
Icon = Annotated[str, Field(min_length=1, max_length=200)]


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


class WorkspaceList(Shape):
    workspaces: list[WorkspaceEntry]
    cursor: Nullable[str]


class CreateWorkspace(Input):
    name: Label
    slug: Slug | None = None
    icon: Icon | None = None


class UpdateWorkspace(Input):
    """Body of update workspace: what is absent or null stays, but a null `icon` goes."""

    name: Label | None = None
    slug: Slug | None = None
    icon: Icon | None = None


class ChangePlan(Input):
    """The plan of a workspace from now on."""

    plan: Annotated[Plan, Field(strict=False)]


class PlanBody(Shape):
    """The plan of a workspace."""

    plan: Plan


class DeletedWorkspace(Shape):
    id: Id
