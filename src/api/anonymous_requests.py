"""Requests without an account: calls of webhooks, visits through share links, submitted forms.

The router of webhooks calls `called_webhook`, `delivery_of` and `answer`.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import cast

from starlette.background import BackgroundTask
from starlette.responses import Response

from api.kernel.awaited_work import Wait
from api.kernel.browsers import refuse_subresource
from api.kernel.operation import refuse_as_json
from api.kernel.request import ApiRequest
from api.kernel.responses import Data
from models.automation.automation_runs.calls import run_answer
from models.automation.automation_runs.rules import RunStatus
from models.automation.automation_runs.run_header import automation_actor
from models.automation.webhooks import commands as webhooks
from models.automation.webhooks.rules import Delivery
from models.core.access.rules import Principal, PrincipalType
from models.core.base import Id, JsonObject
from models.data.forms.commands import Quota, Submitter
from models.workspace.share_links.visitors import Visitor, VisitRequest, admit
from runtime import errors
from runtime.database import UnitOfWork
from runtime.ids import parse_id

_SECURITY_HEADERS = {
    # An automation may answer HTML; it must not act as a page of this origin.
    "Content-Security-Policy": "sandbox allow-forms allow-popups allow-scripts",
}
_WITHOUT_BODY = frozenset({204, 205, 304})


async def called_webhook(request: ApiRequest) -> webhooks.Hook:
    """The webhook of the path; it becomes the actor of the request.

    Raises NoSubresourceError, TooOftenError and NotFoundError.
    """
    refuse_subresource(request.headers)
    token = request.path_params["webhookToken"]
    request.quota = request.services.limits.webhooks.take(token)
    # Beside the transaction: planned once, where connections for single statements are.
    async with request.services.database.statement() as work:
        hook = await webhooks.find_hook(work, token)
    if not isinstance(hook, webhooks.Hook):
        refusal = errors.NotFoundError("webhook")
        if hook is not None:
            await _keep_refused(request, hook, refusal)
        raise refusal
    automation_id = hook.automation_id
    request.caller = Principal(type=PrincipalType.WEBHOOK, id=automation_id, user_id=automation_id)
    request.enter(automation_actor(hook.workspace_id, automation_id))
    return hook


@asynccontextmanager
async def refusals_kept(request: ApiRequest, hook: webhooks.Hook) -> AsyncIterator[None]:
    """Keep the call in the inbox when the block refuses it: its transaction is undone."""
    try:
        yield
    except errors.PlatformError as refusal:
        await _keep_refused(request, hook, refusal)
        raise


def refuse_call(request: ApiRequest, refusal: errors.PlatformError) -> Response:
    """The refusal as clients of the API read it; a call that was too large is kept after it.

    Its body was never read, so that it has not reached its webhook.
    """
    response = refuse_as_json(request, refusal)
    if isinstance(refusal, errors.PayloadTooLargeError) and "webhookToken" in request.path_params:
        response.background = BackgroundTask(_keep_too_large, request, refusal)
    return response


async def _keep_too_large(request: ApiRequest, refusal: errors.PayloadTooLargeError) -> None:
    with suppress(errors.PlatformError):
        hook = await called_webhook(request)
        await _keep_refused(request, hook, refusal)


async def _keep_refused(
    request: ApiRequest, hook: webhooks.Hook | webhooks.Closed, refusal: errors.PlatformError
) -> None:
    services = request.services
    async with services.database.statement() as work:
        await webhooks.keep_refused(work, services.keys, hook, delivery_of(request), refusal)


def delivery_of(request: ApiRequest) -> Delivery:
    """The request as it arrived."""
    headers = [
        (name.decode("latin-1").lower(), value.decode("latin-1"))
        for name, value in request.scope["headers"]
    ]
    return Delivery(request.method, headers, request.scope["query_string"], request.raw_body)


def answer(
    request: ApiRequest, hook: webhooks.Hook, receipt: webhooks.WebhookReceiptBody, wait: Wait
) -> Data[webhooks.WebhookReceiptBody]:
    """The receipt at once, or the answer of the run when it is there, for which `wait` has begun.

    Both are responses. The declared type is what the OpenAPI document says of them.
    """
    if hook.trigger.respond == "immediate" or receipt.run_id is None:
        return cast("Data[webhooks.WebhookReceiptBody]", _receipt(receipt))
    wait.turn_to(receipt.run_id)
    poll = partial(_poll, hook, receipt)
    response = request.deferred(
        poll,
        within=hook.trigger.wait_seconds,
        of=wait,
        is_fresh=not receipt.duplicate,
    )
    return cast("Data[webhooks.WebhookReceiptBody]", response)


async def _poll(
    hook: webhooks.Hook, receipt: webhooks.WebhookReceiptBody, work: UnitOfWork, last: bool
) -> Response | None:
    """The answer of the respond node, else the output of the run; after the time the receipt.

    Raises RunWithoutAnswerError.
    """
    assert receipt.run_id is not None, "there is a run to wait for"
    outcome = await run_answer(work, hook.workspace_id, receipt.run_id)
    if outcome is None:
        return _receipt(receipt)
    if outcome.response is not None:
        return _node_response(outcome.response)
    if outcome.status is RunStatus.SUCCEEDED:
        return _json({"data": outcome.output})
    if outcome.ended:
        raise webhooks.RunWithoutAnswerError(receipt.run_id)
    return _receipt(receipt.model_copy(update={"status": outcome.status})) if last else None


def _receipt(receipt: webhooks.WebhookReceiptBody) -> Response:
    body = {"data": receipt.model_dump(mode="json", by_alias=True)}
    return _json(body, 200 if receipt.duplicate else 202)


def _json(body: object, status: int = 200) -> Response:
    content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    return Response(content, status, media_type="application/json")


def _node_response(response: JsonObject) -> Response:
    """The response of the respond node: text as it is, other values as JSON, null as no body."""
    status, body = response["status"], response["body"]
    if body is None or status in _WITHOUT_BODY:
        answered = Response(status_code=status)
    elif isinstance(body, str):
        answered = Response(body, status, media_type="text/plain")
    else:
        answered = _json(body, status)
    answered.headers.update({**response["headers"], **_SECURITY_HEADERS})
    return answered


TOKEN_HEADER = "X-Share-Token"  # noqa: S105  # a name, not a secret
SESSION_HEADER = "X-Share-Session"

_PURPOSES = (b"sec-purpose", b"purpose", b"x-purpose", b"x-moz")
_PREFETCH = (b"prefetch", b"prerender", b"preview")


async def admit_visitor(request: ApiRequest, token: str | None, session: str | None) -> Visitor:
    """Admit the caller by the headers, or else by the query; the request log names the link.

    All visitors of a link share its rate limit, and all of an address have one of their own. Raises
    what `admit` raises, TooOftenError, and ValidationError for a header sent twice.
    """
    visit = VisitRequest(
        token=_header(request, TOKEN_HEADER) or token,
        session=_header(request, SESSION_HEADER) or session,
        prefetch=any(
            word in value.lower()
            for name in _PURPOSES
            for value in request.headers_named(name)
            for word in _PREFETCH
        ),
    )
    link_id = parse_id(request.path_params["shareLinkId"])
    request.services.limits.take_visit(request.scope)
    visitor = await admit(request.work, request.services.keys, link_id, visit)
    request.caller = visitor.actor.principal
    request.quota = request.services.limits.take(link_id, starts_run=False)
    request.enter(visitor.actor)
    return visitor


def _header(request: ApiRequest, name: str) -> str | None:
    values = request.headers_named(name.lower().encode())
    if len(values) > 1:
        raise errors.ValidationError.at(name, "Send the header only once.")
    return values[0].decode("latin-1") if values else None


def submitter_of(request: ApiRequest, item_id: Id | None) -> Submitter:
    """Count a submission of a public form in this process, and say who sends it to count in all.

    Raises TooOftenError.
    """
    services = request.services
    address = services.limits.take_submission(item_id, request.scope)
    settings = services.settings
    return Submitter(
        services.keys.digest(f"form {item_id} {address}".encode()),
        Quota.of(settings.rate_limit_form_address, settings.rate_limit_form_address_burst),
        Quota.of(settings.rate_limit_form, settings.rate_limit_form_burst),
    )
