"""The send_webhook node: one signed event to an endpoint or a URL (Standard Webhooks)."""

from activities.automation_runs.nodes.http_request import storable, unexpected
from activities.automation_runs.nodes.invocation import NodeResult, Outgoing
from activities.webhook_calls import Receiver, WebhookCall
from models.automation.automation_runs.errors import NodeError
from models.automation.automations.rules.graph.configs import SendWebhookConfig
from models.core.base import Id
from models.messages.webhook_endpoints.queries import existing_endpoint, secrets_of
from models.messages.webhook_signing.commands import signing_secret
from runtime.crypto import KeyRing
from runtime.database import Database, UnitOfWork
from runtime.derived_ids import derived_id
from runtime.outbound.client import OutboundClient
from runtime.timestamps import wire_timestamp


class WebhookNode:
    """Sends events of runs."""

    def __init__(self, database: Database, keys: KeyRing, outbound: OutboundClient) -> None:
        self._database = database
        self._keys = keys
        self._outbound = outbound

    async def send(self, outgoing: Outgoing) -> NodeResult:
        """`{webhookId, status}` of an answer 2xx; id and body are constant over attempts.

        Raises NodeError for any other status, with the answer, and for an endpoint that takes
        nothing, and OutboundError when there is no answer.
        """
        config = SendWebhookConfig.model_validate(outgoing.parameters)
        async with self._database.transaction() as work:
            receiver = await self._receiver(work, outgoing.workspace_id, config)
        call = WebhookCall(
            receiver,
            str(derived_id("webhook", outgoing.key)),
            {
                "type": config.type,
                "timestamp": wire_timestamp(outgoing.began_at),
                "data": storable(config.data),
            },
        )
        response = await call.send(self._outbound)
        if not 200 <= response.status < 300:
            failure = unexpected(response)
            failure.output = {"webhookId": call.message_id, **(failure.output or {})}
            raise failure
        return NodeResult({"webhookId": call.message_id, "status": response.status})

    async def _receiver(
        self, work: UnitOfWork, workspace_id: Id, config: SendWebhookConfig
    ) -> Receiver:
        """An endpoint with its own secrets, or the URL with the workspace's."""
        if config.endpoint_id is None:
            assert config.url is not None, "the config has one of the two"
            return Receiver(config.url, [await signing_secret(work, self._keys, workspace_id)])
        endpoint = await existing_endpoint(work, workspace_id, config.endpoint_id)
        if endpoint is None:
            raise NodeError("endpoint_deleted", "The webhook endpoint was deleted.")
        if not endpoint.enabled:
            raise NodeError("endpoint_disabled", "The webhook endpoint is disabled.")
        return Receiver(endpoint.url, secrets_of(self._keys, endpoint, work.now))
