"""Incidents as pages: listed, looked at, assigned, muted, closed, and retried after a fix."""

from dataclasses import replace

from starlette.responses import Response

from api.console.entered import BLANK, Entered, Fields, attempt, read_as, redisplays
from api.console.forms import done, member_names, paged
from api.console.rendering import console_page, page, see_other, shell_of
from api.console.resource_pages import act
from api.console.routing import page_router
from api.console.runs.listing import automation_choices
from api.kernel.routing import ApiRequest, Cursor, QueryId
from api.routers.automation import incidents as api
from api.routers.automation.incidents import LIST, PREVIEW, READ, WRITE
from models.automation.incidents import commands, queries
from models.automation.incidents.grouping import list_incident_records
from models.automation.incidents.queries import IncidentState, RetryIncident, UpdateIncident
from models.automation.run_operations.queries import RunOperationPreview
from models.core.access.rules import Scope
from models.core.base import JsonObject
from runtime.errors import ConflictError, PlatformError, ValidationError

router = page_router()

_INCIDENTS = "/workspaces/{workspaceId}/incidents"
_INCIDENT = f"{_INCIDENTS}/{{incidentId}}"
_PAGE = 50
_RECORDS = 20
_COUNTED, _EXAMINED = 20_000, 2_000
"""Runs that the preview counts and looks at: fewer than the operation, so that it is quick."""


@router.get(_INCIDENTS, access=paged(LIST))
async def get_incidents(
    request: ApiRequest,
    cursor: Cursor = None,
    state: IncidentState = IncidentState.OPEN,
    automation_id: QueryId | None = None,
) -> Response:
    """Look through the incidents of a workspace."""
    turn = request.page("console incidents", _PAGE, cursor, state, automation_id)
    listed = await queries.list_incidents(request.work, request.actor, turn, state, automation_id)
    query = {"state": state.value, "automationId": automation_id}
    return await console_page(
        request,
        "incidents.html",
        (api.list_incidents, query),
        listed=listed,
        cursor=cursor,
        state=state.value,
        states=[(one.value, one.value.capitalize()) for one in IncidentState],
        automation_id=automation_id,
        automations=[("", "Any automation"), *await automation_choices(request, automation_id)],
    )


@router.get(_INCIDENT, access=paged(READ))
async def get_incident(request: ApiRequest, cursor: Cursor = None) -> Response:
    """Look at an incident."""
    return await _incident(request, BLANK, cursor)


async def _incident(request: ApiRequest, entered: Entered, cursor: str | None = None) -> Response:
    incident_id = request.ids["incidentId"]
    incident = await queries.get_incident(request.work, request.actor, incident_id)
    turn = request.page("console incident runs", _PAGE, cursor, incident_id)
    runs = await queries.list_incident_runs(request.work, request.actor, incident_id, turn)
    assignee = incident.assignee_user_id
    people = await member_names(request, [] if assignee is None else [assignee])
    concerned = request.page("console incident records", _RECORDS, None, incident_id)
    records = await list_incident_records(request.work, request.actor, incident_id, concerned)
    shell = await shell_of(request)
    return page(
        request,
        "incident.html",
        shell,
        incident=incident,
        runs=runs,
        records=records,
        cursor=cursor,
        entered=entered,
        members=[("", "Unassigned"), *people.items()],
        is_open=incident.state is not IncidentState.CLOSED,
        may_act=shell.may(Scope.AUTOMATIONS_WRITE),
        api=shell.calls(
            api.get_incident,
            api.list_incident_runs,
            api.list_incident_records,
            (api.update_incident, {"muted": True}),
            api.close_incident,
        ),
    )


@router.post(f"{_INCIDENT}/edit", access=paged(WRITE))
@redisplays(_incident)
async def edit_incident(request: ApiRequest, body: Fields) -> Response:
    """Assign an incident, mute it, and write a note."""
    values: JsonObject = {
        "assigneeUserId": body.texts.get("assigneeUserId") or None,
        "note": body.texts.get("note", ""),
        "muted": "muted" in body.texts,
    }
    incident_id = request.ids["incidentId"]
    change = read_as(UpdateIncident, values)
    await commands.update_incident(request.work, request.actor, incident_id, change)
    return done(request, "Saved", _own_path(request))


act(router, f"{_INCIDENT}/close", api.close_incident, message="Incident closed", then=_INCIDENT)


act(router, f"{_INCIDENT}/reopen", api.reopen_incident, message="Incident reopened", then=_INCIDENT)


@router.post(f"{_INCIDENT}/retry/preview", access=paged(PREVIEW), errors=[ConflictError])
async def preview_retry(request: ApiRequest, body: Fields) -> Response:
    """Look at what a retry of an incident would do, and choose how."""
    return await _retry_form(request, Entered(body.texts))


async def _retry_form(request: ApiRequest, entered: Entered) -> Response:
    body, refusal = Fields.model_validate(entered.texts), entered.refusal
    incident_id = request.ids["incidentId"]

    async def preview() -> RunOperationPreview:
        return await commands.preview_retry(
            request.work,
            request.actor,
            incident_id,
            retry_of(body),
            counted=_COUNTED,
            examined=_EXAMINED,
        )

    outcome = await attempt(request, preview)
    if isinstance(outcome, PlatformError):
        refusal = refusal or outcome
    return await console_page(
        request,
        "incident_retry.html",
        (api.retry_incident, values_of(body)),
        incident=await queries.get_incident(request.work, request.actor, incident_id),
        place=_own_path(request),
        preview=None if isinstance(outcome, PlatformError) else outcome,
        entered=Entered(body.texts, refusal),
    )


@router.post(f"{_INCIDENT}/retry", access=paged(replace(WRITE, heavy=True)), errors=[ConflictError])
@redisplays(_retry_form)
async def retry_by_form(request: ApiRequest, body: Fields) -> Response:
    """Retry the runs of an incident, and lead to the operation that does."""
    ids, new_id = request.ids["incidentId"], request.new_id
    await commands.retry_incident(request.work, request.actor, ids, new_id, retry_of(body))
    return see_other(f"/workspaces/{request.workspace_id}/runs/operations/{request.new_id}")


def _own_path(request: ApiRequest) -> str:
    return f"/workspaces/{request.workspace_id}/incidents/{request.ids['incidentId']}"


def retry_of(fields: Fields) -> RetryIncident:
    """The body of the operation. Raises ValidationError."""
    values = values_of(fields)
    if "rate" in values:
        try:
            values["rate"] = float(values["rate"])
        except ValueError:
            raise ValidationError.at("rate", "must be a number") from None
    return read_as(RetryIncident, values)


def values_of(fields: Fields) -> JsonObject:
    """The same as JSON, for the equal call."""
    texts = fields.texts
    values: JsonObject = {
        "version": texts.get("version", "published"),
        "from": texts.get("from", "failed"),
    }
    return {**values, "rate": texts["rate"]} if texts.get("rate") else values
