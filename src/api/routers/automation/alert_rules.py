"""Alert rules of a workspace: what is watched, who is told, and when it fired."""

from api.kernel.routing import Access, ApiRequest, Cursor, Data, Limit, Router
from models.automation.alert_rules import commands, queries
from models.automation.alert_rules.rules import AlertState
from models.automation.alert_rules.shapes import (
    AlertFiringList,
    AlertRuleList,
    AlertRuleShape,
    AlertTest,
    CreateAlertRule,
    DeletedAlertRule,
    UpdateAlertRule,
)
from models.core.access.rules import Scope
from models.core.base import Id
from runtime.errors import ConflictError

router = Router(tags=["alert rules"])

ALERT_RULES = "/v1/workspaces/{workspaceId}/alert-rules"
ALERT_RULE = f"{ALERT_RULES}/{{alertRuleId}}"
LIST = Access(scopes=[Scope.AUTOMATIONS_READ])
READ = Access(scopes=[Scope.AUTOMATIONS_READ], resource="alert_rule")
TEST = Access(scopes=[Scope.AUTOMATIONS_READ], resource="alert_rule", heavy=True)
CREATE = Access(scopes=[Scope.AUTOMATIONS_WRITE], idempotent=True)
WRITE = Access(scopes=[Scope.AUTOMATIONS_WRITE], resource="alert_rule", idempotent=True)


@router.get(ALERT_RULES, access=LIST)
async def list_alert_rules(
    request: ApiRequest,
    limit: Limit = 30,
    cursor: Cursor = None,
    state: AlertState | None = None,
) -> Data[AlertRuleList]:
    """List alert rules by name, with the state in which each was found last.

    Rules about an automation or a connection that the caller does not see are left out.
    """
    page = request.page("alert rules", limit, cursor, state)
    return Data(await queries.list_rules(request.work, request.actor, page, state))


@router.post(ALERT_RULES, access=CREATE, status_code=201, errors=[ConflictError])
async def create_alert_rule(request: ApiRequest, body: CreateAlertRule) -> Data[AlertRuleShape]:
    """Create an alert rule: a condition, and who is told when it holds and when it is over.

    It is evaluated once a minute and counts what its saver may see then; when their rights are
    gone it is disabled, and the recipients are told. They are notified by the channels of their
    preferences (`alert`), and the log of the workspace has `alert.fired` and `alert.resolved`, for
    webhooks as well. A workspace has at most 100 rules.
    """
    return Data(await commands.create_rule(request.work, request.actor, request.new_id, body))


@router.get(ALERT_RULE, access=READ)
async def get_alert_rule(request: ApiRequest) -> Data[AlertRuleShape]:
    """Get an alert rule, with the state in which it was found last and what it said."""
    return Data(await queries.get_rule(request.work, request.actor, _id(request)))


@router.patch(ALERT_RULE, access=WRITE)
async def update_alert_rule(request: ApiRequest, body: UpdateAlertRule) -> Data[AlertRuleShape]:
    """Change an alert rule, which counts what the caller may see from then on.

    A rule that fires is told to be over when it is disabled or its condition changes; enabled, it
    is evaluated anew.
    """
    return Data(await commands.update_rule(request.work, request.actor, _id(request), body))


@router.delete(ALERT_RULE, access=WRITE)
async def delete_alert_rule(request: ApiRequest) -> Data[DeletedAlertRule]:
    """Delete an alert rule and the times at which it fired; nobody is told."""
    return Data(await commands.delete_rule(request.work, request.actor, _id(request)))


@router.post(f"{ALERT_RULE}/test", access=TEST, errors=[ConflictError])
async def test_alert_rule(request: ApiRequest) -> Data[AlertTest]:
    """Evaluate an alert rule now, as the caller sees it; nobody is told, and nothing changes."""
    return Data(await queries.test_rule(request.work, request.actor, _id(request)))


@router.get(f"{ALERT_RULE}/firings", access=READ)
async def list_alert_firings(
    request: ApiRequest, limit: Limit = 30, cursor: Cursor = None
) -> Data[AlertFiringList]:
    """List the times at which an alert rule fired, the newest first.

    One without `resolvedAt` fires now. They are kept as long as runs.
    """
    rule_id = _id(request)
    page = request.page("alert firings", limit, cursor, rule_id)
    return Data(await queries.list_firings(request.work, request.actor, rule_id, page))


def _id(request: ApiRequest) -> Id:
    return request.ids["alertRuleId"]
