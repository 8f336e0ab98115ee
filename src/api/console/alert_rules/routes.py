"""Alert rules as pages: listed, looked at, made and changed by forms."""

from collections.abc import Mapping, Sequence

from starlette.responses import Response

from api.console.entered import BLANK, Entered, Fields, attempt, read_as, redisplays
from api.console.forms import connection_names, member_names, number_of, paged
from api.console.rendering import console_page, see_other
from api.console.resource_pages import act
from api.console.routing import page_router
from api.console.runs.listing import automation_choices
from api.kernel.routing import Access, ApiRequest, Cursor
from api.routers.automation import incidents as api
from models.automation.alert_rules import commands, queries, shapes
from models.core.access.rules import Scope
from models.core.base import Id, JsonObject
from runtime.errors import ConflictError, PlatformError

router = page_router()

ALERT_RULES = "/workspaces/{workspaceId}/alert-rules"
ALERT_RULE = f"{ALERT_RULES}/{{alertRuleId}}"
_PAGE = 50


@router.get(ALERT_RULES, access=paged(api.LIST_RULES))
async def get_alert_rules(request: ApiRequest, cursor: Cursor = None) -> Response:
    """Look through the alert rules of a workspace."""
    turn = request.page("console alert rules", _PAGE, cursor)
    listed = await queries.list_rules(request.work, request.actor, turn)
    return await console_page(
        request,
        "alert_rules.html",
        api.list_alert_rules,
        api.create_alert_rule,
        listed=listed,
        cursor=cursor,
    )


@router.get(ALERT_RULE, access=paged(api.READ_RULE))
async def get_alert_rule(request: ApiRequest, cursor: Cursor = None) -> Response:
    """Look at an alert rule, and when it fired."""
    return await rule_page(request, cursor)


async def rule_page(
    request: ApiRequest,
    cursor: str | None = None,
    outcome: shapes.AlertTest | PlatformError | None = None,
) -> Response:
    """The page of a rule; with the `outcome` of a test, if it was just tried."""
    rule_id = request.ids["alertRuleId"]
    rule = await queries.get_rule(request.work, request.actor, rule_id)
    turn = request.page("console alert firings", _PAGE, cursor, rule_id)
    firings = await queries.list_firings(request.work, request.actor, rule_id, turn)
    tried, refusal = (None, outcome) if isinstance(outcome, PlatformError) else (outcome, None)
    return await console_page(
        request,
        "alert_rule.html",
        api.get_alert_rule,
        api.test_alert_rule,
        (api.update_alert_rule, {"enabled": not rule.enabled}),
        api.delete_alert_rule,
        api.list_alert_firings,
        rule=rule,
        place=f"/workspaces/{request.workspace_id}/alert-rules/{rule_id}",
        recipients=await member_names(request, rule.recipient_user_ids),
        firings=firings,
        cursor=cursor,
        tried=tried,
        refusal=refusal,
    )


_EDIT = Access(scopes=[Scope.AUTOMATIONS_WRITE], resource="alert_rule")


@router.get(f"{ALERT_RULES}/new", access=paged(Access(scopes=[Scope.AUTOMATIONS_WRITE])))
async def get_new_alert_rule(request: ApiRequest, kind: shapes.AlertKind | None = None) -> Response:
    """Choose what a new rule watches, and then its numbers."""
    if kind is None:
        return await console_page(request, "new_alert_rule.html", kinds=list(shapes.AlertKind))
    return await _form(request, BLANK, kind)


async def _form(
    request: ApiRequest, entered: Entered, kind: shapes.AlertKind | None = None
) -> Response:
    rule = await _rule(request) if request.ids.get("alertRuleId") else None
    kind = rule.kind if rule else kind or _kind(entered.texts)
    recipients = [request.principal.user_id] if rule is None else rule.recipient_user_ids
    connections = {}
    if kind is shapes.AlertKind.CONNECTION_FAILING:
        stored = [] if rule is None else [Id(rule.condition["connectionId"])]
        connections = await connection_names(request, stored)
    values = values_of(Fields.model_validate(entered.texts), kind, rule)
    return await console_page(
        request,
        "alert_rule_form.html",
        (api.update_alert_rule if rule else api.create_alert_rule, values),
        kind=kind,
        rule=rule,
        condition=STARTS if rule is None else rule.condition,
        numbers=NUMBERS[kind],
        about_runs=kind in ABOUT_RUNS,
        shown=fields_of(kind),
        members=await member_names(request, recipients),
        recipients={str(one) for one in recipients},
        automations=await automation_choices(request, None) if kind in ABOUT_RUNS else [],
        connections=list(connections.items()),
        entered=entered,
        place=_path(request, *(() if rule is None else (rule.id,))),
    )


@router.post(ALERT_RULES, access=paged(api.CREATE_RULE), errors=[ConflictError])
@redisplays(_form)
async def create_alert_rule_by_form(request: ApiRequest, body: Fields) -> Response:
    """Make an alert rule, and lead to it."""
    kind = _kind(body.texts)
    wanted = read_as(shapes.CreateAlertRule, values_of(body, kind))
    outcome = await commands.create_rule(request.work, request.actor, request.new_id, wanted)
    return see_other(_path(request, outcome.id))


@router.get(f"{ALERT_RULE}/edit", access=paged(_EDIT))
async def get_alert_rule_form(request: ApiRequest) -> Response:
    """Look at an alert rule to change it."""
    return await _form(request, BLANK)


@router.post(f"{ALERT_RULE}/edit", access=paged(api.WRITE_RULE))
@redisplays(_form)
async def edit_alert_rule(request: ApiRequest, body: Fields) -> Response:
    """Change an alert rule."""
    rule = await _rule(request)

    await _update(request, values_of(body, rule.kind, rule))
    return see_other(_path(request, rule.id))


act(
    router,
    f"{ALERT_RULE}/enable",
    api.update_alert_rule,
    name="enable_alert_rule",
    body={"enabled": True},
    then=ALERT_RULE,
)


act(
    router,
    f"{ALERT_RULE}/disable",
    api.update_alert_rule,
    name="disable_alert_rule",
    body={"enabled": False},
    then=ALERT_RULE,
)


act(router, f"{ALERT_RULE}/delete", api.delete_alert_rule, then=ALERT_RULES)


@router.post(f"{ALERT_RULE}/test", access=paged(api.TEST_RULE), errors=[ConflictError])
async def try_alert_rule(request: ApiRequest) -> Response:
    """Look at what an alert rule sees now; no one is told."""
    rule_id = _id(request)
    outcome = await attempt(
        request, lambda: queries.test_rule(request.work, request.actor, rule_id)
    )
    return await rule_page(request, outcome=outcome)


async def _update(request: ApiRequest, values: object) -> None:
    wanted = read_as(shapes.UpdateAlertRule, values)
    await commands.update_rule(request.work, request.actor, _id(request), wanted)


async def _rule(request: ApiRequest) -> shapes.AlertRuleShape:
    return await queries.get_rule(request.work, request.actor, _id(request))


def _kind(texts: Mapping[str, str]) -> shapes.AlertKind:
    """The kind that the form was made for; the first one where someone wrote another."""
    kinds = {kind.value: kind for kind in shapes.AlertKind}
    return kinds.get(texts.get("kind", ""), shapes.AlertKind.FAILURES)


def _id(request: ApiRequest) -> Id:
    return request.ids["alertRuleId"]


def _path(request: ApiRequest, *parts: object) -> str:
    return "/".join(("/workspaces", str(request.workspace_id), "alert-rules", *map(str, parts)))


NUMBERS: Mapping[shapes.AlertKind, Sequence[str]] = {
    shapes.AlertKind.FAILURES: ("runs", "minutes"),
    shapes.AlertKind.SILENCE: ("minutes",),
    shapes.AlertKind.DURATION: ("minutes",),
    shapes.AlertKind.QUEUE_AGE: ("minutes",),
    shapes.AlertKind.WORKER_GONE: ("minutes",),
    shapes.AlertKind.CONNECTION_FAILING: ("failures", "minutes"),
}
"""The numbers of a condition, by its kind."""
ABOUT_RUNS = {
    shapes.AlertKind.FAILURES,
    shapes.AlertKind.SILENCE,
    shapes.AlertKind.DURATION,
    shapes.AlertKind.QUEUE_AGE,
}
"""The kinds that take filters of runs."""
FILTERS = ("automationId", "errorCode", "failedNodeId")
"""The filters that the form has. Others of a rule stay as they are."""
STARTS: Mapping[str, int] = {"runs": 10, "minutes": 15, "failures": 3}
"""The numbers of a new rule."""


def fields_of(kind: shapes.AlertKind) -> list[str]:
    """The names of the fields that show what is wrong with them."""
    places = [*NUMBERS[kind], *(["outcome"] if kind is shapes.AlertKind.SILENCE else [])]
    if kind is shapes.AlertKind.CONNECTION_FAILING:
        places.append("connectionId")
    queries = [f"query.{name}" for name in FILTERS] if kind in ABOUT_RUNS else []
    return ["label", "repeatMinutes", *(f"condition.{place}" for place in [*places, *queries])]


def values_of(
    body: Fields, kind: shapes.AlertKind, before: shapes.AlertRuleShape | None = None
) -> JsonObject:
    """The body of the operation; of a rule there was `before` the other filters stay."""
    texts = body.texts
    condition: JsonObject = {"kind": kind.value}
    for name in NUMBERS[kind]:
        condition[name] = number_of(texts.get(f"condition.{name}", ""))
    if kind is shapes.AlertKind.SILENCE:
        condition["outcome"] = texts.get("condition.outcome", "ended")
    if kind is shapes.AlertKind.CONNECTION_FAILING:
        condition["connectionId"] = texts.get("condition.connectionId", "")
    if kind in ABOUT_RUNS:
        stored = {} if before is None else before.condition.get("query", {})
        query = {name: one for name, one in stored.items() if name not in FILTERS}
        filled = {name: texts.get(f"condition.query.{name}", "") for name in FILTERS}
        condition["query"] = {**query, **{name: text for name, text in filled.items() if text}}
    recipients = body.checked("recipient")
    return {
        "label": texts.get("label", ""),
        "condition": condition,
        "repeatMinutes": number_of(texts.get("repeatMinutes", "")),
        **({"recipientUserIds": recipients} if recipients else {}),
    }
