"""The inbox as pages: events with their outcomes, one event, and why an automation did not run."""

import json
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from api.console.entered import BLANK, Entered, Fields, read_as, redisplays
from api.console.forms import done, paged
from api.console.rendering import page, shell_of
from api.console.routing import page_router
from api.console.runs.listing import automation_choices
from api.console.words import plain, sentence_case
from api.kernel.request import ApiRequest, Cursor
from api.routers.automation import webhooks as api
from api.routers.automation.automations import READ
from api.routers.automation.webhooks import LIST_EVENTS, REPLAY
from models.automation.automations.queries import summary
from models.automation.inbox import queries
from models.automation.inbox.rules import EventOutcome, EventSource
from models.automation.triggers.event_replays import ReplayEvent, replay
from models.core.access.rules import Scope
from models.core.base import Id, JsonObject
from runtime.errors import RunError

router = page_router()

_EVENTS = "/workspaces/{workspaceId}/trigger-events"
_EVENT = f"{_EVENTS}/{{eventId}}"
_OF_AUTOMATION = "/workspaces/{workspaceId}/automations/{automationId}/events"
_PAGE = 50
_SOURCES = [("", "Any source"), *((one.value, sentence_case(plain(one))) for one in EventSource)]
_OUTCOMES = [("", "Any outcome"), *((one.value, sentence_case(plain(one))) for one in EventOutcome)]
_VERSIONS = [("published", "Published version"), ("draft", "Draft")]


class EventFilters(queries.WorkspaceEventQuery):
    """The filters of the list, as they are in the URL."""

    cursor: Cursor = None

    def query(self, **others: object) -> dict[str, object]:
        """The parameters of the URL, some of them replaced by `others`."""
        return {**self.wire, **others}


class EventFiltersOfOne(queries.EventQuery):
    """The filters of the list of one automation."""

    cursor: Cursor = None


@dataclass(frozen=True, slots=True)
class _Explained:
    """The summary of an automation, above the list of its events."""

    automation_id: Id
    label: str
    why: queries.WhyNot


@router.get(_EVENTS, access=paged(LIST_EVENTS))
async def get_trigger_events(request: ApiRequest, query: EventFilters) -> Response:
    """Look through events that reached automations."""
    return await _events(request, query, None)


@router.get(_OF_AUTOMATION, access=paged(READ))
async def get_automation_events(request: ApiRequest, query: EventFiltersOfOne) -> Response:
    """Look at the events of one automation, and why nothing ran."""
    automation_id = request.ids["automationId"]
    automation = await summary(request.work, request.actor, automation_id)
    why = await queries.why_not(request.work, request.actor, automation_id)
    narrowed = EventFilters.model_construct(
        **{name: getattr(query, name) for name in EventFiltersOfOne.model_fields},
        automation_id=automation_id,
    )
    return await _events(request, narrowed, _Explained(automation_id, automation.label, why))


async def _events(
    request: ApiRequest, filters: EventFilters, explained: _Explained | None
) -> Response:
    turn = request.page("console trigger events", _PAGE, filters.cursor, filters.wire)
    listed = await queries.list_events(request.work, request.actor, turn, filters)
    shell = await shell_of(request)
    automations = await automation_choices(request, filters.automation_id)
    calls: list[Any] = [(api.list_trigger_events, filters.wire)]
    if explained is not None:
        calls.append(api.explain_automation_events)
    return page(
        request,
        "trigger_events.html",
        shell,
        listed=listed,
        filters=filters,
        explained=explained,
        sources=_SOURCES,
        outcomes=_OUTCOMES,
        automations=automations,
        may_replay=shell.may(Scope.AUTOMATIONS_WRITE),
        detail_text=detail_text,
        api=shell.calls(*calls),
    )


@router.get(_EVENT, access=paged(LIST_EVENTS))
async def get_trigger_event(request: ApiRequest) -> Response:
    """Look at one event and its outcomes."""
    return await _event(request, BLANK)


async def _event(request: ApiRequest, entered: Entered) -> Response:
    event_id = request.ids["eventId"]
    event = await queries.get_event(request.work, request.actor, event_id)
    shell = await shell_of(request)
    return page(
        request,
        "trigger_event.html",
        shell,
        event=event,
        payload=json.dumps(event.payload, indent=2, ensure_ascii=False),
        detail_text=detail_text,
        automations=_automations_of(event),
        versions=_VERSIONS,
        entered=entered,
        may_act=shell.may(Scope.AUTOMATIONS_WRITE),
        api=shell.calls(api.get_trigger_event, (api.replay_trigger_event, _example(event))),
    )


def _automations_of(event: queries.TriggerEventDetail) -> list[tuple[str, str]]:
    named = {str(one.automation_id): one.automation_label for one in event.outcomes}
    return list(named.items())


def _example(event: queries.TriggerEventDetail) -> JsonObject:
    return {"automationId": str(event.outcomes[0].automation_id), "version": "published"}


@router.post(f"{_EVENT}/replay", access=paged(REPLAY), errors=[RunError])
@redisplays(_event)
async def replay_by_form(request: ApiRequest, body: Fields) -> Response:
    """Start a run of an event."""
    values: JsonObject = {
        "automationId": body.texts.get("automationId", ""),
        "version": body.texts.get("version", "published"),
        "test": "test" in body.texts,
    }
    event_id, replay_id = request.ids["eventId"], request.new_id
    asked = read_as(ReplayEvent, values)
    outcome = await replay(request.work, request.actor, event_id, replay_id, asked)
    return done(request, "Run started", f"/runs/{outcome.run_id}")


def detail_text(outcome: queries.EventOutcomeShape) -> str:
    """The detail of an outcome in one line, as text."""
    detail = outcome.detail or {}
    if "term" in detail:
        text = _text(detail["term"])
        return f"{text} — value: {_text(detail['value'])}" if "value" in detail else text
    if "subject" in detail:
        return f"The {detail['subject']} was paused."
    others = [f"{key}: {_text(value)}" for key, value in detail.items() if key != "message"]
    return " — ".join(filter(None, [detail.get("message"), ", ".join(others)]))


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
