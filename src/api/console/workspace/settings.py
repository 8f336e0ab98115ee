"""A page of the settings: its frame, its way through lists, and the equal calls of the API."""

import json
from dataclasses import dataclass
from enum import StrEnum

from starlette.responses import Response

from api.console.entered import BLANK, Entered
from api.console.rendering import page, see_other
from api.console.shell import home_of, shell_of
from api.console.words import curl, queried
from api.console.workspace.sections import visible_groups
from api.kernel.routing import Access, ApiRequest
from models.core.access.rules import Scope

SETTINGS = "/workspaces/{workspaceId}/settings"


def reads(*scopes: Scope, resource: str | None = None) -> Access:
    """The demands of a page that shows what an operation with these demands answers."""
    return Access(credential="browser", page=True, scopes=scopes, resource=resource)


def changes(*scopes: Scope, resource: str | None = None) -> Access:
    """The demands of a form; sent twice by one press, it acts once and is answered alike."""
    return Access(
        credential="browser",
        page=True,
        scopes=scopes,
        resource=resource,
        idempotent=True,
        joins=True,
    )


def administers(*, form: bool = False) -> Access:
    """The demands of a page for administrators of the platform, who are members here."""
    return Access(credential="browser", page=True, platform_admin=True, idempotent=form, joins=form)


class Notice(StrEnum):
    """The outcome of a form, as the page says to which it led."""

    SAVED = "saved"
    ADDED = "added"
    REMOVED = "removed"
    REVOKED = "revoked"
    SENT = "sent"


@dataclass(frozen=True, slots=True)
class Turning:
    """The ways from one page of a list to the first and the next one."""

    first: str | None
    next: str | None


def turning(
    request: ApiRequest, cursor: str | None, following: str | None, **query: object
) -> Turning:
    """The links below a list; its filters stay."""
    path = request.url.path
    return Turning(
        first=queried(path, **query) if cursor else None,
        next=queried(path, **query, cursor=following) if following else None,
    )


async def settings_page(
    request: ApiRequest, template: str, section: str, entered: Entered = BLANK, **context: object
) -> Response:
    """A page of the settings with the list of its sections."""
    shell = await shell_of(request)
    groups = visible_groups(request.actor.scopes, is_administrator=request.principal.platform_admin)

    def call(method: str, path: str, body: object = None) -> str:
        sent = None if body is None else json.dumps(body, ensure_ascii=False)
        return curl(shell.base, method, f"/v1{path}", sent)

    return page(
        request,
        template,
        shell,
        entered=entered,
        refusal=entered.refusal,
        section=section,
        groups=groups,
        call=call,
        **context,
    )


def settings_path(request: ApiRequest, *parts: object) -> str:
    """The path of a page of the settings of this workspace."""
    return "/".join((home_of(request.actor.workspace_id), "settings", *map(str, parts)))


def led_to(request: ApiRequest, *parts: object, notice: Notice | None = None) -> Response:
    """Lead to a page of the settings, which says what was done."""
    return see_other(queried(settings_path(request, *parts), notice=notice))
