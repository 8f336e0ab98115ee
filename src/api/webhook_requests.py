"""HTTP around webhooks: a request as a delivery, and the answer of a run as a response.

The router of webhooks calls it.
"""

import json
from functools import partial
from typing import cast

from starlette.responses import Response

from api.kernel.browsers import refuse_subresource
from api.kernel.request import ApiRequest
from api.kernel.responses import Data
from models.automation.automation_runs.answers import run_answer
from models.automation.automation_runs.rules import RunStatus
from models.automation.automation_runs.run_header import automation_actor
from models.automation.webhooks.errors import RunWithoutAnswerError
from models.automation.webhooks.queries import Hook, find_hook
from models.automation.webhooks.rules.delivery import Delivery
from models.automation.webhooks.shapes import WebhookReceiptBody
from models.core.access.rules import Principal, PrincipalType
from models.core.base import JsonObject
from runtime.database import UnitOfWork

_SECURITY_HEADERS = {
    # An automation may answer HTML; it must not act as a page of this origin.
    "Content-Security-Policy": "sandbox allow-forms allow-popups allow-scripts",
}
_WITHOUT_BODY = frozenset({204, 205, 304})


async def called_webhook(request: ApiRequest) -> Hook:
    """The webhook of the path; it becomes the actor of the request.

    Raises NoSubresourceError, TooOftenError and NotFoundError.
    """
    refuse_subresource(request.headers)
    token = request.path_params["webhookToken"]
    request.quota = request.services.limits.webhooks.take(token)
    # Beside the transaction: planned once, where connections for single statements are.
    async with request.services.database.statement() as work:
        hook = await find_hook(work, token)
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


def answer(
    request: ApiRequest, hook: Hook, receipt: WebhookReceiptBody
) -> Data[WebhookReceiptBody]:
    """The receipt at once, or the answer of the run when it is there.

    Both are responses. The declared type is what the OpenAPI document says of them.
    """
    if hook.trigger.respond == "immediate" or receipt.run_id is None:
        return cast("Data[WebhookReceiptBody]", _receipt(receipt))
    poll = partial(_poll, hook, receipt)
    response = request.deferred(
        poll,
        within=hook.trigger.wait_seconds,
        of=receipt.run_id,
        is_fresh=not receipt.duplicate,
    )
    return cast("Data[WebhookReceiptBody]", response)


async def _poll(
    hook: Hook, receipt: WebhookReceiptBody, work: UnitOfWork, last: bool
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
        raise RunWithoutAnswerError(receipt.run_id)
    return _receipt(receipt.model_copy(update={"status": outcome.status})) if last else None


def _receipt(receipt: WebhookReceiptBody) -> Response:
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
