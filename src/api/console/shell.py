"""The frame around each page: who is signed in, their workspaces, and where they may go."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from api.console.words import curl
from api.kernel.browsers import session_token
from api.kernel.request import ApiRequest
from models.automation.incidents.queries import count_open
from models.core.access.rules import Scope
from models.core.base import Id
from models.messages.notifications.queries import count_unread
from models.people.users import display_name
from models.people.workspaces import WorkspaceEntry, list_workspaces
from runtime.ids import new_id

_LOCAL = "http://127.0.0.1:8000"
_FIRST = (
    '{"label": "Hello", "enabled": true, "graph": {"edges": [], "nodes": [{"id": "greet",'
    ' "kind": "transform", "config": {"output": {"text": "Hello!"}}}]}}'
)
_MOST_COUNTED = 100


@dataclass(frozen=True, slots=True)
class Shell:
    """The facts that the layout shows."""

    person: str
    workspaces: Sequence[WorkspaceEntry]
    workspace: WorkspaceEntry | None
    scopes: frozenset[Scope]
    token: str
    """The token that forms of this session carry."""
    base: str
    """The address of the API."""
    unread: int
    """Notifications that wait in this workspace, up to a hundred."""
    incidents: int
    """Incidents that are open in this workspace, up to a hundred."""

    def may(self, scope: str) -> bool:
        """True when the person may use a scope in this workspace."""
        return Scope(scope) in self.scopes

    def at(self, *parts: object) -> str:
        """The path of a page of this workspace."""
        assert self.workspace is not None, "the page is about a workspace"
        return "/".join(("/workspaces", str(self.workspace.workspace.id), *map(str, parts)))

    def first_steps(self) -> str:
        """The call that makes a first automation."""
        return curl(self.base, "POST", f"/v1{self.at('automations')}", _FIRST)

    def key(self) -> str:
        """A key for a form, under which it takes effect once."""
        return str(new_id())


async def shell_of(request: ApiRequest) -> Shell:
    """The frame of a page that a signed-in person asks for."""
    entries = await list_workspaces(request.work, request.principal, request.roles)
    here = next((one for one in entries if one.workspace.id == request.workspace_id), None)
    assert request.cookie is not None, "pages are read in a session"
    return Shell(
        person=await display_name(request.work, request.principal.user_id),
        workspaces=entries,
        workspace=here,
        scopes=frozenset() if here is None else request.actor.scopes,
        token=session_token(request.services.keys, request.cookie),
        base=api_base(request),
        unread=0 if here is None else await _unread(request, here.workspace.id),
        incidents=0 if here is None else await _incidents(request),
    )


async def _unread(request: ApiRequest, workspace_id: Id) -> int:
    return await count_unread(request.work, request.principal.user_id, workspace_id, _MOST_COUNTED)


async def _incidents(request: ApiRequest) -> int:
    if Scope.AUTOMATIONS_READ not in request.actor.scopes:
        return 0
    return await count_open(request.work, request.actor, _MOST_COUNTED)


def api_base(request: ApiRequest) -> str:
    """The address by which people reach the API, as far as the operator told it."""
    return request.services.settings.public_url or _LOCAL


def home_of(workspace_id: Id) -> str:
    return f"/workspaces/{workspace_id}"


def local_path(text: str | None) -> str:
    """A path on this host, whatever was asked for: nobody is led elsewhere by a link of ours."""
    if text is None or not text.startswith("/") or text.startswith(("//", "/\\")):
        return "/"
    if not text.isascii() or not text.isprintable() or "\\" in text:
        return "/"
    parts = urlsplit(text)
    return text if not parts.scheme and not parts.netloc else "/"
