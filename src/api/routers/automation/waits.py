"""Nodes that wait: decide, resume, publish the event they wait for."""

from api.kernel.rate_limits import TooOftenError
from api.kernel.routing import Access, ApiRequest, Data, Router
from api.routers.automation.automation_runs import RUN, linked
from models.automation.automation_runs.shapes import AutomationRunDetail
from models.automation.waits import commands
from models.automation.waits.resume_urls import read_token
from models.automation.waits.shapes import PublishEvent, Resumed, ResumeData, ResumeNode
from models.core.access.rules import Level, Scope
from runtime.errors import ConflictError, DeniedError, NotFoundError

router = Router(tags=["automation runs"])


@router.post(
    f"{RUN}/nodes/{{node}}/resume",
    access=Access(idempotent=True),
    errors=[ConflictError, DeniedError],
)
async def resume_node(request: ApiRequest, body: ResumeNode) -> Data[AutomationRunDetail]:
    """Decide an approval, or resume a node that waits for an event.

    Assignees and members with the node's role may decide in a session; others need
    automations:write and edit access, and a node that lets editors decide (`allowEditors`). An API
    key always needs that scope. A response to a node that does not wait yet is kept until it does,
    if editors may decide. The first resolution counts: the same response again changes nothing, any
    other is a conflict.
    """
    run = await commands.resume(
        request.work,
        request.actor,
        request.ids["automationId"],
        request.ids["runId"],
        request.path_params["node"],
        body,
    )
    return Data(linked(request, run))


@router.post(
    "/v1/resume/{resumeToken}",
    access=Access(credential="none"),
    errors=[ConflictError, TooOftenError],
)
async def resume_by_url(request: ApiRequest, body: ResumeData) -> Data[Resumed]:
    """Resume a node that waits for an event, with the body as its data.

    `resumed` is 0 when the node does not wait yet; the data is kept until it does. The same body
    again changes nothing.
    """
    request.services.limits.take_visit(request.scope)
    address = read_token(request.services.keys, request.path_params["resumeToken"])
    if address is None:
        raise NotFoundError("resume URL")
    return Data(Resumed(resumed=await commands.resume_by_url(request.work, address, body.root)))


@router.post(
    "/v1/workspaces/{workspaceId}/automation-events",
    access=Access(scopes=[Scope.AUTOMATIONS_WRITE], level=Level.EDIT, idempotent=True),
)
async def publish_automation_event(request: ApiRequest, body: PublishEvent) -> Data[Resumed]:
    """Resume every node of the workspace that waits for an event with this key.

    The event also resumes a node of a run that is open now and begins to wait for it later, unless
    it has resumed another node of that run.
    """
    return Data(Resumed(resumed=await commands.publish_event(request.work, request.actor, body)))
