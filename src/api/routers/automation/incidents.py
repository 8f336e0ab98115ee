"""Incidents: failed runs that failed alike, assigned, muted, closed, and retried after a fix."""

from dataclasses import replace

from api.kernel.routing import Access, ApiRequest, Cursor, Data, Limit, QueryId, Router
from models.automation.incidents import commands, queries, records
from models.automation.incidents.shapes import (
    IncidentDetail,
    IncidentList,
    IncidentRecordList,
    IncidentRunList,
    IncidentState,
    RetryIncident,
    UpdateIncident,
)
from models.automation.run_operations.queries import operation_detail
from models.automation.run_operations.shapes import RunOperationPreview, RunOperationShape
from models.core.access.rules import Level, Scope
from runtime.errors import ConflictError

router = Router(tags=["incidents"])

INCIDENTS = "/v1/workspaces/{workspaceId}/incidents"
INCIDENT = f"{INCIDENTS}/{{incidentId}}"
LIST = Access(scopes=[Scope.AUTOMATIONS_READ], level=Level.VIEW)
READ = replace(LIST, resource="incident")
READ_RECORDS = replace(READ, scopes=[Scope.AUTOMATIONS_READ, Scope.RECORDS_READ])
WRITE = Access(
    scopes=[Scope.AUTOMATIONS_WRITE], resource="incident", level=Level.EDIT, idempotent=True
)
PREVIEW = replace(WRITE, idempotent=False, heavy=True)


@router.get(INCIDENTS, access=LIST)
async def list_incidents(
    request: ApiRequest,
    limit: Limit = 30,
    cursor: Cursor = None,
    state: IncidentState | None = None,
    automation_id: QueryId | None = None,
) -> Data[IncidentList]:
    """List incidents of automations, the one that was opened last first.

    An incident is made of the failed runs of one automation that failed at the same node, with the
    same code and the same message; tests are not counted. It is there within a minute of its first
    failure.
    """
    page = request.page("incidents", limit, cursor, state, automation_id)
    return Data(
        await queries.list_incidents(request.work, request.actor, page, state, automation_id)
    )


@router.get(INCIDENT, access=READ)
async def get_incident(request: ApiRequest) -> Data[IncidentDetail]:
    """Get an incident, with the versions that failed and the one that is suspected."""
    return await _shown(request)


@router.get(f"{INCIDENT}/runs", access=READ)
async def list_incident_runs(
    request: ApiRequest, limit: Limit = 30, cursor: Cursor = None
) -> Data[IncidentRunList]:
    """List the runs of an incident, the one that failed last first."""
    incident_id = request.ids["incidentId"]
    page = request.page("incident_runs", limit, cursor, incident_id)
    return Data(await queries.list_incident_runs(request.work, request.actor, incident_id, page))


@router.get(f"{INCIDENT}/records", access=READ_RECORDS)
async def list_incident_records(
    request: ApiRequest, limit: Limit = 30, cursor: Cursor = None
) -> Data[IncidentRecordList]:
    """List the records of an incident: what its runs were about, or wrote before they failed.

    A record that the caller does not see, or that is in the trash, is left out. One is remembered
    when its run fails: the one of the trigger, and up to 100 that nodes wrote.
    """
    incident_id = request.ids["incidentId"]
    page = request.page("incident_records", limit, cursor, incident_id)
    return Data(await records.list_incident_records(request.work, request.actor, incident_id, page))


@router.patch(INCIDENT, access=WRITE)
async def update_incident(request: ApiRequest, body: UpdateIncident) -> Data[IncidentDetail]:
    """Assign an incident to a member, mute it, or write a note.

    Nobody is notified of a muted incident; it stays muted when it opens again.
    """
    await commands.update_incident(request.work, request.actor, request.ids["incidentId"], body)
    return await _shown(request)


@router.post(f"{INCIDENT}/close", access=WRITE)
async def close_incident(request: ApiRequest) -> Data[IncidentDetail]:
    """Close an incident. A failure after that opens it again."""
    await commands.close_incident(request.work, request.actor, request.ids["incidentId"])
    return await _shown(request)


@router.post(f"{INCIDENT}/reopen", access=WRITE)
async def reopen_incident(request: ApiRequest) -> Data[IncidentDetail]:
    """Open a closed incident again, with the runs that it had."""
    await commands.reopen_incident(request.work, request.actor, request.ids["incidentId"])
    return await _shown(request)


@router.post(f"{INCIDENT}/retry/preview", access=PREVIEW, errors=[ConflictError])
async def preview_incident_retry(
    request: ApiRequest, body: RetryIncident
) -> Data[RunOperationPreview]:
    """Preview the retry of an incident: its runs, and the effects that would be repeated."""
    incident_id = request.ids["incidentId"]
    return Data(await commands.preview_retry(request.work, request.actor, incident_id, body))


@router.post(f"{INCIDENT}/retry", access=WRITE, status_code=202, errors=[ConflictError])
async def retry_incident(request: ApiRequest, body: RetryIncident) -> Data[RunOperationShape]:
    """Retry the runs of an incident after a fix, by an operation over runs.

    Those are the runs that no retry has made good, up to 100,000. When all of them have succeeded,
    the incident closes itself.
    """
    incident_id, new_id = request.ids["incidentId"], request.new_id
    await commands.retry_incident(request.work, request.actor, incident_id, new_id, body)
    return Data(await operation_detail(request.work, request.actor, new_id))


async def _shown(request: ApiRequest) -> Data[IncidentDetail]:
    incident_id = request.ids["incidentId"]
    return Data(await queries.get_incident(request.work, request.actor, incident_id))
