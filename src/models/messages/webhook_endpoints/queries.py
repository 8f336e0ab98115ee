"""Reading webhook endpoints and what was delivered to them."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from sqlalchemy import Select, select

from models.core.access.queries import WorkspaceOf
from models.core.access.rules import MANAGERS, Actor, Scope
from models.core.base import Id
from models.core.credentials import hidden_url
from models.core.pagination import PageRequest
from models.messages.deliveries.rules import DeliveryChannel, DeliveryStatus
from models.messages.deliveries.tables import Delivery, delivery
from models.messages.webhook_endpoints.rules import secret_place
from models.messages.webhook_endpoints.shapes import (
    WebhookDeliveryBody,
    WebhookDeliveryList,
    WebhookEndpointBody,
    WebhookEndpointList,
)
from models.messages.webhook_endpoints.tables import WebhookEndpoint, webhook_endpoint
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError

_endpoint = webhook_endpoint.c

visible = WorkspaceOf(webhook_endpoint.c.id)
"""Where an endpoint is, if it is in one of the workspaces that are asked for."""


async def find_endpoint(work: UnitOfWork, workspace_id: Id, endpoint_id: Id) -> WebhookEndpoint:
    """An endpoint of a workspace. Raises NotFoundError."""
    row = await existing_endpoint(work, workspace_id, endpoint_id)
    if row is None:
        raise NotFoundError("endpoint")
    return row


async def existing_endpoint(
    work: UnitOfWork, workspace_id: Id, endpoint_id: Id
) -> WebhookEndpoint | None:
    """An endpoint of a workspace, even one that is disabled; None for one that is gone."""
    this = select(webhook_endpoint).where(
        _endpoint.workspace_id == workspace_id, _endpoint.id == endpoint_id
    )
    return await work.first(this, of=WebhookEndpoint)


async def sees_endpoint(work: UnitOfWork, actor: Actor, endpoint_id: Id) -> bool:
    """Whether an actor may read an endpoint, and so name it."""
    if Scope.WEBHOOKS_READ not in actor.scopes:
        return False
    return await existing_endpoint(work, actor.workspace_id, endpoint_id) is not None


def existing_endpoints(workspace_id: Id, endpoint_ids: Collection[Id]) -> Select[Id]:
    """The ids of those of these endpoints that there are."""
    return endpoints_of(workspace_id).where(_endpoint.id.in_(endpoint_ids))


async def get_endpoint(work: UnitOfWork, actor: Actor, endpoint_id: Id) -> WebhookEndpointBody:
    """One endpoint, without its secret. Raises NotFoundError."""
    return endpoint_body(await find_endpoint(work, actor.workspace_id, endpoint_id), actor)


def endpoint_body(row: WebhookEndpoint, actor: Actor) -> WebhookEndpointBody:
    """An endpoint; what its URL has of credentials is for those who may change it."""
    body = WebhookEndpointBody.model_validate(row)
    if Scope.WEBHOOKS_WRITE not in actor.scopes:
        body.url = hidden_url(row.url)
    return body


async def list_endpoints(work: UnitOfWork, actor: Actor, page: PageRequest) -> WebhookEndpointList:
    """The endpoints of a workspace, newest first, without their secrets."""
    own = select(webhook_endpoint).where(_endpoint.workspace_id == actor.workspace_id)
    newest = (_endpoint.created_at, _endpoint.id)
    shown = await page.descending(work, own, *newest, of=WebhookEndpoint)
    return WebhookEndpointList(
        endpoints=[endpoint_body(row, actor) for row in shown.items],
        cursor=shown.cursor,
    )


async def list_deliveries(
    work: UnitOfWork,
    actor: Actor,
    endpoint_id: Id,
    page: PageRequest,
    status: DeliveryStatus | None = None,
) -> WebhookDeliveryList:
    """What goes and went to an endpoint, newest first."""
    sent = select(delivery).where(
        delivery.c.workspace_id == actor.workspace_id,
        delivery.c.target_id == endpoint_id,
        delivery.c.channel == DeliveryChannel.WEBHOOK,
    )
    if status is not None:
        sent = sent.where(delivery.c.status == status)
    newest = (delivery.c.created_at, delivery.c.id)
    shown = await page.descending(work, sent, *newest, of=Delivery)
    return WebhookDeliveryList(
        deliveries=[delivery_body(row, actor) for row in shown.items], cursor=shown.cursor
    )


async def find_delivery(
    work: UnitOfWork, workspace_id: Id, endpoint_id: Id, delivery_id: Id
) -> Delivery:
    """A delivery to an endpoint. Raises NotFoundError."""
    this = select(delivery).where(
        delivery.c.workspace_id == workspace_id,
        delivery.c.target_id == endpoint_id,
        delivery.c.channel == DeliveryChannel.WEBHOOK,
        delivery.c.id == delivery_id,
    )
    row = await work.first(this, of=Delivery)
    if row is None:
        raise NotFoundError("delivery")
    return row


def delivery_body(row: Delivery, actor: Actor) -> WebhookDeliveryBody:
    """A delivery as the wire shows it.

    An endpoint is told of what is hidden from some: what it was told is for those who see all.
    """
    payload = row.input
    if actor.role not in MANAGERS:
        payload = {"type": payload["type"], "timestamp": payload["timestamp"]}
    return WebhookDeliveryBody(
        id=row.id,
        endpoint_id=row.target_id,
        event_id=row.subject_id,
        event_type=row.input["type"],
        status=DeliveryStatus(row.status),
        attempts=row.attempts,
        next_attempt_at=row.next_attempt_at,
        answer_status=row.answer_status,
        error=row.error,
        error_code=row.error_code,
        payload=payload,
        created_at=row.created_at,
        completed_at=row.completed_at,
    )


def secrets_of(keys: KeyRing, row: WebhookEndpoint, now: datetime) -> list[bytes]:
    """What calls are signed with: the secret, and the one before it while that is still good."""
    place = secret_place(row.id)
    secrets = [keys.unseal(row.sealed_secret, place)]
    until = row.previous_secret_until
    if row.sealed_previous_secret is not None and until is not None and now < until:
        secrets.append(keys.unseal(row.sealed_previous_secret, place))
    return secrets


def endpoints_of(workspace_id: Id) -> Select[Any]:
    """The ids of the endpoints of a workspace."""
    return select(_endpoint.id).where(_endpoint.workspace_id == workspace_id)


def deliveries_since(workspace_id: Id, since: datetime) -> Select[Any]:
    """The ids of the deliveries to endpoints of a workspace since a moment."""
    return select(delivery.c.id).where(
        delivery.c.workspace_id == workspace_id,
        delivery.c.channel == DeliveryChannel.WEBHOOK,
        delivery.c.created_at >= since,
    )
