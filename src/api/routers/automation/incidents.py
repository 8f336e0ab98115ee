"""Incidents: runs that failed alike, retried after a fix; and the alert rules of a workspace."""

from dataclasses import replace

from api.kernel.routing import Access, ApiRequest, Data, Router
from models.automation.alert_rules import commands as rule_commands
from models.automation.alert_rules import queries as rule_queries
from models.automation.incidents import commands, grouping, queries
from models.automation.run_operations import queries as run_operation_queries
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
PREVIEW = replace(WRITE, idempotent=False, heavy=True, safe=True)


@router.get(INCIDENTS, access=LIST, calls=queries.list_incidents)
async def list_incidents() -> None:
    """List incidents of automations, the one that was opened last first.

    An incident groups the runs of one automation that failed at the same node, with the same code
    and message; tests are not counted. It is created within a minute of its first failure.
    """


@router.get(INCIDENT, access=READ)
async def get_incident(request: ApiRequest) -> Data[queries.IncidentDetail]:
    """Get an incident, with the versions that failed and the one that is suspected."""
    return await _shown(request)


@router.get(f"{INCIDENT}/runs", access=READ, calls=queries.list_incident_runs)
async def list_incident_runs() -> None:
    """List the runs of an incident, the one that failed last first."""


@router.get(f"{INCIDENT}/records", access=READ_RECORDS, calls=grouping.list_incident_records)
async def list_incident_records() -> None:
    """List the records of an incident: what its runs were about, or wrote before they failed.

    A record that the caller does not see, or that is in the trash, is left out. One is remembered
    when its run fails: the one of the trigger, and up to 100 that nodes wrote.
    """


@router.patch(INCIDENT, access=WRITE)
async def update_incident(
    request: ApiRequest, body: queries.UpdateIncident
) -> Data[queries.IncidentDetail]:
    """Assign an incident to a member, mute it, or write a note.

    A muted incident sends no notifications; it stays muted when it reopens.
    """
    await commands.update_incident(request.work, request.actor, request.ids["incidentId"], body)
    return await _shown(request)


@router.post(f"{INCIDENT}/close", access=WRITE)
async def close_incident(request: ApiRequest) -> Data[queries.IncidentDetail]:
    """Close an incident. A later failure reopens it."""
    await commands.close_incident(request.work, request.actor, request.ids["incidentId"])
    return await _shown(request)


@router.post(f"{INCIDENT}/reopen", access=WRITE)
async def reopen_incident(request: ApiRequest) -> Data[queries.IncidentDetail]:
    """Reopen a closed incident, with the runs that it had."""
    await commands.reopen_incident(request.work, request.actor, request.ids["incidentId"])
    return await _shown(request)


@router.post(
    f"{INCIDENT}/retry/preview",
    access=PREVIEW,
    errors=[ConflictError],
    calls=commands.preview_retry,
)
async def preview_incident_retry() -> None:
    """Preview the retry of an incident: its runs, and the effects that would be repeated."""


@router.post(f"{INCIDENT}/retry", access=WRITE, status_code=202, errors=[ConflictError])
async def retry_incident(
    request: ApiRequest, body: queries.RetryIncident
) -> Data[run_operation_queries.RunOperationShape]:
    """Retry the runs of an incident after a fix, by an operation over runs.

    It retries the runs that were not yet retried successfully, up to 100,000. When all of them have
    succeeded, the incident closes.
    """
    incident_id, new_id = request.ids["incidentId"], request.new_id
    await commands.retry_incident(request.work, request.actor, incident_id, new_id, body)
    return Data(await run_operation_queries.operation_detail(request.work, request.actor, new_id))


async def _shown(request: ApiRequest) -> Data[queries.IncidentDetail]:
    incident_id = request.ids["incidentId"]
    return Data(await queries.get_incident(request.work, request.actor, incident_id))


alert_rules_router = Router(tags=["alert rules"])

ALERT_RULES = "/v1/workspaces/{workspaceId}/alert-rules"
ALERT_RULE = f"{ALERT_RULES}/{{alertRuleId}}"

LIST_RULES = Access(scopes=[Scope.AUTOMATIONS_READ])

READ_RULE = Access(scopes=[Scope.AUTOMATIONS_READ], resource="alert_rule")

TEST_RULE = Access(scopes=[Scope.AUTOMATIONS_READ], resource="alert_rule", heavy=True, safe=True)

CREATE_RULE = Access(scopes=[Scope.AUTOMATIONS_WRITE], idempotent=True)

WRITE_RULE = Access(scopes=[Scope.AUTOMATIONS_WRITE], resource="alert_rule", idempotent=True)


@alert_rules_router.get(ALERT_RULES, access=LIST_RULES, calls=rule_queries.list_rules)
async def list_alert_rules() -> None:
    """List alert rules by name, each with its last known state.

    Rules about an automation or a connection that the caller does not see are left out.
    """


@alert_rules_router.post(
    ALERT_RULES,
    access=CREATE_RULE,
    status_code=201,
    errors=[ConflictError],
    calls=rule_commands.create_rule,
)
async def create_alert_rule() -> None:
    """Create an alert rule: a condition, and who is notified when it fires and when it resolves.

    It is evaluated once a minute with the rights of the member who saved it. When they lose these,
    the rule is disabled and the recipients are notified. Notifications use the channels of their
    preferences (`alert`), and the log of the workspace has `alert.fired` and `alert.resolved`, for
    webhooks as well. A workspace has at most 100 rules.
    """


@alert_rules_router.get(ALERT_RULE, access=READ_RULE, calls=rule_queries.get_rule)
async def get_alert_rule() -> None:
    """Get an alert rule, with its last known state and message."""


@alert_rules_router.patch(ALERT_RULE, access=WRITE_RULE, calls=rule_commands.update_rule)
async def update_alert_rule() -> None:
    """Change an alert rule, which from then on has the rights of the caller.

    A firing rule resolves when it is disabled or its condition changes; once enabled, it is
    evaluated again.
    """


@alert_rules_router.delete(ALERT_RULE, access=WRITE_RULE, calls=rule_commands.delete_rule)
async def delete_alert_rule() -> None:
    """Delete an alert rule and its history, without a notification."""


@alert_rules_router.post(
    f"{ALERT_RULE}/test", access=TEST_RULE, errors=[ConflictError], calls=rule_queries.test_rule
)
async def test_alert_rule() -> None:
    """Evaluate an alert rule now with the rights of the caller, without a notification."""


@alert_rules_router.get(f"{ALERT_RULE}/firings", access=READ_RULE, calls=rule_queries.list_firings)
async def list_alert_firings() -> None:
    """List the times at which an alert rule fired, the newest first.

    One without `resolvedAt` fires now. They are kept as long as runs.
    """
