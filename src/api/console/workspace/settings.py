"""The settings of a workspace: their frame and sections, its name, its pause, its end."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from starlette.responses import Response

from api.console.entered import BLANK, Entered, Fields, read_as, redisplays
from api.console.forms import Pause, Resume
from api.console.rendering import Called, home_of, page, see_other, shell_of
from api.console.routing import page_router
from api.console.words import queried
from api.kernel.routing import Access, ApiRequest
from api.routers.people import workspaces as api
from api.routers.workspace import pauses as pauses_api
from models.core.access.rules import Scope
from models.core.pauses.rules import PauseSubject
from models.core.pauses.store import PauseWork, ResumeWork, answer
from models.people import workspaces
from models.people.workspaces import UpdateWorkspace, get_workspace
from models.workspace import pauses
from runtime.errors import ValidationError

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


async def settings_page(
    request: ApiRequest,
    template: str,
    section: str,
    *operations: Called,
    entered: Entered = BLANK,
    **context: object,
) -> Response:
    """A page of the settings with the list of its sections, for some operations of the API."""
    shell = await shell_of(request)
    return page(
        request,
        template,
        shell,
        entered=entered,
        refusal=entered.refusal,
        **frame_of(request, section),
        api=shell.calls(*operations),
        **context,
    )


def frame_of(request: ApiRequest, section: str) -> dict[str, Any]:
    """The layout of a page: that of a section of the settings, or that of the console."""
    if not section:
        return {"frame": "layout.html"}
    groups = visible_groups(request.actor.scopes, is_administrator=request.principal.platform_admin)
    return {"frame": "settings.html", "section": section, "groups": groups}


def settings_path(request: ApiRequest, *parts: object) -> str:
    """The path of a page of the settings of this workspace."""
    return "/".join((home_of(request.actor.workspace_id), "settings", *map(str, parts)))


def led_to(request: ApiRequest, *parts: object, notice: Notice | None = None) -> Response:
    """Lead to a page of the settings, which says what was done."""
    return see_other(queried(settings_path(request, *parts), notice=notice))


@dataclass(frozen=True, slots=True)
class Section:
    """One page of the settings, and the scope that reads it."""

    name: str
    label: str
    scope: Scope = Scope.WORKSPACE_READ
    for_administrators: bool = False

    @property
    def path(self) -> str:
        """The path below that of the workspace."""
        return "settings" if self.name == "general" else f"settings/{self.name}"


Groups = Sequence[tuple[str, Sequence[Section]]]

GROUPS: Groups = (
    (
        "Workspace",
        (
            Section("general", "General"),
            Section("members", "Members", Scope.MEMBERS_READ),
            Section("invitations", "Invitations", Scope.MEMBERS_READ),
            Section("pause", "Pause"),
            Section("usage", "Usage", Scope.BILLING_READ),
            Section("audit", "Audit log", Scope.WORKSPACE_UPDATE),
        ),
    ),
    (
        "Developers",
        (
            Section("api-keys", "API keys", Scope.API_KEYS_READ),
            Section("request-logs", "Request logs", Scope.API_KEYS_READ),
            Section("secrets", "Secrets", Scope.INTEGRATIONS_READ),
            Section("webhooks", "Webhooks", Scope.WEBHOOKS_READ),
            Section("model", "Language model", Scope.MODELS_READ),
        ),
    ),
    ("You", (Section("profile", "Profile"), Section("notifications", "Notifications"))),
    (
        "Platform",
        (
            Section("system", "System", for_administrators=True),
            Section("experiments", "Experiments", for_administrators=True),
            Section("segments", "Segments", for_administrators=True),
            Section("release-notices", "Release notices", for_administrators=True),
        ),
    ),
)


def visible_groups(scopes: frozenset[Scope], *, is_administrator: bool) -> Groups:
    """The sections that a member may read, group by group."""
    groups = [
        (
            title,
            [
                section
                for section in sections
                if section.scope in scopes and (is_administrator or not section.for_administrators)
            ],
        )
        for title, sections in GROUPS
    ]
    return [(title, sections) for title, sections in groups if sections]


router = page_router()


@router.get(SETTINGS, access=reads(Scope.WORKSPACE_READ))
async def get_settings(request: ApiRequest, notice: Notice | None = None) -> Response:
    """Look at the name, the address and the icon of a workspace."""
    return await _general_page(request, BLANK, notice=notice)


async def _general_page(request: ApiRequest, entered: Entered, **context: object) -> Response:
    return await settings_page(
        request,
        "settings_general.html",
        "general",
        api.get_workspace,
        api.update_workspace,
        api.delete_workspace,
        entered=entered,
        every=len(Scope),
        **context,
    )


@router.post(SETTINGS, access=changes(Scope.WORKSPACE_UPDATE))
@redisplays(_general_page)
async def change_settings(request: ApiRequest, body: Fields) -> Response:
    """Change the name, the address or the icon of a workspace."""
    texts = body.texts

    # The icon that was emptied goes.
    wanted = read_as(UpdateWorkspace, {"name": "", "slug": "", "icon": None, **texts})
    await workspaces.update_workspace(request.work, request.actor, wanted)
    return led_to(request, notice=Notice.SAVED)


@router.post(f"{SETTINGS}/delete", access=changes(Scope.WORKSPACE_DELETE))
@redisplays(_general_page)
async def delete_workspace_by_form(request: ApiRequest, body: Fields) -> Response:
    """Delete a workspace whose name was typed."""
    actor = request.actor
    entry = await get_workspace(request.work, actor.principal, actor.workspace_id, actor.role)
    if body.texts.get("confirmation") != entry.workspace.name:
        raise ValidationError.at("confirmation", "Enter the workspace name to delete it.")
    await workspaces.delete_workspace(request.work, actor)
    return see_other("/")


_PAUSE = f"{SETTINGS}/pause"
_CHANGE = changes(Scope.WORKSPACE_UPDATE)


@router.get(_PAUSE, access=reads(Scope.WORKSPACE_READ))
async def get_workspace_pause_page(request: ApiRequest) -> Response:
    """Look at the pause of a workspace."""
    return await _pause_page(request, BLANK)


async def _pause_page(request: ApiRequest, entered: Entered) -> Response:
    workspace_id = request.actor.workspace_id
    return await settings_page(
        request,
        "settings_pause.html",
        "pause",
        pauses_api.get_workspace_pause,
        (pauses_api.pause_workspace, {"reason": "Year-end closing"}),
        (pauses_api.resume_workspace, {"rate": 60}),
        entered=entered,
        path=_pause_path(request),
        pause=await answer(request.work, workspace_id, workspace_id),
    )


@router.post(_PAUSE, access=_CHANGE)
@redisplays(_pause_page)
async def pause_workspace_by_form(request: ApiRequest, body: Pause) -> Response:
    """Pause a workspace."""
    place = PauseSubject.WORKSPACE, request.actor.workspace_id
    wanted = read_as(PauseWork, body.values)
    await pauses.pause(request.work, request.actor, *place, wanted)
    return see_other(_pause_path(request))


@router.post(f"{_PAUSE}/resume", access=_CHANGE)
@redisplays(_pause_page)
async def resume_workspace_by_form(request: ApiRequest, body: Resume) -> Response:
    """Resume a workspace."""
    place = PauseSubject.WORKSPACE, request.actor.workspace_id
    wanted = read_as(ResumeWork, body.values)
    await pauses.resume(request.work, request.actor, *place, wanted)
    return see_other(_pause_path(request))


def _pause_path(request: ApiRequest) -> str:
    return settings_path(request, "pause")
