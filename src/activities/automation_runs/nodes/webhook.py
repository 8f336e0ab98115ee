"""The send_webhook node: one signed event to a URL (Standard Webhooks)."""

import json

from activities.automation_runs.nodes.http_request import storable, unexpected
from activities.automation_runs.nodes.invocation import NodeResult, Outgoing
from models.automation.automations.rules.graph.configs import SendWebhookConfig
from models.messages.webhook_signing.rules import signed_headers
from runtime.clock import utc_now
from runtime.derived_ids import derived_id
from runtime.errors import NotFoundError
from runtime.outbound.client import OutboundClient
from runtime.outbound.messages import OutboundRequest
from runtime.timestamps import wire_timestamp

SECONDS = 15
"""What a receiver has to answer (decisions C16)."""
MAX_RESPONSE_BYTES = 64 * 1024
"""Nothing of the answer is kept."""


async def send_webhook(outbound: OutboundClient, secret: bytes, outgoing: Outgoing) -> NodeResult:
    """`{webhookId, status}` of an answer 2xx; id and body are constant over attempts.

    Raises NotFoundError for an endpoint, NodeError for any other status, and OutboundError when
    there is no answer.
    """
    config = SendWebhookConfig.model_validate(outgoing.parameters)
    if config.url is None:
        raise NotFoundError("webhook endpoint")
    event = {
        "type": config.type,
        "timestamp": wire_timestamp(outgoing.began_at),
        "data": storable(config.data),
    }
    body = json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()
    webhook_id = f"msg_{derived_id('webhook', outgoing.key)}"
    response = await outbound.send(
        OutboundRequest(
            method="POST",
            url=config.url,
            headers={
                "Content-Type": "application/json",
                **signed_headers([secret], webhook_id, int(utc_now().timestamp()), body),
            },
            body=body,
            timeout_seconds=SECONDS,
            max_bytes=MAX_RESPONSE_BYTES,
        )
    )
    if not 200 <= response.status < 300:
        raise unexpected(response)
    return NodeResult({"webhookId": webhook_id, "status": response.status})
