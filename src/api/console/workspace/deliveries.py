"""The page of one webhook endpoint: its circuit, and what was delivered to it."""

import json
from collections.abc import Mapping

from starlette.responses import Response

from api.console.routing import page_router
from api.console.workspace.settings import Notice, led_to, settings_page, turning
from api.console.workspace.webhooks import ENDPOINT, READ_ONE, WRITE
from api.kernel.routing import ApiRequest, Cursor
from models.core.pagination import DEFAULT_LIMIT
from models.messages.deliveries.rules import DeliveryStatus
from models.messages.webhook_endpoints import commands, queries

router = page_router()

SIGNS: Mapping[DeliveryStatus, str] = {
    DeliveryStatus.PENDING: "waiting",
    DeliveryStatus.DELIVERED: "succeeded",
    DeliveryStatus.UNDELIVERABLE: "skipped",
    DeliveryStatus.FAILED: "failed",
    DeliveryStatus.CANCELLED: "cancelled",
}
"""The sign by which each state is shown."""


@router.get(ENDPOINT, access=READ_ONE)
async def get_webhook_endpoint_page(
    request: ApiRequest,
    cursor: Cursor = None,
    status: DeliveryStatus | None = None,
    notice: Notice | None = None,
) -> Response:
    """Look at an endpoint, and at what goes and went to it."""
    endpoint_id = request.ids["endpointId"]
    endpoint = await queries.get_endpoint(request.work, request.actor, endpoint_id)
    wanted = request.page("webhook deliveries", DEFAULT_LIMIT, cursor, endpoint_id, status)
    listed = await queries.list_deliveries(request.work, request.actor, endpoint_id, wanted, status)
    return await settings_page(
        request,
        "settings_webhook.html",
        "webhooks",
        notice=notice,
        endpoint=endpoint,
        deliveries=[
            (one, json.dumps(one.payload, indent=2, ensure_ascii=False))
            for one in listed.deliveries
        ],
        status=status,
        statuses=list(DeliveryStatus),
        signs=SIGNS,
        turning=turning(request, cursor, listed.cursor, status=status),
    )


@router.post(f"{ENDPOINT}/test", access=WRITE)
async def test_webhook_endpoint_by_form(request: ApiRequest) -> Response:
    """Send an endpoint a test."""
    endpoint_id = request.ids["endpointId"]
    await commands.send_test(request.work, request.actor, request.new_id, endpoint_id)
    return led_to(request, "webhooks", endpoint_id, notice=Notice.SENT)


@router.post(f"{ENDPOINT}/deliveries/{{deliveryId}}/redeliver", access=WRITE)
async def redeliver_by_form(request: ApiRequest) -> Response:
    """Deliver an event to an endpoint once more."""
    endpoint_id, delivery_id = request.ids["endpointId"], request.ids["deliveryId"]
    await commands.redeliver(request.work, request.actor, request.new_id, endpoint_id, delivery_id)
    return led_to(request, "webhooks", endpoint_id, notice=Notice.SENT)
