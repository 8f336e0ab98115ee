"""Webhooks: called by anybody who knows their path, their secret changed by editors."""

from typing import Any

from api.kernel.browsers import NoSubresourceError
from api.kernel.rate_limits import TooOftenError
from api.kernel.routing import Access, ApiRequest, Data, Router
from api.routers.automation.automations import AUTOMATION, WRITE
from api.webhook_requests import answer, called_webhook, delivery_of
from models.automation.automations import queries, webhook_secrets
from models.automation.automations.shapes import AutomationDetail
from models.automation.webhooks import commands
from models.automation.webhooks.errors import UnverifiedError, WrongMethodError
from models.automation.webhooks.shapes import WebhookReceiptBody
from models.core.expressions.rules.errors import BindingError, ExpressionLimitError

router = Router(tags=["webhooks"])

HOOK = "/v1/hooks/{webhookToken}"

_CALLED: dict[str, Any] = {
    "access": Access(credential="none", writes=True, raw=True),
    "errors": [
        *(UnverifiedError, WrongMethodError, TooOftenError, NoSubresourceError),
        *(BindingError, ExpressionLimitError),
    ],
    "status_code": 202,
    "statuses": [200],
}


@router.post(f"{AUTOMATION}/rotate-webhook-secret", access=WRITE)
async def rotate_webhook_secret(request: ApiRequest) -> Data[AutomationDetail]:
    """Give an automation's webhook a new secret; the one it had is good for 24 hours more."""
    automation_id, keys = request.ids["automationId"], request.services.keys
    await webhook_secrets.rotate_webhook_secret(request.work, request.actor, keys, automation_id)
    return Data(await queries.detail(request.work, request.actor, keys, automation_id))


@router.post(HOOK, **_CALLED)
async def call_webhook(request: ApiRequest) -> Data[WebhookReceiptBody]:
    """Call a webhook.

    Its trigger says which methods it takes and how a call is verified: by Standard Webhooks unless
    it says otherwise. A call that was made before answers 200 and names the run it started then.
    With `respond: wait` the answer is that of the run: of its respond node, else its output; after
    30 seconds it is 202 all the same.
    """
    hook = await called_webhook(request)
    receipt = await commands.receive(
        request.work, request.services.keys, hook, delivery_of(request)
    )
    return answer(request, hook, receipt)


@router.get(HOOK, **_CALLED)
async def call_webhook_by_get(request: ApiRequest) -> Data[WebhookReceiptBody]:
    """Call a webhook with GET, of which the query is the payload."""
    return await call_webhook(request)


@router.put(HOOK, **_CALLED)
async def call_webhook_by_put(request: ApiRequest) -> Data[WebhookReceiptBody]:
    """Call a webhook with PUT."""
    return await call_webhook(request)


@router.patch(HOOK, **_CALLED)
async def call_webhook_by_patch(request: ApiRequest) -> Data[WebhookReceiptBody]:
    """Call a webhook with PATCH."""
    return await call_webhook(request)


@router.delete(HOOK, **_CALLED)
async def call_webhook_by_delete(request: ApiRequest) -> Data[WebhookReceiptBody]:
    """Call a webhook with DELETE."""
    return await call_webhook(request)
