"""Webhook endpoints and their deliveries on the wire (decisions C16)."""

from typing import Annotated

from pydantic import Field

from models.core.base import Id, Input, JsonObject, Moment, Nullable, Shape, example
from models.core.documented import documented_as
from models.core.http_inputs import CallableUrl
from models.messages.deliveries.rules import DeliveryStatus
from models.messages.deliveries.shapes import CircuitBody
from models.messages.webhook_endpoints.rules import DisabledReason
from models.messages.workspace_events.rules import EventType

Description = Annotated[str, Field(max_length=1_000)]
EventTypes = Annotated[
    list[Annotated[EventType, Field(strict=False)]], Field(max_length=len(EventType))
]


class WebhookEndpointBody(Shape):
    """An endpoint without its secret; with no `eventTypes` it is told of every event.

    Credentials in its URL are shown as `[redacted]` to anybody who may not change it.
    """

    id: Id
    workspace_id: Id
    url: str
    description: str | None
    event_types: list[EventType]
    enabled: bool
    disabled_at: Moment | None
    disabled_reason: DisabledReason | None
    failing_since: Moment | None
    circuit: CircuitBody
    previous_secret_until: Moment | None
    created_by_user_id: Id
    created_at: Moment
    updated_at: Moment


class IssuedWebhookEndpoint(WebhookEndpointBody):
    """An endpoint with its new secret, which is shown in this answer only."""

    secret: str


class WebhookEndpointList(Shape):
    endpoints: list[WebhookEndpointBody]
    cursor: Nullable[str]


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
    """Changes of an endpoint: what is absent or null stays, but a null `description` goes.

    An endpoint that is enabled again is told of what happens from then on.
    """

    model_config = example({"enabled": False})

    url: CallableUrl | None = None
    description: Description | None = None
    event_types: EventTypes | None = None
    enabled: bool | None = None


class DeletedWebhookEndpoint(Shape):
    id: Id


class WebhookDeliveryBody(Shape):
    """An event on its way to an endpoint; the answer and the error are of the latest attempt.

    What is pending without `nextAttemptAt` is being sent, or waits for the events before it. At
    `expiresAt` it fails with the code `expired`, if it still waits then.

    Only owners and administrators are shown all of `payload`, others its `type` and `timestamp`.
    """

    id: Id
    endpoint_id: Id
    event_id: Id
    event_type: str
    status: DeliveryStatus
    attempts: int
    next_attempt_at: Moment | None
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
