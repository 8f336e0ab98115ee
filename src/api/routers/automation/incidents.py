"""Incidents: runs that failed alike, retried after a fix; and the alert rules of a workspace."""

from dataclasses import replace

from api.kernel.routing import Access, ApiRequest, Cursor, Data, Limit, QueryId, Router
from models.automation.alert_rules import commands as rule_commands
from models.automation.alert_rules import queries as rule_queries
from models.automation.alert_rules.rules import AlertState
from models.automation.alert_rules.shapes import (
    AlertFiringList,
    AlertRuleList,
    AlertRuleShape,
    AlertTest,
    CreateAlertRule,
    UpdateAlertRule,
)
from models.automation.incidents import commands, grouping, queries
from models.automation.incidents.queries import (
    IncidentDetail,
    IncidentList,
    IncidentRecordList,
    IncidentRunList,
    IncidentState,
    RetryIncident,
    UpdateIncident,
)
from models.automation.run_operations.queries import (
    RunOperationPreview,
    RunOperationShape,
    operation_detail,
)
from models.core.access.rules import Level, Scope
from models.core.base import Deleted, Id
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

    An incident groups the runs of one automation that failed at the same node, with the same code
    and message; tests are not counted. It is created within a minute of its first failure.
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
    return Data(
        await grouping.list_incident_records(request.work, request.actor, incident_id, page)
    )


@router.patch(INCIDENT, access=WRITE)
async def update_incident(request: ApiRequest, body: UpdateIncident) -> Data[IncidentDetail]:
    """Assign an incident to a member, mute it, or write a note.

    A muted incident sends no notifications; it stays muted when it reopens.
    """
    await commands.update_incident(request.work, request.actor, request.ids["incidentId"], body)
    return await _shown(request)


@router.post(f"{INCIDENT}/close", access=WRITE)
async def close_incident(request: ApiRequest) -> Data[IncidentDetail]:
    """Close an incident. A later failure reopens it."""
    await commands.close_incident(request.work, request.actor, request.ids["incidentId"])
    return await _shown(request)


@router.post(f"{INCIDENT}/reopen", access=WRITE)
async def reopen_incident(request: ApiRequest) -> Data[IncidentDetail]:
    """Reopen a closed incident, with the runs that it had."""
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

    It retries the runs that were not yet retried successfully, up to 100,000. When all of them have
    succeeded, the incident closes.
    """
    incident_id, new_id = request.ids["incidentId"], request.new_id
    await commands.retry_incident(request.work, request.actor, incident_id, new_id, body)
    return Data(await operation_detail(request.work, request.actor, new_id))


async def _shown(request: ApiRequest) -> Data[IncidentDetail]:
    incident_id = request.ids["incidentId"]
    return Data(await queries.get_incident(request.work, request.actor, incident_id))


alert_rules_router = Router(tags=["alert rules"])

ALERT_RULES = "/v1/workspaces/{workspaceId}/alert-rules"
ALERT_RULE = f"{ALERT_RULES}/{{alertRuleId}}"

LIST_RULES = Access(scopes=[Scope.AUTOMATIONS_READ])

READ_RULE = Access(scopes=[Scope.AUTOMATIONS_READ], resource="alert_rule")

TEST_RULE = Access(scopes=[Scope.AUTOMATIONS_READ], resource="alert_rule", heavy=True)

CREATE_RULE = Access(scopes=[Scope.AUTOMATIONS_WRITE], idempotent=True)

WRITE_RULE = Access(scopes=[Scope.AUTOMATIONS_WRITE], resource="alert_rule", idempotent=True)


@alert_rules_router.get(ALERT_RULES, access=LIST_RULES)
async def list_alert_rules(
    request: ApiRequest,
    limit: Limit = 30,
    cursor: Cursor = None,
    state: AlertState | None = None,
) -> Data[AlertRuleList]:
    """List alert rules by name, each with its last known state.

    Rules about an automation or a connection that the caller does not see are left out.
    """
    page = request.page("alert rules", limit, cursor, state)
    return Data(await rule_queries.list_rules(request.work, request.actor, page, state))


@alert_rules_router.post(ALERT_RULES, access=CREATE_RULE, status_code=201, errors=[ConflictError])
async def create_alert_rule(request: ApiRequest, body: CreateAlertRule) -> Data[AlertRuleShape]:
    """Create an alert rule: a condition, and who is notified when it fires and when it resolves.

    It is evaluated once a minute with the rights of the member who saved it. When they lose these,
    the rule is disabled and the recipients are notified. Notifications use the channels of their
    preferences (`alert`), and the log of the workspace has `alert.fired` and `alert.resolved`, for
    webhooks as well. A workspace has at most 100 rules.
    """
    return Data(await rule_commands.create_rule(request.work, request.actor, request.new_id, body))


@alert_rules_router.get(ALERT_RULE, access=READ_RULE)
async def get_alert_rule(request: ApiRequest) -> Data[AlertRuleShape]:
    """Get an alert rule, with its last known state and message."""
    return Data(await rule_queries.get_rule(request.work, request.actor, _rule_id(request)))


@alert_rules_router.patch(ALERT_RULE, access=WRITE_RULE)
async def update_alert_rule(request: ApiRequest, body: UpdateAlertRule) -> Data[AlertRuleShape]:
    """Change an alert rule, which from then on has the rights of the caller.

    A firing rule resolves when it is disabled or its condition changes; once enabled, it is
    evaluated again.
    """
    return Data(
        await rule_commands.update_rule(request.work, request.actor, _rule_id(request), body)
    )


@alert_rules_router.delete(ALERT_RULE, access=WRITE_RULE)
async def delete_alert_rule(request: ApiRequest) -> Data[Deleted]:
    """Delete an alert rule and its history, without a notification."""
    return Data(await rule_commands.delete_rule(request.work, request.actor, _rule_id(request)))


@alert_rules_router.post(f"{ALERT_RULE}/test", access=TEST_RULE, errors=[ConflictError])
async def test_alert_rule(request: ApiRequest) -> Data[AlertTest]:
    """Evaluate an alert rule now with the rights of the caller, without a notification."""
    return Data(await rule_queries.test_rule(request.work, request.actor, _rule_id(request)))


@alert_rules_router.get(f"{ALERT_RULE}/firings", access=READ_RULE)
async def list_alert_firings(
    request: ApiRequest, limit: Limit = 30, cursor: Cursor = None
) -> Data[AlertFiringList]:
    """List the times at which an alert rule fired, the newest first.

    One without `resolvedAt` fires now. They are kept as long as runs.
    """
    rule_id = _rule_id(request)
    page = request.page("alert firings", limit, cursor, rule_id)
    return Data(await rule_queries.list_firings(request.work, request.actor, rule_id, page))


def _rule_id(request: ApiRequest) -> Id:
    return request.ids["alertRuleId"]
