"""Events for the endpoints of a workspace, signed by Standard Webhooks (ADR 0057)."""

from typing_extensions import override

from activities.deliveries.channels import Channel
from activities.webhook_calls import Receiver, WebhookCall
from models.messages.deliveries.rows import DeliveryRow
from models.messages.deliveries.rules import Answer, DeliveryStatus
from models.messages.webhook_endpoints import health
from models.messages.webhook_endpoints.queries import existing_endpoint, secrets_of
from models.messages.webhook_endpoints.rules import DISABLED, GONE, DisabledReason
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.outbound.client import OutboundClient


class WebhookChannel(Channel[WebhookCall]):
    """Deliveries of events (`subject_id`) to endpoints (`target_id`)."""

    def __init__(self, outbound: OutboundClient, keys: KeyRing) -> None:
        self._outbound = outbound
        self._keys = keys

    @override
    async def pack(self, work: UnitOfWork, delivery: DeliveryRow) -> WebhookCall | Answer:
        endpoint = await existing_endpoint(work, delivery.workspace_id, delivery.target_id)
        if endpoint is None or not endpoint.enabled:
            return DISABLED
        receiver = Receiver(endpoint.url, secrets_of(self._keys, endpoint, work.now))
        return WebhookCall(receiver, str(delivery.subject_id), delivery.input)

    @override
    async def send(self, parcel: WebhookCall) -> Answer:
        response = await parcel.send(self._outbound)
        status = response.status
        if 200 <= status < 300:
            return Answer(end=DeliveryStatus.DELIVERED, status=status)
        message = f"The endpoint answered {status}."
        end = DeliveryStatus.UNDELIVERABLE if status == GONE else None
        return Answer(
            end=end,
            status=status,
            code=f"http_{status}",
            message=message,
            retry_after=response.retry_after,
        )

    @override
    async def settle(self, work: UnitOfWork, delivery: DeliveryRow, answer: Answer) -> None:
        if answer is DISABLED:
            return
        if answer.end is DeliveryStatus.DELIVERED:
            await health.succeeded(work, delivery.target_id)
        elif answer.status == GONE:
            reason = DisabledReason.GONE
            await health.disable(work, delivery.workspace_id, delivery.target_id, reason)
        else:
            await health.failed(work, delivery.workspace_id, delivery.target_id)
