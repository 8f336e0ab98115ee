"""Calls that start or resume runs, and the inbox of all events that reached automations."""

from dataclasses import replace
from typing import Any

from api.anonymous_requests import answer, called_webhook, delivery_of, refusals_kept, refuse_call
from api.kernel.awaited_work import Wait
from api.kernel.browsers import NoSubresourceError
from api.kernel.limits import TooOftenError
from api.kernel.routing import Access, ApiRequest, Cursor, Data, Limit, Router
from api.routers.automation.automation_runs import RUN, linked
from api.routers.automation.automations import AUTOMATION, READ, WRITE
from models.automation.automation_runs.shapes import AutomationRunDetail
from models.automation.automations import commands as webhook_secrets
from models.automation.automations import queries
from models.automation.automations.shapes import AutomationDetail
from models.automation.inbox import queries as inbox
from models.automation.inbox.queries import TriggerEventList, WorkspaceEventQuery
from models.automation.triggers import event_replays
from models.automation.waits import commands as wait_commands
from models.automation.waits.commands import PublishEvent, Resumed, ResumeData, ResumeNode
from models.automation.waits.links import read_resume_token
from models.automation.webhooks import commands as webhook_commands
from models.core.access.rules import Level, Scope
from models.core.expressions.rules.errors import BindingError, ExpressionLimitError
from runtime import errors

waits_router = Router(tags=["automation runs"])


@waits_router.post(
    f"{RUN}/nodes/{{node}}/resume",
    access=Access(idempotent=True, cookie=True),
    errors=[errors.ConflictError, errors.DeniedError],
)
async def resume_node(request: ApiRequest, body: ResumeNode) -> Data[AutomationRunDetail]:
    """Decide an approval, or resume a node that waits for an event.

    Assignees and members with the node's role may decide in a session; others need
    automations:write and edit access, and a node that lets editors decide (`allowEditors`). An API
    key always needs that scope. A response to a node that does not wait yet is kept until it does,
    if editors may decide. The first resolution counts: the same response again changes nothing, any
    other is a conflict.
    """
    run = await wait_commands.resume(
        request.work,
        request.actor,
        request.ids["automationId"],
        request.ids["runId"],
        request.path_params["node"],
        body,
    )
    return Data(linked(request, run))


@waits_router.post(
    "/v1/resume/{resumeToken}",
    access=Access(credential="none"),
    errors=[errors.ConflictError, TooOftenError],
)
async def resume_by_url(request: ApiRequest, body: ResumeData) -> Data[Resumed]:
    """Resume a node that waits for an event, with the body as its data.

    `resumed` is 0 when the node does not wait yet; the data is kept until it does. The same body
    again changes nothing.
    """
    request.services.limits.take_visit(request.scope)
    address = read_resume_token(request.services.keys, request.path_params["resumeToken"])
    if address is None:
        raise errors.NotFoundError("resume URL")
    return Data(
        Resumed(resumed=await wait_commands.resume_by_url(request.work, address, body.root))
    )


@waits_router.post(
    "/v1/workspaces/{workspaceId}/automation-events",
    access=Access(scopes=[Scope.AUTOMATIONS_WRITE], level=Level.EDIT, idempotent=True),
)
async def publish_automation_event(request: ApiRequest, body: PublishEvent) -> Data[Resumed]:
    """Resume every node of the workspace that waits for an event with this key.

    The event also resumes a node of a run that is open now and begins to wait for it later, unless
    it has resumed another node of that run.
    """
    return Data(
        Resumed(resumed=await wait_commands.publish_event(request.work, request.actor, body))
    )


router = Router(tags=["webhooks"], refuse=refuse_call)

HOOK = "/v1/hooks/{webhookToken}"

_CALLED: dict[str, Any] = {
    "access": Access(credential="none", writes=True, raw=True, transaction=False),
    "errors": [
        *(
            webhook_commands.UnverifiedError,
            webhook_commands.WrongMethodError,
            TooOftenError,
            NoSubresourceError,
            errors.UnavailableError,
        ),
        *(BindingError, ExpressionLimitError),
    ],
    "status_code": 202,
    "statuses": [200],
}


@router.post(f"{AUTOMATION}/rotate-webhook-secret", access=WRITE)
async def rotate_webhook_secret(request: ApiRequest) -> Data[AutomationDetail]:
    """Give an automation's webhook a new secret; the old one works for 24 more hours."""
    automation_id, keys = request.ids["automationId"], request.services.keys
    await webhook_secrets.rotate_webhook_secret(request.work, request.actor, keys, automation_id)
    return Data(await queries.detail(request.work, request.actor, keys, automation_id))


@router.post(HOOK, **_CALLED)
async def call_webhook(request: ApiRequest) -> Data[webhook_commands.WebhookReceiptBody]:
    """Call a webhook.

    Its trigger says which methods it takes and how a call is verified: by Standard Webhooks unless
    it says otherwise. A call that was made before answers 200 and names the run it started then.
    With `respond: wait` the answer is that of the run: of its respond node, else its output; after
    30 seconds it is 202 all the same.
    """
    services, run_id = request.services, request.new_id
    async with services.shares.held(request.share):
        hook = await called_webhook(request)
        # It begins before the commit, so that no end is missed.
        wait = Wait(services.awaited, run_id)
        async with refusals_kept(request, hook):
            receipt = await webhook_commands.receive(
                services.database, services.keys, hook, delivery_of(request), run_id
            )
    return answer(request, hook, receipt, wait)


@router.get(HOOK, **_CALLED)
async def call_webhook_by_get(request: ApiRequest) -> Data[webhook_commands.WebhookReceiptBody]:
    """Call a webhook with GET, of which the query is the payload."""
    return await call_webhook(request)


@router.put(HOOK, **_CALLED)
async def call_webhook_by_put(request: ApiRequest) -> Data[webhook_commands.WebhookReceiptBody]:
    """Call a webhook with PUT."""
    return await call_webhook(request)


@router.patch(HOOK, **_CALLED)
async def call_webhook_by_patch(request: ApiRequest) -> Data[webhook_commands.WebhookReceiptBody]:
    """Call a webhook with PATCH."""
    return await call_webhook(request)


@router.delete(HOOK, **_CALLED)
async def call_webhook_by_delete(request: ApiRequest) -> Data[webhook_commands.WebhookReceiptBody]:
    """Call a webhook with DELETE."""
    return await call_webhook(request)


events_router = Router(tags=["trigger events"])

EVENTS = "/v1/workspaces/{workspaceId}/trigger-events"
EVENT = f"{EVENTS}/{{eventId}}"
LIST_EVENTS = Access(scopes=[Scope.AUTOMATIONS_READ], level=Level.VIEW)
REPLAY = Access(
    scopes=[Scope.AUTOMATIONS_WRITE], level=Level.EDIT, idempotent=True, starts_run=True
)


class EventListQuery(WorkspaceEventQuery):
    """The query of a list of events."""

    limit: Limit = 30
    cursor: Cursor = None


# A search for a text reads up to ten thousand payloads.
@events_router.get(EVENTS, access=replace(LIST_EVENTS, heavy=True))
async def list_trigger_events(request: ApiRequest, query: EventListQuery) -> Data[TriggerEventList]:
    """List events that reached automations, newest first, each with its outcomes.

    Events are webhook calls, form answers, record changes, buttons, due times, called runs and
    failures. One is listed when it concerned an automation that the caller sees: one that
    subscribes to it, or would if it were published and enabled. `text` is searched for literally
    in payloads, in any case. `since` and `until` bound when events were received; the second is not
    included. A page that has searched ten thousand events ends early; its cursor continues.
    """
    page = request.page("trigger_events", query.limit, query.cursor, query.wire)
    return Data(await inbox.list_events(request.work, request.actor, page, query))


@events_router.get(EVENT, access=LIST_EVENTS, calls=inbox.get_event)
async def get_trigger_event() -> None:
    """Get an event with its payload and its outcomes.

    Credentials in the payload are redacted. A payload larger than 64 KiB is not kept.
    """


@events_router.post(
    f"{EVENT}/replay",
    access=REPLAY,
    status_code=201,
    errors=[errors.RunError],
    calls=event_replays.replay,
)
async def replay_trigger_event() -> None:
    """Start a run of an event, on the published version, the draft, or any other version.

    The run has the payload of the run that the event started; if there is none, the payload of the
    event, in which credentials are redacted. The filter of the trigger is not asked again. The
    result is a further outcome of the event.
    """


@events_router.get(f"{AUTOMATION}/why-not", access=READ, calls=inbox.why_not)
async def explain_automation_events() -> None:
    """Explain why an automation did or did not run: its events since a moment, by outcome.

    Without `since` it covers the last 24 hours. Of more than 10,000 events the newest are counted.
    """
