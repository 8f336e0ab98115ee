"""Runs by hand: a payload that is chosen and run or tested, and calls of a webhook to try."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import TypeAdapter
from starlette.responses import Response

from api.console.entered import Entered, Form, redisplays
from api.console.forms import paged, read_object
from api.console.rendering import console_page, see_other
from api.console.routing import page_router
from api.console.words import indented
from api.kernel.routing import ApiRequest, QueryId
from api.routers.automation import automation_runs as api
from api.routers.automation.automation_runs import START
from api.routers.automation.automations import AUTOMATION, WRITE
from models.automation.automation_runs.commands import run_now, test_run
from models.automation.automation_runs.filters import read_pairs
from models.automation.automation_runs.history import RecentPayload, recent_payloads
from models.automation.automation_runs.queries import load_run
from models.automation.automation_runs.shapes import RunNow, TestRun
from models.automation.automations import queries
from models.automation.automations.rules.attributes import Attributes
from models.automation.automations.rules.triggers import kinds as trigger_kinds
from models.automation.automations.rules.triggers.configs import read_trigger
from models.automation.automations.shapes import AutomationDetail
from runtime.errors import RunError, ValidationError

router = page_router()

_ONE = AUTOMATION.removeprefix("/v1")
_SHOW = replace(paged(WRITE), idempotent=False)
_OFFERED = 5
_ATTRIBUTES: TypeAdapter[dict[str, str]] = TypeAdapter(Attributes)
_AS_PAIRS = "Enter pairs of a lower-case key and a short value: order:4711,region:eu."


class Run(Form):
    """The payload and the attributes of a run by hand, as a person wrote them."""

    payload: str = "{}"
    attributes: str = ""
    simulate: Literal["on"] | None = None


async def _form(request: ApiRequest, entered: Entered) -> Response:
    body = Run.model_validate(entered.texts)
    automation = await queries.summary(request.work, request.actor, request.ids["automationId"])
    path = f"/workspaces/{request.workspace_id}/automations/{automation.id}"
    return await console_page(
        request,
        "run_form.html",
        (api.run_automation, {"triggerPayload": {}}),
        (api.test_run_automation, {"payload": {}, "simulate": True}),
        automation=automation,
        at=path,
        body=body,
        payloads=await _payloads(request),
        entered=entered,
        may_run=automation.enabled and automation.published_version_id is not None,
    )


@router.get(f"{_ONE}/run", access=_SHOW)
async def get_run_form(request: ApiRequest, like: QueryId | None = None) -> Response:
    """Choose a payload: that of the newest run, or of the run `like`."""
    payloads = await _payloads(request)
    payload = payloads[0].trigger_payload if payloads else {}
    if like is not None:
        run = await load_run(request.work, request.actor, request.ids["automationId"], like)
        payload = run.trigger_payload
    return await _form(request, Entered({"payload": indented(payload)}))


@router.post(f"{_ONE}/run", access=paged(START), errors=[RunError])
@redisplays(_form)
async def run_by_hand(request: ApiRequest, body: Run) -> Response:
    """Run an automation now, and lead to the run."""
    wanted = RunNow(
        triggerPayload=read_object("payload", body.payload),
        attributes=_attributes(body.attributes),
    )
    run = await run_now(request.work, request.actor, request.ids["automationId"], wanted)
    return see_other(f"/runs/{run.id}")


@router.post(f"{_ONE}/test-run", access=paged(START), errors=[RunError])
@redisplays(_form)
async def test_by_hand(request: ApiRequest, body: Run) -> Response:
    """Run the draft as a test; simulated, it reaches nothing outside."""
    wanted = TestRun(
        payload=read_object("payload", body.payload), simulate=body.simulate is not None
    )
    run = await test_run(request.work, request.actor, request.ids["automationId"], wanted)
    return see_other(f"/runs/{run.id}")


def _attributes(text: str) -> dict[str, str]:
    """Raises ValidationError for a text that is not pairs of a key and a short value."""
    try:
        return _ATTRIBUTES.validate_python(read_pairs(text))
    except ValueError:
        raise ValidationError.at("attributes", _AS_PAIRS) from None


async def _payloads(request: ApiRequest) -> Sequence[RecentPayload]:
    return await recent_payloads(request.work, request.actor, request.ids["automationId"], _OFFERED)


@dataclass(frozen=True, slots=True)
class WebhookHelp:
    """The address of a webhook, how calls of it are authenticated, and one to try in a shell."""

    url: str
    methods: Sequence[str]
    authentication: str
    response: str
    call: str


def webhook_help(automation: AutomationDetail, base: str) -> WebhookHelp | None:
    """The help for an automation with a webhook, for who may know its address."""
    config = automation.trigger_config
    trigger = None if config is None else read_trigger(config)
    if not isinstance(trigger, trigger_kinds.WebhookTrigger) or automation.webhook_path is None:
        return None
    url = f"{base}{automation.webhook_path}"
    waits = f"The result of the run, if it ends within {trigger.wait_seconds} s"
    return WebhookHelp(
        url=url,
        methods=trigger.methods,
        authentication=_authentication(trigger),
        response=waits if trigger.respond == "wait" else "202 as soon as the run is queued",
        call=webhook_call(trigger, url),
    )


def _authentication(webhook: trigger_kinds.Webhook) -> str:
    name = webhook.secret_name
    secret = "webhook secret" if name is None else f"workspace secret {name}"
    match webhook.auth:
        case "none":
            return "None. Anyone with this URL can call it."
        case "basic":
            return f"Basic: any user name, with the {secret} as the password"
        case "header":
            return f"Header {webhook.header or trigger_kinds.SECRET_HEADER} with the {secret}"
    signing = webhook.signing
    if signing.scheme == "standard_webhooks":
        return f"Signature with the {secret} (Standard Webhooks)"
    return f"HMAC-SHA256 with the {secret}, as {signing.encoding} in the header {signing.header}"


_EXAMPLE = '{"hello": "world"}'


def webhook_call(webhook: trigger_kinds.Webhook, url: str) -> str:
    """A call that the webhook accepts, for a shell in which `WEBHOOK_SECRET` is set."""
    method = "POST" if "POST" in webhook.methods else webhook.methods[0]
    body = "" if method in {"GET", "DELETE"} else _EXAMPLE
    before, options = _credentials(webhook)
    lines = [f"curl -X {method} {shlex.quote(url)}", *options]
    if body:
        lines += ["-H 'Content-Type: application/json'", '-d "$body"']
    secret = [] if webhook.auth == "none" else ["WEBHOOK_SECRET='...'"]
    if body or before:
        secret.append(f"body={shlex.quote(body)}")
    return "\n".join([*secret, *before, " \\\n  ".join(lines)])


def _credentials(webhook: trigger_kinds.Webhook) -> tuple[Sequence[str], Sequence[str]]:
    """Commands that go before a call, and the options of curl that authenticate it."""
    match webhook.auth:
        case "none":
            return [], []
        case "basic":
            return [], ['-u "webhook:$WEBHOOK_SECRET"']
        case "header":
            return [], [f'-H "{webhook.header or trigger_kinds.SECRET_HEADER}: $WEBHOOK_SECRET"']
    signing = webhook.signing
    if signing.scheme == "standard_webhooks":
        return _STANDARD, [
            '-H "webhook-id: $id"',
            '-H "webhook-timestamp: $now"',
            '-H "webhook-signature: v1,$signature"',
        ]
    text = shlex.quote(signing.content)
    for name, variable in (("{body}", "body"), ("{timestamp}", "now")):
        text = text.replace(name, f"'\"${variable}\"'")
    shown = "base64" if signing.encoding == "base64" else _HEX
    digest = f'openssl dgst -sha256 -hmac "$WEBHOOK_SECRET" -binary | {shown}'
    before = ["now=$(date +%s)", f"signature=$(printf %s {text} | {digest})"]
    value, timestamp = "$signature", signing.timestamp_header
    if timestamp is not None and timestamp.lower() == (signing.header or "").lower():
        return before, [f'-H "{signing.header}: t=$now,v1={value}"']
    times = [] if timestamp is None else [f'-H "{timestamp}: $now"']
    return before, [*times, f'-H "{signing.header}: {value}"']


_HEX = "od -An -v -tx1 | tr -d ' \\n'"
_KEYED = 'openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary'
_STANDARD = (
    "now=$(date +%s)",
    'id="msg_$now"',
    f'key=$(printf %s "${{WEBHOOK_SECRET#whsec_}}" | base64 -d | {_HEX})',
    f'signature=$(printf %s "$id.$now.$body" | {_KEYED} | base64)',
)
