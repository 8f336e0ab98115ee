"""The alert rules of a workspace: listed, and looked at with the times at which they fired."""

from starlette.responses import Response

from api.console.forms import paged
from api.console.people import member_names
from api.console.rendering import page
from api.console.routing import page_router
from api.console.shell import shell_of
from api.console.words import curl
from api.kernel.routing import ApiRequest, Cursor
from api.routers.automation.alert_rules import LIST, READ
from models.automation.alert_rules import queries
from models.automation.alert_rules.shapes import AlertTest
from runtime.errors import PlatformError

router = page_router()

ALERT_RULES = "/workspaces/{workspaceId}/alert-rules"
ALERT_RULE = f"{ALERT_RULES}/{{alertRuleId}}"
_PAGE = 50
_NEW = '{"label": "Payments fail", "condition": {"kind": "failures", "runs": 10, "minutes": 15}}'


@router.get(ALERT_RULES, access=paged(LIST))
async def get_alert_rules(request: ApiRequest, cursor: Cursor = None) -> Response:
    """Look through the alert rules of a workspace."""
    turn = request.page("console alert rules", _PAGE, cursor)
    listed = await queries.list_rules(request.work, request.actor, turn)
    shell = await shell_of(request)
    api = _api(request)
    calls = {
        "List these rules": curl(shell.base, "GET", api),
        "Create a rule": curl(shell.base, "POST", api, _NEW),
    }
    return page(request, "alert_rules.html", shell, listed=listed, cursor=cursor, calls=calls)


@router.get(ALERT_RULE, access=paged(READ))
async def get_alert_rule(request: ApiRequest, cursor: Cursor = None) -> Response:
    """Look at an alert rule, and when it fired."""
    return await rule_page(request, cursor)


async def rule_page(
    request: ApiRequest,
    cursor: str | None = None,
    outcome: AlertTest | PlatformError | None = None,
) -> Response:
    """The page of a rule; with the `outcome` of a test, if it was just tried."""
    rule_id = request.ids["alertRuleId"]
    rule = await queries.get_rule(request.work, request.actor, rule_id)
    turn = request.page("console alert firings", _PAGE, cursor, rule_id)
    firings = await queries.list_firings(request.work, request.actor, rule_id, turn)
    shell = await shell_of(request)
    api = f"{_api(request)}/{rule_id}"
    calls = {
        "Get it": curl(shell.base, "GET", api),
        "Try it": curl(shell.base, "POST", f"{api}/test"),
        "Disable it": curl(shell.base, "PATCH", api, '{"enabled": false}'),
        "Delete it": curl(shell.base, "DELETE", api),
    }
    tried, refusal = (None, outcome) if isinstance(outcome, PlatformError) else (outcome, None)
    return page(
        request,
        "alert_rule.html",
        shell,
        rule=rule,
        place=f"/workspaces/{request.workspace_id}/alert-rules/{rule_id}",
        recipients=await member_names(request, rule.recipient_user_ids),
        firings=firings,
        cursor=cursor,
        tried=tried,
        refusal=refusal,
        calls=calls,
    )


def _api(request: ApiRequest) -> str:
    return f"/v1/workspaces/{request.workspace_id}/alert-rules"
