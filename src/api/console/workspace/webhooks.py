"""Webhook endpoints of a workspace: listed, made, changed, and what was delivered to one."""

import json
from collections.abc import Mapping

from starlette.responses import Response

from api.console.entered import BLANK, Entered, Fields, read_as, redisplays
from api.console.rendering import see_other
from api.console.resource_pages import act
from api.console.routing import page_router
from api.console.workspace import settings
from api.kernel.routing import ApiRequest, Cursor
from api.routers.messages import workspace_events as api
from models.core.access.rules import Scope
from models.core.pagination import DEFAULT_LIMIT
from models.messages.deliveries.rules import DeliveryStatus
from models.messages.webhook_endpoints import store
from models.messages.workspace_events.rules import EventType

router = page_router()

ENDPOINTS = f"{settings.SETTINGS}/webhooks"
ENDPOINT = f"{ENDPOINTS}/{{endpointId}}"
READ_ONE = settings.reads(Scope.WEBHOOKS_READ, resource="endpoint")
EDIT_ONE = settings.reads(Scope.WEBHOOKS_WRITE, resource="endpoint")
WRITE = settings.changes(Scope.WEBHOOKS_WRITE, resource="endpoint")


@router.get(ENDPOINTS, access=settings.reads(Scope.WEBHOOKS_READ))
async def get_webhook_endpoints(
    request: ApiRequest, cursor: Cursor = None, notice: settings.Notice | None = None
) -> Response:
    """Look through the endpoints of a workspace."""
    wanted = request.page("webhook endpoints", DEFAULT_LIMIT, cursor)
    listed = await store.list_endpoints(request.work, request.actor, wanted)
    return await settings.settings_page(
        request,
        "settings_webhooks.html",
        "webhooks",
        api.list_webhook_endpoints,
        api.create_webhook_endpoint,
        notice=notice,
        endpoints=listed.endpoints,
        cursor=cursor,
        next=listed.cursor,
    )


@router.get(f"{ENDPOINTS}/new", access=settings.reads(Scope.WEBHOOKS_WRITE))
async def get_new_webhook_endpoint(request: ApiRequest) -> Response:
    """Choose what a new endpoint is told."""
    return await _form(request, BLANK)


async def _form(request: ApiRequest, entered: Entered) -> Response:
    endpoint = await _endpoint(request) if "endpointId" in request.ids else None
    nouns: dict[str, list[EventType]] = {}
    for event_type in EventType:
        nouns.setdefault(event_type.partition(".")[0], []).append(event_type)
    return await settings.settings_page(
        request,
        "settings_webhook_form.html",
        "webhooks",
        api.update_webhook_endpoint if endpoint else api.create_webhook_endpoint,
        entered=entered,
        endpoint=endpoint,
        nouns=nouns,
        told=frozenset() if endpoint is None else frozenset(endpoint.event_types),
    )


@router.post(ENDPOINTS, access=settings.changes(Scope.WEBHOOKS_WRITE))
@redisplays(_form)
async def create_webhook_endpoint_by_form(request: ApiRequest, body: Fields) -> Response:
    """Create an endpoint, and show its secret this once."""
    endpoint = read_as(store.CreateWebhookEndpoint, _values(body))
    outcome = await store.create_endpoint(
        request.work, request.actor, request.services.keys, endpoint
    )
    return await _secret(request, outcome)


@router.get(f"{ENDPOINT}/edit", access=EDIT_ONE)
async def get_webhook_endpoint_form(request: ApiRequest) -> Response:
    """Look at what an endpoint is told, to change it."""
    return await _form(request, BLANK)


@router.post(ENDPOINT, access=WRITE)
@redisplays(_form)
async def change_webhook_endpoint(request: ApiRequest, body: Fields) -> Response:
    """Change the address, the description or the events of an endpoint."""
    endpoint = await _update(request, _values(body))
    return settings.led_to(request, "webhooks", endpoint.id, notice=settings.Notice.SAVED)


act(
    router,
    f"{ENDPOINT}/enable",
    api.update_webhook_endpoint,
    name="enable_webhook_endpoint",
    body={"enabled": True},
    notice=settings.Notice.SAVED,
    then=ENDPOINT,
)


act(
    router,
    f"{ENDPOINT}/disable",
    api.update_webhook_endpoint,
    name="disable_webhook_endpoint",
    body={"enabled": False},
    notice=settings.Notice.SAVED,
    then=ENDPOINT,
)


@router.post(f"{ENDPOINT}/rotate-secret", access=WRITE)
async def rotate_endpoint_secret_by_form(request: ApiRequest) -> Response:
    """Give an endpoint a new secret, and show it this once."""
    keys, endpoint_id = request.services.keys, request.ids["endpointId"]
    return await _secret(
        request, await store.rotate_secret(request.work, request.actor, keys, endpoint_id)
    )


act(
    router,
    f"{ENDPOINT}/delete",
    api.delete_webhook_endpoint,
    notice=settings.Notice.REMOVED,
    then=ENDPOINTS,
)


@router.get(f"{ENDPOINT}/rotate-secret", access=READ_ONE)
async def get_rotated_secret(request: ApiRequest) -> Response:
    """Lead to the endpoint, whose secret is not shown again."""
    return see_other(settings.settings_path(request, "webhooks", request.ids["endpointId"]))


def _values(body: Fields) -> dict[str, object]:
    texts = body.texts
    return {
        "url": texts.get("url", ""),
        "description": texts.get("description"),
        "eventTypes": body.checked("event"),
    }


async def _update(request: ApiRequest, values: object) -> store.WebhookEndpointBody:
    endpoint_id = request.ids["endpointId"]
    change = read_as(store.UpdateWebhookEndpoint, values)
    return await store.update_endpoint(request.work, request.actor, endpoint_id, change)


async def _endpoint(request: ApiRequest) -> store.WebhookEndpointBody:
    return await store.get_endpoint(request.work, request.actor, request.ids["endpointId"])


async def _secret(request: ApiRequest, issued: store.IssuedWebhookEndpoint) -> Response:
    return await settings.settings_page(
        request, "settings_webhook_secret.html", "webhooks", endpoint=issued, secret=issued.secret
    )


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
    notice: settings.Notice | None = None,
) -> Response:
    """Look at an endpoint, and at what goes and went to it."""
    endpoint_id = request.ids["endpointId"]
    endpoint = await store.get_endpoint(request.work, request.actor, endpoint_id)
    wanted = request.page("webhook deliveries", DEFAULT_LIMIT, cursor, endpoint_id, status)
    listed = await store.list_deliveries(request.work, request.actor, endpoint_id, wanted, status)
    return await settings.settings_page(
        request,
        "settings_webhook.html",
        "webhooks",
        api.get_webhook_endpoint,
        (api.update_webhook_endpoint, {"enabled": not endpoint.enabled}),
        api.test_webhook_endpoint,
        api.rotate_webhook_endpoint_secret,
        (api.list_webhook_deliveries, {"status": status}),
        api.redeliver_webhook,
        api.delete_webhook_endpoint,
        notice=notice,
        endpoint=endpoint,
        deliveries=[
            (one, json.dumps(one.payload, indent=2, ensure_ascii=False))
            for one in listed.deliveries
        ],
        status=status,
        statuses=list(DeliveryStatus),
        signs=SIGNS,
        cursor=cursor,
        next=listed.cursor,
    )


act(
    router,
    f"{ENDPOINT}/test",
    api.test_webhook_endpoint,
    notice=settings.Notice.SENT,
    then=ENDPOINT,
)


act(
    router,
    f"{ENDPOINT}/deliveries/{{deliveryId}}/redeliver",
    api.redeliver_webhook,
    notice=settings.Notice.SENT,
    then=ENDPOINT,
)
