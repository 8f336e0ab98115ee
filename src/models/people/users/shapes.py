"""The caller on the wire."""

from models.core.access.rules import PrincipalType, Role, Scope
from models.core.base import Id, Moment, Shape


class UserBody(Shape):
    id: Id
    email: str | None
    name: str | None
    created_at: Moment


class Me(Shape):
    """The user the credential speaks for; `workspaceId` is the key's own, absent for a session."""

    user: UserBody
    principal_type: PrincipalType
    principal_id: Id
    workspace_id: Id | None
    platform_admin: bool


class WorkspaceScopes(Shape):
    """The rights of the credential in one workspace: its scopes within the user's live role."""

    workspace_id: Id
    role: Role
    scopes: list[Scope]


class MyScopes(Shape):
    principal_type: PrincipalType
    workspaces: list[WorkspaceScopes]
