"""The inbox: what came in for automations, what became of it, and why nothing ran."""

from api.kernel.routing import Access, ApiRequest, Cursor, Data, Limit, Router
from api.routers.automation.automations import AUTOMATION, READ
from models.automation.inbox import queries
from models.automation.inbox.queries import TriggerEventList, WorkspaceEventQuery
from models.automation.triggers import event_replays
from models.core.access.rules import Level, Scope
from runtime.errors import RunError

router = Router(tags=["trigger events"])

EVENTS = "/v1/workspaces/{workspaceId}/trigger-events"
EVENT = f"{EVENTS}/{{eventId}}"
LIST = Access(scopes=[Scope.AUTOMATIONS_READ], level=Level.VIEW)
REPLAY = Access(
    scopes=[Scope.AUTOMATIONS_WRITE], level=Level.EDIT, idempotent=True, starts_run=True
)


class EventListQuery(WorkspaceEventQuery):
    """The query of a list of events."""

    limit: Limit = 30
    cursor: Cursor = None


@router.get(EVENTS, access=LIST)
async def list_trigger_events(request: ApiRequest, query: EventListQuery) -> Data[TriggerEventList]:
    """List what came in for automations, newest first, with what became of it for each of them.

    Events are webhook calls, form answers, record changes, buttons, due times, called runs and
    failures. One is listed when it concerned an automation that the caller sees: one that
    subscribes to it, or would if it were published and enabled. `text` is searched for literally
    in payloads, in any case. `since` and `until` bound when events came in; the second is not
    included. A page that has searched ten thousand events ends early; its cursor continues.
    """
    page = request.page("trigger_events", query.limit, query.cursor, query.wire)
    return Data(await queries.list_events(request.work, request.actor, page, query))


@router.get(EVENT, access=LIST, calls=queries.get_event)
async def get_trigger_event() -> None:
    """Get an event with its payload and its outcomes.

    Credentials in the payload are redacted. A payload larger than 64 KiB is not kept.
    """


@router.post(
    f"{EVENT}/replay",
    access=REPLAY,
    status_code=201,
    errors=[RunError],
    calls=event_replays.replay,
)
async def replay_trigger_event() -> None:
    """Start a run of an event, on the published version, the draft, or any other version.

    The run has the payload of the run that the event started; if there is none, the payload of the
    event, in which credentials are redacted. The filter of the trigger is not asked again. The
    result is a further outcome of the event.
    """


@router.get(f"{AUTOMATION}/why-not", access=READ, calls=queries.why_not)
async def explain_automation_events() -> None:
    """Explain why an automation did or did not run: its events since a moment, by outcome.

    Without `since` it covers the last 24 hours. Of more than 10,000 events the newest are counted.
    """
