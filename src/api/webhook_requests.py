"""Calls of webhooks: from a request to a delivery, and from a run to the answer."""

import json
from functools import partial
from typing import Any

from starlette.responses import Response

from api.kernel.request import ApiRequest
from models.automation.automation_runs.rules import RunStatus
from models.automation.automation_runs.run_header import automation_actor
from models.automation.webhooks.errors import RunWithoutAnswerError
from models.automation.webhooks.queries import Hook, find_hook, run_answer
from models.automation.webhooks.rules.delivery import Delivery
from models.automation.webhooks.shapes import WebhookReceiptBody
from models.core.access.rules import Principal, PrincipalType
from models.core.base import JsonObject
from runtime.database import UnitOfWork

_GUARDS = {
    "X-Content-Type-Options": "nosniff",
    # What an automation answers is a page of nobody's: it must not act in the name of this origin.
    "Content-Security-Policy": "sandbox allow-forms allow-popups allow-scripts",
}
_WITHOUT_BODY = frozenset({204, 205, 304})


async def called_webhook(request: ApiRequest) -> Hook:
    """The webhook that is called, by which the request log names the call.

    Raises TooOftenError and NotFoundError.
    """
    token = request.path_params["webhookToken"]
    request.services.webhook_limit.take(token)
    hook = await find_hook(request.work, token)
    automation_id = hook.automation_id
    request.caller = Principal(type=PrincipalType.WEBHOOK, id=automation_id, user_id=automation_id)
    request.enter(automation_actor(hook.workspace_id, automation_id))
    return hook


def delivery_of(request: ApiRequest) -> Delivery:
    """The request as it arrived."""
    headers = [
        (name.decode("latin-1").lower(), value.decode("latin-1"))
        for name, value in request.scope["headers"]
    ]
    return Delivery(request.method, headers, request.scope["query_string"], request.raw_body)


def answer(request: ApiRequest, hook: Hook, receipt: WebhookReceiptBody) -> Any:
    """The receipt at once, or what the run has to say once it says it."""
    if hook.trigger.respond == "immediate" or receipt.run_id is None:
        return _received(receipt)
    return request.deferred(partial(_poll, hook, receipt), within=hook.trigger.wait_seconds)


async def _poll(
    hook: Hook, receipt: WebhookReceiptBody, work: UnitOfWork, last: bool
) -> Response | None:
    """The answer of the respond node, else the output of the run; the receipt when time is over.

    Raises RunWithoutAnswerError.
    """
    assert receipt.run_id is not None, "there is a run to wait for"
    found = await run_answer(work, hook.workspace_id, receipt.run_id)
    if found is None:
        return _received(receipt)
    if found.response is not None:
        return _written(found.response)
    if found.status is RunStatus.SUCCEEDED:
        return _json({"data": found.output})
    if found.ended:
        raise RunWithoutAnswerError(receipt.run_id)
    return _received(receipt.model_copy(update={"status": found.status})) if last else None


def _received(receipt: WebhookReceiptBody) -> Response:
    body = {"data": receipt.model_dump(mode="json", by_alias=True)}
    return _json(body, 200 if receipt.duplicate else 202)


def _json(body: Any, status: int = 200) -> Response:
    content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    return Response(content, status, media_type="application/json")


def _written(response: JsonObject) -> Response:
    """What the respond node says: text as it is, any other value as JSON, null as no body."""
    status, body = response["status"], response["body"]
    if body is None or status in _WITHOUT_BODY:
        answered = Response(status_code=status)
    elif isinstance(body, str):
        answered = Response(body, status, media_type="text/plain")
    else:
        answered = _json(body, status)
    answered.headers.update({**response["headers"], **_GUARDS})
    return answered
