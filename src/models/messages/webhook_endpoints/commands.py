"""Making and changing webhook endpoints, and sending to them once more."""

import os

from models.core.access.rules import Actor
from models.core.base import Deleted, Id, JsonObject
from models.core.http_requests import GIVE_AGAIN, restored_url
from models.messages.deliveries import commands as delivery_commands
from models.messages.deliveries.lines import forget_line, try_now
from models.messages.deliveries.rules import DeliveryChannel, DeliveryStatus
from models.messages.webhook_endpoints import queries, rules
from models.messages.webhook_signing import SECRET_BYTES, secret_text
from models.messages.workspace_events.log import head
from runtime.clock import wire_timestamp
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork, columns_of
from runtime.errors import ConflictError, ValidationError
from runtime.ids import new_id

_endpoint = queries.webhook_endpoint.c


async def create_endpoint(
    work: UnitOfWork, actor: Actor, keys: KeyRing, body: queries.CreateWebhookEndpoint
) -> queries.IssuedWebhookEndpoint:
    """An endpoint that is told of what happens from now on, with its secret.

    Raises ConflictError when there are too many.
    """
    endpoint_id, secret = new_id(), os.urandom(SECRET_BYTES)
    values = {
        "url": body.url,
        "description": body.description,
        "event_types": [kind.value for kind in dict.fromkeys(body.event_types)],
        "enabled": body.enabled,
        "disabled_at": None if body.enabled else work.now,
        "disabled_reason": None if body.enabled else rules.DisabledReason.MANUAL.value,
        "sealed_secret": keys.seal(secret, rules.secret_place(endpoint_id)),
        "log_position": await head(work, actor.workspace_id),
        "created_by_user_id": actor.user_id,
    }
    return await _issued(
        work, await queries.ENDPOINTS.add(work, actor, endpoint_id, values), secret
    )


async def update_endpoint(
    work: UnitOfWork, actor: Actor, endpoint_id: Id, body: queries.UpdateWebhookEndpoint
) -> queries.WebhookEndpointBody:
    """Change what the body names.

    Raises NotFoundError, and ValidationError for a URL whose credentials are hidden.
    """
    before = await queries.ENDPOINTS.find(work, actor, endpoint_id)
    given = body.model_dump(exclude_unset=True)
    values: JsonObject = {
        name: value for name, value in given.items() if value is not None or name == "description"
    }
    if body.url is not None:
        values["url"] = restored_url(body.url, before.url)
        if values["url"] is None:
            raise ValidationError.at("url", GIVE_AGAIN)
    if body.enabled is True and not before.enabled:
        values |= {"disabled_at": None, "disabled_reason": None, "failing_since": None}
        values["log_position"] = await head(work, actor.workspace_id)
    if body.enabled is False and before.enabled:
        values |= {"disabled_at": work.now, "disabled_reason": rules.DisabledReason.MANUAL.value}
    row = await queries.ENDPOINTS.change(work, actor, endpoint_id, values)
    place = (actor.workspace_id, DeliveryChannel.WEBHOOK, endpoint_id)
    if before.enabled and not row.enabled:
        await delivery_commands.give_up_waiting(work, *place, rules.DISABLED)
    if row.url != before.url or (row.enabled and not before.enabled):
        await forget_line(work, *place)
    return await queries.with_circuit(work, row, actor)


async def rotate_secret(
    work: UnitOfWork, actor: Actor, keys: KeyRing, endpoint_id: Id
) -> queries.IssuedWebhookEndpoint:
    """Give an endpoint a new secret; the old one signs too for `OVERLAP`. Raises NotFoundError."""
    secret = os.urandom(SECRET_BYTES)
    values: JsonObject = {
        "sealed_previous_secret": _endpoint.sealed_secret,
        "previous_secret_until": work.now + rules.OVERLAP,
        "sealed_secret": keys.seal(secret, rules.secret_place(endpoint_id)),
    }
    row = await queries.ENDPOINTS.change(work, actor, endpoint_id, values)
    return await _issued(work, row, secret)


async def delete_endpoint(work: UnitOfWork, actor: Actor, endpoint_id: Id) -> Deleted:
    """Delete an endpoint; what is on its way to it is cancelled. Raises NotFoundError."""
    # The deliveries first, as an attempt holds its own when it writes to the endpoint. One that is
    # made meanwhile finds no endpoint.
    await delivery_commands.cancel_all_to(work, actor.workspace_id, endpoint_id)
    deleted = await queries.ENDPOINTS.delete(work, actor, endpoint_id)
    await forget_line(work, actor.workspace_id, DeliveryChannel.WEBHOOK, endpoint_id)
    return deleted


async def send_test(
    work: UnitOfWork, actor: Actor, event_id: Id, endpoint_id: Id
) -> queries.WebhookDeliveryBody:
    """Send an event that says nothing. Raises NotFoundError, ConflictError when it is disabled."""
    row = await _enabled(work, actor, endpoint_id)
    payload = {"type": rules.TEST, "timestamp": wire_timestamp(work.now), "data": {}}
    return await _send(work, actor, row.id, event_id, payload)


async def redeliver(
    work: UnitOfWork, actor: Actor, key: Id, endpoint_id: Id, delivery_id: Id
) -> queries.WebhookDeliveryBody:
    """Deliver an event once more, under the same `webhook-id`.

    Raises NotFoundError, and ConflictError while it is being delivered or the endpoint is disabled.
    """
    row = await _enabled(work, actor, endpoint_id)
    earlier = await queries.find_delivery(work, actor.workspace_id, endpoint_id, delivery_id)
    if earlier.status == DeliveryStatus.PENDING:
        raise ConflictError("The event is still being delivered.")
    return await _send(work, actor, row.id, earlier.subject_id, earlier.input, str(key))


async def _send(
    work: UnitOfWork,
    actor: Actor,
    endpoint_id: Id,
    event_id: Id,
    payload: JsonObject,
    key: str = "",
) -> queries.WebhookDeliveryBody:
    new_delivery = delivery_commands.NewDelivery(
        workspace_id=actor.workspace_id,
        channel=DeliveryChannel.WEBHOOK,
        subject_id=event_id,
        target_id=endpoint_id,
        input=payload,
        key=key,
    )
    await delivery_commands.accept_deliveries(work, [new_delivery])
    await try_now(work, actor.workspace_id, DeliveryChannel.WEBHOOK, endpoint_id)
    made = await queries.find_delivery(work, actor.workspace_id, endpoint_id, new_delivery.id)
    return queries.delivery_body(made, actor)


async def _enabled(work: UnitOfWork, actor: Actor, endpoint_id: Id) -> queries.WebhookEndpoint:
    row = await queries.ENDPOINTS.find(work, actor, endpoint_id)
    if not row.enabled:
        raise ConflictError("The endpoint is disabled. Enable it first.")
    return row


async def _issued(
    work: UnitOfWork, row: queries.WebhookEndpoint, secret: bytes
) -> queries.IssuedWebhookEndpoint:
    circuits = await queries.endpoint_circuits(work, row.workspace_id, [row.id])
    shown = {**columns_of(row), "circuit": circuits[row.id], "secret": secret_text(secret)}
    return queries.IssuedWebhookEndpoint.model_validate(shown)
