"""Webhook endpoints, whose secrets are stored sealed only: read, made, changed, sent to again."""

import os
from collections.abc import Collection, Mapping
from datetime import datetime
from functools import partial
from typing import Annotated, Any

import sqlalchemy as sa
from pydantic import Field
from sqlalchemy.dialects.postgresql import ARRAY
from sqlmodel import Field as TableField
from sqlmodel import SQLModel

from models.core.access.queries import WorkspaceOf
from models.core.access.rules import MANAGERS, Actor, Scope
from models.core.base import Deleted, Id, Input, JsonObject, Moment, Nullable, Shape, example
from models.core.http_requests import GIVE_AGAIN, CallableUrl, hidden_url, restored_url
from models.core.lifecycle.lost_workers import waiting_for_worker_since
from models.core.openapi import documented_as
from models.core.pagination import Listed, PageRequest
from models.core.repository import Bound, Repository
from models.messages.deliveries import commands as delivery_commands
from models.messages.deliveries.commands import DELIVERY, DeliveryRow, deliveries_by
from models.messages.deliveries.lines import CircuitBody, circuits_of, forget_line, try_now
from models.messages.deliveries.rules import OPEN_DELIVERY, DeliveryChannel, DeliveryStatus
from models.messages.webhook_endpoints import rules
from models.messages.webhook_signing import SECRET_BYTES, secret_text
from models.messages.workspace_events.log import head
from models.messages.workspace_events.rules import EventType
from runtime.clock import wire_timestamp
from runtime.crypto import KeyRing, sealed
from runtime.database import UnitOfWork, columns_of
from runtime.errors import ConflictError, ValidationError
from runtime.ids import new_id
from runtime.postgresql.schema import Timestamp, one_of, partial_index, table_of


class WebhookEndpoint(SQLModel, table=True):
    """A server that is told of events; without `event_types` of all of them.

    Events up to `log_position` have become deliveries. `failing_since` is the first failure after
    the last success.
    """

    __tablename__ = "webhook_endpoint"
    __table_args__ = (
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        sa.ForeignKeyConstraint(["created_by_user_id"], ["app_user.id"]),
        one_of("disabled_reason", rules.DisabledReason),
        sa.Index(
            "ix_webhook_endpoint_workspace_id_created_at_id", "workspace_id", "created_at", "id"
        ),
        partial_index("ix_webhook_endpoint_enabled", "workspace_id", where="enabled"),
    )

    id: Id = TableField(primary_key=True)
    workspace_id: Id
    url: str
    description: str | None = None
    event_types: list[str] = TableField(sa_type=ARRAY(sa.Text))
    enabled: bool
    disabled_at: datetime | None = TableField(default=None, sa_type=Timestamp)
    disabled_reason: str | None = None
    failing_since: datetime | None = TableField(default=None, sa_type=Timestamp)
    sealed_secret: bytes = TableField(
        sa_type=sa.LargeBinary, sa_column_kwargs=sealed(lambda row: rules.secret_place(row.id))
    )
    sealed_previous_secret: bytes | None = TableField(
        default=None,
        sa_type=sa.LargeBinary,
        sa_column_kwargs=sealed(lambda row: rules.secret_place(row.id)),
    )
    previous_secret_until: datetime | None = TableField(default=None, sa_type=Timestamp)
    log_position: int = TableField(sa_type=sa.BigInteger)
    created_by_user_id: Id
    created_at: datetime = TableField(sa_type=Timestamp)
    updated_at: datetime = TableField(sa_type=Timestamp)


webhook_endpoint = table_of(WebhookEndpoint)

ENDPOINTS = Repository(
    "endpoint",
    webhook_endpoint,
    WebhookEndpoint,
    limit=Bound(webhook_endpoint, 50, "endpoints"),
)


Description = Annotated[str, Field(max_length=1_000)]
EventTypes = Annotated[
    list[Annotated[EventType, Field(strict=False)]], Field(max_length=len(EventType))
]


class WebhookEndpointBody(Shape):
    """An endpoint without its secret.

    Without `eventTypes` it receives every event. Credentials in its URL are `[redacted]` for people
    who cannot change it.
    """

    id: Id
    workspace_id: Id
    url: str
    description: str | None
    event_types: list[EventType]
    enabled: bool
    disabled_at: Moment | None
    disabled_reason: rules.DisabledReason | None
    failing_since: Moment | None
    circuit: CircuitBody
    previous_secret_until: Moment | None
    created_by_user_id: Id
    created_at: Moment
    updated_at: Moment


class IssuedWebhookEndpoint(WebhookEndpointBody):
    """An endpoint with its new secret, which is shown in this answer only."""

    secret: str


class WebhookEndpointList(Listed):
    endpoints: list[WebhookEndpointBody]


class CreateWebhookEndpoint(Input):
    """A new endpoint. Calls are POSTs, signed by Standard Webhooks; redirects are not followed."""

    model_config = example(
        {"url": "https://hooks.example.com/workspace", "eventTypes": ["data_source.run"]}
    )

    url: CallableUrl
    description: Description | None = None
    event_types: EventTypes = Field(default_factory=list)
    enabled: bool = True


class UpdateWebhookEndpoint(Input):
    """Changes of an endpoint.

    Missing or null keys are not changed; a null `description` is removed. Once enabled again, it
    receives new events only.
    """

    model_config = example({"enabled": False})

    url: CallableUrl | None = None
    description: Description | None = None
    event_types: EventTypes | None = None
    enabled: bool | None = None


class WebhookDeliveryBody(Shape):
    """A delivery to an endpoint, with the response and error of the latest attempt.

    Pending without `nextAttemptAt`, it is being sent or waits for earlier events.
    `waitingForWorkerSince`: it is due, but its worker is lost. If still pending at `expiresAt`, it
    fails with the code `expired`. Only owners and administrators see all of `payload`, others its
    `type` and `timestamp`.
    """

    id: Id
    endpoint_id: Id
    event_id: Id
    event_type: str
    status: DeliveryStatus
    attempts: int
    next_attempt_at: Moment | None
    waiting_for_worker_since: Moment | None = None
    answer_status: int | None
    error: str | None
    error_code: str | None
    payload: Annotated[JsonObject, documented_as("WebhookPayload")]
    expires_at: Moment
    created_at: Moment
    completed_at: Moment | None


class WebhookDeliveryList(Shape):
    circuit: CircuitBody
    deliveries: list[WebhookDeliveryBody]
    cursor: Nullable[str]


_endpoint = webhook_endpoint.c
_calls = partial(deliveries_by, DeliveryChannel.WEBHOOK)

visible = WorkspaceOf(webhook_endpoint.c.id)
"""The workspace of an endpoint, if it is among the workspaces that are asked for."""


async def existing_endpoint(
    work: UnitOfWork, workspace_id: Id, endpoint_id: Id
) -> WebhookEndpoint | None:
    """An endpoint of a workspace, even one that is disabled; None for one that is gone."""
    this = sa.select(webhook_endpoint).where(
        _endpoint.workspace_id == workspace_id, _endpoint.id == endpoint_id
    )
    return await work.first(this, of=WebhookEndpoint)


async def sees_endpoint(work: UnitOfWork, actor: Actor, endpoint_id: Id) -> bool:
    """Tell whether an actor may read an endpoint, and so name it."""
    if Scope.WEBHOOKS_READ not in actor.scopes:
        return False
    return await existing_endpoint(work, actor.workspace_id, endpoint_id) is not None


def existing_endpoints(workspace_id: Id, endpoint_ids: Collection[Id]) -> sa.Select[Id]:
    """The ids of the endpoints among these that there are."""
    return endpoints_of(workspace_id).where(_endpoint.id.in_(endpoint_ids))


async def get_endpoint(work: UnitOfWork, actor: Actor, endpoint_id: Id) -> WebhookEndpointBody:
    """One endpoint, without its secret. Raises NotFoundError."""
    row = await ENDPOINTS.find(work, actor, endpoint_id)
    return await with_circuit(work, row, actor)


async def with_circuit(work: UnitOfWork, row: WebhookEndpoint, actor: Actor) -> WebhookEndpointBody:
    circuits = await endpoint_circuits(work, row.workspace_id, [row.id])
    return _body(row, circuits[row.id], actor)


async def endpoint_circuits(
    work: UnitOfWork, workspace_id: Id, endpoint_ids: Collection[Id]
) -> Mapping[Id, CircuitBody]:
    return await circuits_of(work, workspace_id, DeliveryChannel.WEBHOOK, endpoint_ids)


def _body(row: WebhookEndpoint, circuit: CircuitBody, actor: Actor) -> WebhookEndpointBody:
    """Hide the credentials in the URL from anyone who may not change it."""
    body = WebhookEndpointBody.model_validate({**columns_of(row), "circuit": circuit})
    if Scope.WEBHOOKS_WRITE not in actor.scopes:
        body.url = hidden_url(row.url)
    return body


async def list_endpoints(work: UnitOfWork, actor: Actor, page: PageRequest) -> WebhookEndpointList:
    """The endpoints of a workspace, newest first, without their secrets."""
    shown = await ENDPOINTS.page(work, actor, page)
    ids = [row.id for row in shown.items]
    circuits = await endpoint_circuits(work, actor.workspace_id, ids)
    return WebhookEndpointList.of(shown, lambda row: _body(row, circuits[row.id], actor))


async def list_deliveries(
    work: UnitOfWork,
    actor: Actor,
    endpoint_id: Id,
    page: PageRequest,
    status: DeliveryStatus | None = None,
) -> WebhookDeliveryList:
    """The deliveries to an endpoint, newest first, and its circuit."""
    sent = _calls(actor.workspace_id, *DELIVERY).where(DELIVERY.target_id == endpoint_id)
    if status is not None:
        sent = sent.where(DELIVERY.status == status)
    newest = (DELIVERY.created_at, DELIVERY.id)
    rows = await page.descending(work, sent, *newest, of=DeliveryRow)
    circuits = await endpoint_circuits(work, actor.workspace_id, [endpoint_id])
    deliveries = [delivery_body(row, actor) for row in rows.items]
    due = {
        delivery.id: delivery.next_attempt_at or delivery.created_at
        for delivery in deliveries
        if delivery.status in OPEN_DELIVERY
    }
    lost = await waiting_for_worker_since(work, min(due.values())) if due else None
    for delivery in deliveries:
        if lost is not None and delivery.id in due and due[delivery.id] <= work.now:
            delivery.waiting_for_worker_since = max(lost, due[delivery.id])
    return WebhookDeliveryList(
        circuit=circuits[endpoint_id], deliveries=deliveries, cursor=rows.cursor
    )


async def find_delivery(
    work: UnitOfWork, workspace_id: Id, endpoint_id: Id, delivery_id: Id
) -> DeliveryRow:
    """A delivery to an endpoint. Raises NotFoundError."""
    this = _calls(workspace_id, *DELIVERY).where(
        DELIVERY.target_id == endpoint_id, DELIVERY.id == delivery_id
    )
    return await work.one(this, "delivery", of=DeliveryRow)


def delivery_body(row: DeliveryRow, actor: Actor) -> WebhookDeliveryBody:
    """A delivery as the wire shows it.

    An endpoint is told of what is hidden from some: what it was told is for members who see all.
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
        expires_at=row.expires_at,
        created_at=row.created_at,
        completed_at=row.completed_at,
    )


def secrets_of(keys: KeyRing, row: WebhookEndpoint, now: datetime) -> list[bytes]:
    """The secrets that sign a call: the current one, and the one before it while that is good."""
    place = rules.secret_place(row.id)
    secrets = [keys.unseal(row.sealed_secret, place)]
    until = row.previous_secret_until
    if row.sealed_previous_secret is not None and until is not None and now < until:
        secrets.append(keys.unseal(row.sealed_previous_secret, place))
    return secrets


def endpoints_of(workspace_id: Id) -> sa.Select[Any]:
    """The ids of the endpoints of a workspace."""
    return sa.select(_endpoint.id).where(_endpoint.workspace_id == workspace_id)


def deliveries_since(
    workspace_id: Id, since: datetime, until: datetime | None = None
) -> sa.Select[Any]:
    """The deliveries to endpoints of a workspace from one moment on, and before another."""
    return _calls(workspace_id, DELIVERY.id).where(
        DELIVERY.created_at >= since,
        sa.true() if until is None else DELIVERY.created_at < until,
    )


async def create_endpoint(
    work: UnitOfWork, actor: Actor, keys: KeyRing, body: CreateWebhookEndpoint
) -> IssuedWebhookEndpoint:
    """An endpoint that receives the events from now on, with its secret.

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
    return await _issued(work, await ENDPOINTS.add(work, actor, endpoint_id, values), secret)


async def update_endpoint(
    work: UnitOfWork, actor: Actor, endpoint_id: Id, body: UpdateWebhookEndpoint
) -> WebhookEndpointBody:
    """Change what the body names.

    Raises NotFoundError, and ValidationError for a URL whose credentials are hidden.
    """
    before = await ENDPOINTS.find(work, actor, endpoint_id)
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
    row = await ENDPOINTS.change(work, actor, endpoint_id, values)
    place = (actor.workspace_id, DeliveryChannel.WEBHOOK, endpoint_id)
    if before.enabled and not row.enabled:
        await delivery_commands.give_up_waiting(work, *place, rules.DISABLED)
    if row.url != before.url or (row.enabled and not before.enabled):
        await forget_line(work, *place)
    return await with_circuit(work, row, actor)


async def rotate_secret(
    work: UnitOfWork, actor: Actor, keys: KeyRing, endpoint_id: Id
) -> IssuedWebhookEndpoint:
    """Give an endpoint a new secret; the old one signs too for `OVERLAP`. Raises NotFoundError."""
    secret = os.urandom(SECRET_BYTES)
    values: JsonObject = {
        "sealed_previous_secret": _endpoint.sealed_secret,
        "previous_secret_until": work.now + rules.OVERLAP,
        "sealed_secret": keys.seal(secret, rules.secret_place(endpoint_id)),
    }
    row = await ENDPOINTS.change(work, actor, endpoint_id, values)
    return await _issued(work, row, secret)


async def delete_endpoint(work: UnitOfWork, actor: Actor, endpoint_id: Id) -> Deleted:
    """Delete an endpoint; what is on its way to it is cancelled. Raises NotFoundError."""
    # The deliveries first, as an attempt holds its own when it writes to the endpoint. One that is
    # made meanwhile finds no endpoint.
    await delivery_commands.cancel_all_to(work, actor.workspace_id, endpoint_id)
    deleted = await ENDPOINTS.delete(work, actor, endpoint_id)
    await forget_line(work, actor.workspace_id, DeliveryChannel.WEBHOOK, endpoint_id)
    return deleted


async def send_test(
    work: UnitOfWork, actor: Actor, event_id: Id, endpoint_id: Id
) -> WebhookDeliveryBody:
    """Send an event that says nothing. Raises NotFoundError, ConflictError when it is disabled."""
    row = await _enabled(work, actor, endpoint_id)
    payload = {"type": rules.TEST, "timestamp": wire_timestamp(work.now), "data": {}}
    return await _send(work, actor, row.id, event_id, payload)


async def redeliver(
    work: UnitOfWork, actor: Actor, key: Id, endpoint_id: Id, delivery_id: Id
) -> WebhookDeliveryBody:
    """Deliver an event once more, under the same `webhook-id`.

    Raises NotFoundError, and ConflictError while it is being delivered or the endpoint is disabled.
    """
    row = await _enabled(work, actor, endpoint_id)
    earlier = await find_delivery(work, actor.workspace_id, endpoint_id, delivery_id)
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
) -> WebhookDeliveryBody:
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
    made = await find_delivery(work, actor.workspace_id, endpoint_id, new_delivery.id)
    return delivery_body(made, actor)


async def _enabled(work: UnitOfWork, actor: Actor, endpoint_id: Id) -> WebhookEndpoint:
    row = await ENDPOINTS.find(work, actor, endpoint_id)
    if not row.enabled:
        raise ConflictError("The endpoint is disabled. Enable it first.")
    return row


async def _issued(work: UnitOfWork, row: WebhookEndpoint, secret: bytes) -> IssuedWebhookEndpoint:
    circuits = await endpoint_circuits(work, row.workspace_id, [row.id])
    shown = {**columns_of(row), "circuit": circuits[row.id], "secret": secret_text(secret)}
    return IssuedWebhookEndpoint.model_validate(shown)
