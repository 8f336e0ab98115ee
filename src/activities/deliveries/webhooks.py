"""Events for the endpoints of a workspace, signed by Standard Webhooks (ADR 0057)."""

import json
from dataclasses import dataclass

from typing_extensions import override

from activities.deliveries.channels import Channel
from models.messages.deliveries.rules import Answer, DeliveryStatus
from models.messages.deliveries.tables import Delivery
from models.messages.webhook_endpoints import health
from models.messages.webhook_endpoints.queries import enabled_endpoint, secrets_of
from models.messages.webhook_endpoints.rules import GONE, DisabledReason
from models.messages.webhook_signing.rules import signed_headers
from runtime.clock import utc_now
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.outbound.client import OutboundClient
from runtime.outbound.messages import OutboundRequest

SECONDS = 15
"""What a receiver has to answer (decisions C16)."""
MAX_ANSWER_BYTES = 64 * 1024
"""Nothing of the answer is kept."""

DISABLED = Answer(
    end=DeliveryStatus.UNDELIVERABLE,
    code="endpoint_disabled",
    message="The endpoint was disabled or deleted.",
)


@dataclass(frozen=True, slots=True)
class Call:
    """One signed call; it is signed when it is sent, for the time is part of the signature."""

    url: str
    message_id: str
    secrets: list[bytes]
    body: bytes


class WebhookChannel(Channel[Call]):
    """Deliveries of events (`subject_id`) to endpoints (`target_id`)."""

    def __init__(self, outbound: OutboundClient, keys: KeyRing) -> None:
        self._outbound = outbound
        self._keys = keys

    @override
    async def pack(self, work: UnitOfWork, delivery: Delivery) -> Call | Answer:
        endpoint = await enabled_endpoint(work, delivery.workspace_id, delivery.target_id)
        if endpoint is None:
            return DISABLED
        body = json.dumps(delivery.input, ensure_ascii=False, separators=(",", ":")).encode()
        secrets = secrets_of(self._keys, endpoint, work.now)
        return Call(endpoint.url, f"msg_{delivery.subject_id}", secrets, body)

    @override
    async def send(self, parcel: Call) -> Answer:
        now = int(utc_now().timestamp())
        signed = signed_headers(parcel.secrets, parcel.message_id, now, parcel.body)
        response = await self._outbound.send(
            OutboundRequest(
                method="POST",
                url=parcel.url,
                headers={"Content-Type": "application/json", **signed},
                body=parcel.body,
                timeout_seconds=SECONDS,
                max_bytes=MAX_ANSWER_BYTES,
            )
        )
        status = response.status
        if 200 <= status < 300:
            return Answer(end=DeliveryStatus.DELIVERED, status=status)
        said = f"The endpoint answered {status}."
        end = DeliveryStatus.UNDELIVERABLE if status == GONE else None
        return Answer(
            end=end,
            status=status,
            code=f"http_{status}",
            message=said,
            retry_after=response.retry_after,
        )

    @override
    async def settle(self, work: UnitOfWork, delivery: Delivery, answer: Answer) -> None:
        if answer is DISABLED:
            return
        if answer.end is DeliveryStatus.DELIVERED:
            await health.succeeded(work, delivery.target_id)
        elif answer.status == GONE:
            reason = DisabledReason.GONE
            await health.disable(work, delivery.workspace_id, delivery.target_id, reason)
        else:
            await health.failed(work, delivery.workspace_id, delivery.target_id)
