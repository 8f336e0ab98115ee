"""One call to a receiver of webhooks, signed by Standard Webhooks."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from models.core.base import JsonObject
from models.messages.webhook_signing import signed_headers
from runtime.clock import utc_now
from runtime.outbound.client import OutboundClient
from runtime.outbound.messages import OutboundRequest, OutboundResponse

SECONDS = 15
"""The time a receiver has to answer (interface.md#webhook-endpoints)."""
MAX_ANSWER_BYTES = 64 * 1024
"""The rest of a longer answer is not read: an answer is kept where the call fails, if at all."""


@dataclass(frozen=True, slots=True)
class Receiver:
    """The address of calls, and their signing keys: two secrets while one is changed."""

    url: str
    secrets: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class WebhookCall:
    """One event for one receiver; `subject` is the same for all attempts at it."""

    receiver: Receiver
    subject: str
    event: JsonObject

    @property
    def message_id(self) -> str:
        """The id the receiver knows the event by."""
        return f"msg_{self.subject}"

    async def send(self, outbound: OutboundClient) -> OutboundResponse:
        """Send it, signed now: the time is part of the signature.

        Raises OutboundError when there is no answer.
        """
        body = json.dumps(self.event, ensure_ascii=False, separators=(",", ":")).encode()
        now = int(utc_now().timestamp())
        signed = signed_headers(self.receiver.secrets, self.message_id, now, body)
        return await outbound.send(
            OutboundRequest(
                method="POST",
                url=self.receiver.url,
                headers={"Content-Type": "application/json", **signed},
                body=body,
                timeout_seconds=SECONDS,
                max_bytes=MAX_ANSWER_BYTES,
                # A redirected POST may arrive as a GET, so a redirect counts as a failure.
                follow_redirects=False,
                cut_body=True,
            )
        )
