"""Making, changing, trying and ending alert rules by forms."""

import json

from starlette.responses import Response

from api.console.alert_rules.routes import ALERT_RULE, ALERT_RULES, rule_page
from api.console.alert_rules.rule_forms import (
    ABOUT_RUNS,
    NUMBERS,
    STARTS,
    fields_of,
    values_of,
)
from api.console.entered import BLANK, Entered, Fields, attempt, read_as
from api.console.forms import paged
from api.console.integrations.connection_names import connection_names
from api.console.people import member_names
from api.console.rendering import page, see_other
from api.console.routing import page_router
from api.console.runs.listing import automation_choices
from api.console.shell import shell_of
from api.console.words import curl
from api.kernel.routing import Access, ApiRequest
from api.routers.automation.alert_rules import CREATE, TEST, WRITE
from models.automation.alert_rules import commands, queries
from models.automation.alert_rules.conditions import AlertKind
from models.automation.alert_rules.shapes import (
    AlertRuleShape,
    CreateAlertRule,
    UpdateAlertRule,
)
from models.core.access.rules import Scope
from models.core.base import Id
from runtime.errors import ConflictError, PlatformError

router = page_router()

_EDIT = Access(scopes=[Scope.AUTOMATIONS_WRITE], resource="alert_rule")


@router.get(f"{ALERT_RULES}/new", access=paged(Access(scopes=[Scope.AUTOMATIONS_WRITE])))
async def get_new_alert_rule(request: ApiRequest, kind: AlertKind | None = None) -> Response:
    """Choose what a new rule watches, and then its numbers."""
    if kind is None:
        return page(request, "new_alert_rule.html", await shell_of(request), kinds=list(AlertKind))
    return await _form(request, kind, BLANK)


@router.post(ALERT_RULES, access=paged(CREATE), errors=[ConflictError])
async def create_alert_rule_by_form(request: ApiRequest, body: Fields) -> Response:
    """Make an alert rule, and lead to it."""
    kind = _kind(body)

    async def create() -> AlertRuleShape:
        wanted = read_as(CreateAlertRule, values_of(body, kind))
        return await commands.create_rule(request.work, request.actor, request.new_id, wanted)

    outcome = await attempt(request, create)
    if isinstance(outcome, PlatformError):
        return await _form(request, kind, Entered(body.texts, outcome))
    return see_other(_path(request, outcome.id))


@router.get(f"{ALERT_RULE}/edit", access=paged(_EDIT))
async def get_alert_rule_form(request: ApiRequest) -> Response:
    """Look at an alert rule to change it."""
    rule = await _rule(request)
    return await _form(request, rule.kind, BLANK, rule)


@router.post(f"{ALERT_RULE}/edit", access=paged(WRITE))
async def edit_alert_rule(request: ApiRequest, body: Fields) -> Response:
    """Change an alert rule."""
    rule = await _rule(request)

    async def change() -> None:
        await _update(request, values_of(body, rule.kind, rule))

    outcome = await attempt(request, change)
    if isinstance(outcome, PlatformError):
        return await _form(request, rule.kind, Entered(body.texts, outcome), rule)
    return see_other(_path(request, rule.id))


@router.post(f"{ALERT_RULE}/enable", access=paged(WRITE))
async def enable_alert_rule(request: ApiRequest) -> Response:
    """Have an alert rule be looked at again."""
    await _update(request, {"enabled": True})
    return see_other(_path(request, _id(request)))


@router.post(f"{ALERT_RULE}/disable", access=paged(WRITE))
async def disable_alert_rule(request: ApiRequest) -> Response:
    """Leave an alert rule alone; if it fires, that is over."""
    await _update(request, {"enabled": False})
    return see_other(_path(request, _id(request)))


@router.post(f"{ALERT_RULE}/delete", access=paged(WRITE))
async def delete_alert_rule_by_form(request: ApiRequest) -> Response:
    """Delete an alert rule with its firings."""
    await commands.delete_rule(request.work, request.actor, _id(request))
    return see_other(_path(request))


@router.post(f"{ALERT_RULE}/test", access=paged(TEST), errors=[ConflictError])
async def try_alert_rule(request: ApiRequest) -> Response:
    """Look at what an alert rule sees now; nobody is told."""
    rule_id = _id(request)
    outcome = await attempt(
        request, lambda: queries.test_rule(request.work, request.actor, rule_id)
    )
    return await rule_page(request, outcome=outcome)


async def _update(request: ApiRequest, values: object) -> None:
    wanted = read_as(UpdateAlertRule, values)
    await commands.update_rule(request.work, request.actor, _id(request), wanted)


async def _rule(request: ApiRequest) -> AlertRuleShape:
    return await queries.get_rule(request.work, request.actor, _id(request))


async def _form(
    request: ApiRequest, kind: AlertKind, entered: Entered, rule: AlertRuleShape | None = None
) -> Response:
    shell = await shell_of(request)
    recipients = [request.principal.user_id] if rule is None else rule.recipient_user_ids
    method, *place = ("POST",) if rule is None else ("PATCH", rule.id)
    api = "/".join(("/v1/workspaces", str(request.workspace_id), "alert-rules", *map(str, place)))
    connections = {}
    if kind is AlertKind.CONNECTION_FAILING:
        stored = [] if rule is None else [Id(rule.condition["connectionId"])]
        connections = await connection_names(request, stored)
    values = values_of(Fields.model_validate(entered.texts), kind, rule)
    return page(
        request,
        "alert_rule_form.html",
        shell,
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
        place=_path(request, *place),
        call=curl(shell.base, method, api, json.dumps(values)),
    )


def _kind(body: Fields) -> AlertKind:
    """The kind that the form was made for; the first one where somebody wrote another."""
    kinds = {kind.value: kind for kind in AlertKind}
    return kinds.get(body.texts.get("kind", ""), AlertKind.FAILURES)


def _id(request: ApiRequest) -> Id:
    return request.ids["alertRuleId"]


def _path(request: ApiRequest, *parts: object) -> str:
    return "/".join(("/workspaces", str(request.workspace_id), "alert-rules", *map(str, parts)))
