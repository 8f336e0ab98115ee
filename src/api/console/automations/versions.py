"""The page of one version of an automation, compared with another, and its way back."""

from starlette.responses import Response

from api.console.automations.pictures import Picture, picture_of, picture_of_both
from api.console.forms import paged
from api.console.rendering import page, see_other
from api.console.routing import page_router
from api.console.shell import shell_of
from api.console.words import curl
from api.kernel.routing import ApiRequest, QueryId
from api.routers.automation.automations import READ, VERSION, WRITE
from models.automation.automations import commands, queries
from models.automation.automations.rules.graph.differences import GraphDifference, difference
from models.automation.automations.shapes import AutomationVersionDetail
from models.core.base import Id
from models.people.users.queries import display_name

router = page_router()

_VERSION = VERSION.removeprefix("/v1")
_OFFERED = 100
"""Versions to compare with, the newest ones."""


@router.get(_VERSION, access=paged(READ))
async def get_version_page(request: ApiRequest, against: QueryId | None = None) -> Response:
    """Look at a version, and at what it has otherwise than another."""
    work, actor, automation_id = request.work, request.actor, request.ids["automationId"]
    automation = await queries.summary(work, actor, automation_id)
    version = await _version(request, request.ids["versionId"])
    earlier = None if against is None else await _version(request, against)
    picture, changes = _compared(earlier, version)
    offered = request.page("automation_versions", _OFFERED, None, automation_id)
    versions = (await queries.list_versions(work, actor, automation_id, offered)).versions
    shell = await shell_of(request)
    return page(
        request,
        "version.html",
        shell,
        automation=automation,
        version=version,
        other=earlier,
        picture=picture,
        changes=changes,
        versions=[one for one in versions if one.id != version.id],
        author=await display_name(work, version.created_by_user_id),
        may_act=await queries.may_edit(work, actor, automation_id),
        calls={
            "Read it": curl(shell.base, "GET", f"/v1{request.url.path}"),
            "Restore it": curl(shell.base, "POST", f"/v1{request.url.path}/restore"),
        },
    )


@router.post(f"{_VERSION}/restore", access=paged(WRITE))
async def restore_by_hand(request: ApiRequest) -> Response:
    """Open a draft with what a version did, and lead to it."""
    ids = request.ids["automationId"], request.ids["versionId"]
    await commands.restore_version(request.work, request.actor, request.services.keys, *ids)
    return see_other(f"/workspaces/{request.workspace_id}/automations/{ids[0]}/edit")


async def _version(request: ApiRequest, version_id: Id) -> AutomationVersionDetail:
    automation_id = request.ids["automationId"]
    return await queries.version_detail(request.work, request.actor, automation_id, version_id)


def _compared(
    other: AutomationVersionDetail | None, version: AutomationVersionDetail
) -> tuple[Picture, GraphDifference | None]:
    """The picture of a version, or of two of them with the differences."""
    if other is None:
        return picture_of(version.graph), None
    changes = difference(other.graph, version.graph, other.trigger_config, version.trigger_config)
    return picture_of_both(other.graph, version.graph, changes), changes
