"""The templates of the console, the frame around each page, and the answers made of them.

For a request by htmx that replaces a part of a page, the block `live` of the template is enough.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated
from urllib.parse import parse_qsl, unquote, urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pydantic import Field
from pydantic import ValidationError as ShapeError
from pydantic.alias_generators import to_camel
from starlette.responses import Response

from api.console import words
from api.console.entered import BLANK, Entered
from api.console.files import address
from api.console.words import curl, queried, sentence_case
from api.kernel.browsers import PAGE_HEADERS, read_cookie, session_token
from api.kernel.operation import Endpoint, Operation
from api.kernel.request import ApiRequest
from api.kernel.routing import route_of
from api.routers.automation.automations import create_automation
from models.automation.incidents.queries import count_open
from models.core.access.rules import Scope
from models.core.base import Id, Input, JsonObject
from models.core.values import Timezone
from models.messages.notifications.queries import count_unread
from models.people.users import display_name
from models.people.workspaces import WorkspaceEntry, list_workspaces
from runtime.errors import PlatformError
from runtime.ids import new_id

_LOCAL = "http://127.0.0.1:8000"
_FIRST: JsonObject = {
    "label": "Hello",
    "enabled": True,
    "graph": {
        "edges": [],
        "nodes": [
            {"id": "greet", "kind": "transform", "config": {"output": {"text": "Hello!"}}},
        ],
    },
}
_MOST_COUNTED = 100


class Theme(StrEnum):
    """The colors of the pages."""

    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


class Appearance(Input):
    """The look of pages in one browser, which its cookie holds."""

    theme: Annotated[Theme, Field(strict=False)] = Theme.SYSTEM
    time_zone: Timezone | None = None
    language: Annotated[str, Field(pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$")] | None = None


APPEARANCE = "appearance"


def appearance_of(request: ApiRequest) -> Appearance:
    """The look that was chosen in this browser; that of the system for a broken cookie."""
    text = read_cookie(request.scope["headers"], APPEARANCE) or ""
    try:
        return Appearance.model_validate(dict(parse_qsl(unquote(text))))
    except ShapeError:
        return Appearance()


Called = Endpoint | tuple[Endpoint, object]
"""An operation that a page shows the call of, with its body or query."""


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
    parameters: Mapping[str, str]
    """The parameters in the path of the page."""
    appearance: Appearance

    def may(self, scope: str) -> bool:
        """True when the person may use a scope in this workspace."""
        return Scope(scope) in self.scopes

    def at(self, *parts: object) -> str:
        """The path of a page of this workspace."""
        assert self.workspace is not None, "the page is about a workspace"
        return "/".join(("/workspaces", str(self.workspace.workspace.id), *map(str, parts)))

    def call(self, endpoint: Endpoint, payload: object = None, **ids: object) -> str:
        """The command that makes the same call of the API with a key of one's own.

        `payload` is its body, or the query of a GET; without one it is the operation's example.
        What the path of the page does not name is named by `ids`.
        """
        operation, path = route_of(endpoint).operation, route_of(endpoint).path
        known: dict[str, object] = {name: f"{{{name}}}" for name in operation.parameters}
        own = {"workspaceId": self.workspace.workspace.id} if self.workspace else {}
        named = {to_camel(name): one for name, one in ids.items()}
        path = path.format_map(known | own | dict(self.parameters) | named)
        query = dict(own) if operation.chooses_workspace else {}
        if operation.method == "GET" and isinstance(payload, Mapping):
            return curl(self.base, "GET", queried(path, **query, **payload))
        body = _example(operation) if payload is None else payload
        text = None if body is None else json.dumps(body, ensure_ascii=False)
        return curl(self.base, operation.method, queried(path, **query), text)

    def calls(self, *operations: Called, **ids: object) -> dict[str, str]:
        """The calls of some operations by what they do; each may have its own body or query."""
        pairs = [one if isinstance(one, tuple) else (one, None) for one in operations]
        return {
            _title(endpoint.__name__): self.call(endpoint, payload, **ids)
            for endpoint, payload in pairs
        }

    def first_steps(self) -> str:
        """The call that makes a first automation."""
        return self.call(create_automation, _FIRST)

    def key(self) -> str:
        """A key for a form, under which it takes effect once."""
        return str(new_id())


def _title(name: str) -> str:
    """The title of an operation: `create_api_key` → `Create API key`."""
    return sentence_case(" ".join({"api": "API", "ai": "AI"}.get(w, w) for w in name.split("_")))


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
        parameters=request.path_params,
        appearance=appearance_of(request),
    )


def _example(operation: Operation) -> object:
    """The body that the documentation of an operation shows; None for one without a body."""
    if operation.body is None:
        return None
    extra = getattr(operation.body.shape, "model_config", {}).get("json_schema_extra") or {}
    examples = extra.get("examples") if isinstance(extra, dict) else None
    return examples[0] if examples else {}


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
    """A path on this host, whatever was asked for: no one is led elsewhere by a link of ours."""
    if text is None or not text.startswith("/") or text.startswith(("//", "/\\")):
        return "/"
    if not text.isascii() or not text.isprintable() or "\\" in text:
        return "/"
    parts = urlsplit(text)
    return text if not parts.scheme and not parts.netloc else "/"


_HERE = Path(__file__).parent


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader([_HERE / "templates", *_HERE.glob("*/templates")]),
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["asset"] = address
    environment.globals["zip"] = zip
    environment.filters.update(words.FILTERS)
    environment.globals["ui"] = environment.get_template("components.html").module
    return environment


_TEMPLATES = _environment()


def is_partial(request: ApiRequest) -> bool:
    """True for a request of htmx that replaces a part of a page."""
    return request.headers.get("hx-request-type") == "partial"


def is_htmx(request: ApiRequest) -> bool:
    return request.headers.get("hx-request") == "true"


def page(
    request: ApiRequest,
    template: str,
    shell: Shell,
    *,
    entered: Entered = BLANK,
    refusal: PlatformError | None = None,
    **context: object,
) -> Response:
    """A page, or the part of it that the request is to replace.

    With a refusal, of its own or of the form in `entered`, it has the status of that.
    """
    source = _TEMPLATES.get_template(template)
    shown = {"shell": shell, "path": request.url.path, "entered": entered, "refusal": refusal}
    values = {**shown, **context}
    refusal = refusal or entered.refusal
    if is_partial(request) and "live" in source.blocks:
        content = "".join(source.blocks["live"](source.new_context(values)))
    else:
        content = source.render(values)
    status = 200 if refusal is None else refusal.status
    return Response(content, status, headers=PAGE_HEADERS, media_type="text/html")


async def console_page(
    request: ApiRequest,
    template: str,
    *operations: Called,
    entered: Entered = BLANK,
    refusal: PlatformError | None = None,
    **context: object,
) -> Response:
    """A page of a signed-in person, for some operations of the API."""
    shell = await shell_of(request)
    context["api"] = shell.calls(*operations)
    return page(request, template, shell, entered=entered, refusal=refusal, **context)


def bare(request: ApiRequest, template: str, status: int = 200, **context: object) -> Response:
    """A page for a person who is not known: without navigation, in the look of their browser."""
    look = appearance_of(request)
    content = _TEMPLATES.get_template(template).render(context, look=look)
    return Response(content, status, headers=PAGE_HEADERS, media_type="text/html")


def toast(message: str, kind: str, status: int = 200) -> Response:
    """A message that htmx adds to the page which asked; what was typed there stays."""
    content = _TEMPLATES.get_template("toast.html").render(message=message, kind=kind)
    answer = Response(content, status, headers=PAGE_HEADERS, media_type="text/html")
    answer.headers["HX-Retarget"] = "#toasts"
    answer.headers["HX-Reswap"] = "beforeend"
    if kind == "success":
        answer.headers["HX-Trigger"] = "changed"
    return answer


def see_other(path: str) -> Response:
    """Lead to another page of ours after a form; its body is kept for a repetition."""
    return Response(path, 303, headers={"Location": path, "Cache-Control": "no-store"})
