"""Scopes, roles, item levels and the caller they add up to; the level a place gives. Pure."""

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum

from models.core.base import Id


class Scope(StrEnum):
    """A permission of a key or a role."""

    WORKSPACE_READ = "workspace:read"
    WORKSPACE_UPDATE = "workspace:update"
    WORKSPACE_DELETE = "workspace:delete"
    MEMBERS_READ = "members:read"
    MEMBERS_INVITE = "members:invite"
    MEMBERS_MANAGE = "members:manage"
    WORKSPACE_CHANGES_READ = "workspace_changes:read"
    WORKSPACE_CHANGES_PROPOSE = "workspace_changes:propose"
    WORKSPACE_CHANGES_APPLY = "workspace_changes:apply"
    RESOURCES_READ = "resources:read"
    RESOURCES_WRITE = "resources:write"
    SURFACES_READ = "surfaces:read"
    SURFACES_WRITE = "surfaces:write"
    BLOCKS_READ = "blocks:read"
    BLOCKS_WRITE = "blocks:write"
    BLOCKS_COMMENT = "blocks:comment"
    CANVAS_READ = "canvas:read"
    CANVAS_WRITE = "canvas:write"
    FILES_READ = "files:read"
    FILES_WRITE = "files:write"
    DATABASES_READ = "databases:read"
    DATABASES_WRITE = "databases:write"
    RECORDS_READ = "records:read"
    RECORDS_WRITE = "records:write"
    RECORDS_COMMENT = "records:comment"
    TIME_ENTRIES_READ = "time_entries:read"
    TIME_ENTRIES_WRITE = "time_entries:write"
    TIME_ENTRIES_MANAGE = "time_entries:manage"
    VIEWS_READ = "views:read"
    VIEWS_WRITE = "views:write"
    DATA_SOURCES_READ = "data_sources:read"
    DATA_SOURCES_WRITE = "data_sources:write"
    MODELS_READ = "models:read"
    MODELS_WRITE = "models:write"
    ACTIONS_READ = "actions:read"
    ACTIONS_WRITE = "actions:write"
    ACTIONS_RUN = "actions:run"
    AUTOMATIONS_READ = "automations:read"
    AUTOMATIONS_WRITE = "automations:write"
    API_KEYS_READ = "api_keys:read"
    API_KEYS_WRITE = "api_keys:write"
    WEBHOOKS_READ = "webhooks:read"
    WEBHOOKS_WRITE = "webhooks:write"
    INTEGRATIONS_READ = "integrations:read"
    INTEGRATIONS_WRITE = "integrations:write"
    AI_READ = "ai:read"
    AI_WRITE = "ai:write"
    BILLING_READ = "billing:read"
    BILLING_MANAGE = "billing:manage"


class Role(StrEnum):
    """The role of a member in a workspace, strongest first."""

    OWNER = "owner"
    ADMIN = "admin"
    EDITOR = "editor"
    COMMENTER = "commenter"
    VIEWER = "viewer"
    GUEST = "guest"


class Level(IntEnum):
    """The access of a caller to one item; each level includes the levels below it."""

    NONE = 0
    VIEW = 1
    COMMENT = 2
    RUN = 3
    EDIT = 4
    MANAGE = 5


_ALL = frozenset(Scope)
_VIEWER = frozenset(scope for scope in Scope if scope.endswith(":read")) - {
    Scope.BILLING_READ,
    Scope.API_KEYS_READ,
}
_COMMENTER = _VIEWER | {Scope.BLOCKS_COMMENT, Scope.RECORDS_COMMENT, Scope.TIME_ENTRIES_WRITE}
_EDITOR = _COMMENTER | {
    Scope.RESOURCES_WRITE,
    Scope.SURFACES_WRITE,
    Scope.BLOCKS_WRITE,
    Scope.CANVAS_WRITE,
    Scope.FILES_WRITE,
    Scope.DATABASES_WRITE,
    Scope.RECORDS_WRITE,
    Scope.VIEWS_WRITE,
    Scope.DATA_SOURCES_WRITE,
    Scope.MODELS_WRITE,
    Scope.ACTIONS_WRITE,
    Scope.ACTIONS_RUN,
    Scope.AUTOMATIONS_WRITE,
    Scope.INTEGRATIONS_WRITE,
    Scope.AI_WRITE,
    Scope.WORKSPACE_CHANGES_PROPOSE,
}

ROLE_SCOPES: dict[Role, frozenset[Scope]] = {
    Role.OWNER: _ALL,
    Role.ADMIN: _ALL - {Scope.WORKSPACE_DELETE, Scope.BILLING_MANAGE},
    Role.EDITOR: _EDITOR,
    Role.COMMENTER: _COMMENTER,
    Role.VIEWER: _VIEWER,
    Role.GUEST: frozenset({Scope.WORKSPACE_READ}),
}

ROLE_LEVELS: dict[Role, Level] = {
    Role.OWNER: Level.MANAGE,
    Role.ADMIN: Level.MANAGE,
    Role.EDITOR: Level.EDIT,
    Role.COMMENTER: Level.COMMENT,
    Role.VIEWER: Level.VIEW,
    Role.GUEST: Level.NONE,
}
"""The level a role gives on an item whose access mode is `open` up to the root."""

MANAGERS = frozenset({Role.OWNER, Role.ADMIN})
"""Roles that manage every item, whatever its access mode and grants."""

GRANTABLE_SCOPES = frozenset(
    {
        Scope.RESOURCES_READ,
        Scope.RESOURCES_WRITE,
        Scope.SURFACES_READ,
        Scope.SURFACES_WRITE,
        Scope.BLOCKS_READ,
        Scope.BLOCKS_WRITE,
        Scope.BLOCKS_COMMENT,
        Scope.CANVAS_READ,
        Scope.CANVAS_WRITE,
        Scope.FILES_READ,
        Scope.FILES_WRITE,
        Scope.DATABASES_READ,
        Scope.RECORDS_READ,
        Scope.RECORDS_WRITE,
        Scope.RECORDS_COMMENT,
        Scope.VIEWS_READ,
        Scope.ACTIONS_READ,
        Scope.ACTIONS_RUN,
        Scope.AUTOMATIONS_READ,
        Scope.DATA_SOURCES_READ,
    }
)
"""Scopes of a guest for an item granted to them; the grant's level is the bound."""


class PrincipalType(StrEnum):
    API_KEY = "api_key"
    SESSION = "session"
    SHARE_LINK = "share_link"
    WEBHOOK = "webhook"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Whoever presented the credential: a key bound to a user, or a user's session."""

    type: PrincipalType
    id: Id
    user_id: Id
    key_workspace_id: Id | None = None
    key_scopes: frozenset[Scope] = frozenset()
    platform_admin: bool = False
    run_id: Id | None = None
    """The automation run in whose name the platform itself acts."""
    run_chain: tuple[Id, ...] = ()
    """The runs that led to what it does, oldest first: `run_id` is the last of them."""
    node_id: str | None = None
    """The node of `run_id` that acts."""
    undo_id: Id | None = None
    """The undo of a run in whose name a person's writes are made."""
    bulk: bool = False
    """An import or a refresh writes: triggers hear of it only if they ask for system changes."""

    @classmethod
    def of_platform(cls, cause: Id) -> "Principal":
        """The platform by itself, for a rule, an automation or a workspace; no user acts.

        Its `user_id` is that of the cause: no user has it, so no condition on a user is met.
        """
        return cls(type=PrincipalType.SYSTEM, id=cause, user_id=cause)

    @property
    def person(self) -> Id | None:
        """The user who acts; None when the platform acts by itself (`of_platform`)."""
        alone = self.type is PrincipalType.SYSTEM and self.id == self.user_id
        return None if alone else self.user_id

    def effective_scopes(self, role: Role) -> frozenset[Scope]:
        """Key scopes ∩ the live role of the bound user; a session has what its role gives."""
        return self._held(ROLE_SCOPES[role])

    def usable_scopes(self, role: Role) -> frozenset[Scope]:
        """The effective scopes, and those a guest may use on an item granted to them."""
        return self._held(ROLE_SCOPES[role] | (GRANTABLE_SCOPES if role is Role.GUEST else set()))

    def _held(self, allowed: frozenset[Scope]) -> frozenset[Scope]:
        return allowed & self.key_scopes if self.type is PrincipalType.API_KEY else allowed


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """A principal inside one workspace: what commands and queries take to know who acts where."""

    principal: Principal
    workspace_id: Id
    role: Role
    scopes: frozenset[Scope] = field(default_factory=frozenset)

    @property
    def user_id(self) -> Id:
        return self.principal.user_id

    @property
    def person(self) -> Id | None:
        """The user who acts; None when the platform acts by itself."""
        return self.principal.person

    @property
    def level(self) -> Level:
        """The level on items that inherit from the workspace root."""
        return ROLE_LEVELS[self.role]


@dataclass(frozen=True, slots=True)
class Placement:
    """A resource as one user sees it in a workspace (interface.md#item-levels).

    `restricted` says that an item on its way to the root is; then the role gives nothing.
    `granted` is the highest level given to the user on the way, as far as that item.
    """

    workspace_id: Id
    item_id: Id | None = None
    restricted: bool = False
    granted: Level = Level.NONE


def level_on(placement: Placement, role: Role) -> Level:
    """The level of a member with this role there; owners and administrators always manage."""
    if role in MANAGERS:
        return Level.MANAGE
    inherited = Level.NONE if placement.restricted else ROLE_LEVELS[role]
    return max(inherited, placement.granted)
