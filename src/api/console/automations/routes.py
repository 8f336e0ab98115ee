"""The list of automations, the page of one, and what can be done with it."""

from typing import Literal

from starlette.responses import Response

from api.console.automations.content import PAGE, content_of, path_of, rows_of
from api.console.forms import Form, done, paged
from api.console.rendering import page
from api.console.routing import page_router
from api.console.shell import shell_of
from api.console.words import curl
from api.kernel.routing import Access, ApiRequest, Cursor
from api.routers.automation.automations import AUTOMATION, AUTOMATIONS, READ, WRITE
from models.automation.automations import commands
from models.automation.automations.shapes import PublishAutomation, UpdateAutomation
from models.core.access.rules import Level, Scope
from models.core.base import InputId
from runtime.errors import ConflictError

router = page_router()

_ONE = AUTOMATION.removeprefix("/v1")


class Publish(Form):
    """The draft that the person has looked at, and a note."""

    draft_version_id: InputId | None = None
    note: str | None = None


class Enable(Form):
    """The state that the automation is to have."""

    enabled: Literal["true", "false"]


@router.get(
    AUTOMATIONS.removeprefix("/v1"),
    access=paged(Access(scopes=[Scope.AUTOMATIONS_READ], level=Level.VIEW)),
)
async def get_automations(request: ApiRequest, cursor: Cursor = None) -> Response:
    """Look through the automations of a workspace."""
    rows, following = await rows_of(request, cursor)
    shell = await shell_of(request)
    path = f"/v1/workspaces/{request.workspace_id}/automations?limit={PAGE}"
    call = curl(shell.base, "GET", path)
    return page(
        request, "automations.html", shell, rows=rows, cursor=cursor, next=following, call=call
    )


@router.get(_ONE, access=paged(READ))
async def get_automation_page(request: ApiRequest) -> Response:
    """Look at an automation: its graph, its runs and its versions."""
    shell = await shell_of(request)
    content = await content_of(request, shell.base)
    return page(request, "automation.html", shell, content=content)


@router.post(f"{_ONE}/enable", access=paged(WRITE))
async def enable_automation(request: ApiRequest, body: Enable) -> Response:
    """Let an automation run by its trigger, or stop that."""
    automation_id = request.ids["automationId"]
    wanted = UpdateAutomation(enabled=body.enabled == "true")
    found = await commands.update_automation(
        request.work, request.actor, request.services.keys, automation_id, wanted, None
    )
    word = "on: its trigger starts runs" if found.enabled else "off: nothing starts it by itself"
    return done(request, f"The automation is {word}.", path_of(request))


@router.post(f"{_ONE}/publish", access=paged(WRITE), errors=[ConflictError])
async def publish_draft(request: ApiRequest, body: Publish) -> Response:
    """Publish the draft, if it is the one that the person has looked at."""
    wanted = PublishAutomation(note=body.note, expectedDraftVersionId=body.draft_version_id)
    found = await commands.publish(
        request.work, request.actor, request.services.keys, request.ids["automationId"], wanted
    )
    return done(request, f"Version {found.version} is published.", path_of(request))
