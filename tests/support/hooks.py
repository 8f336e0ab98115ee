"""Calls of webhooks, signed as their senders sign them."""

import base64
import hmac
import json
import time
from typing import Any
from uuid import uuid4

import httpx2

from tests.support.automations import DAY, publish
from tests.support.client import Client
from tests.support.spaces import Space

Json = dict[str, Any]


def signed(
    secret: str, body: bytes, *, message_id: str | None = None, sent: float | None = None
) -> dict[str, str]:
    """The headers of Standard Webhooks."""
    message = message_id or f"msg_{uuid4().hex}"
    timestamp = str(int(time.time() if sent is None else sent))
    key = base64.b64decode(secret.removeprefix("whsec_"))
    content = f"{message}.{timestamp}.".encode() + body
    signature = base64.b64encode(hmac.digest(key, content, "sha256")).decode()
    return {
        "webhook-id": message,
        "webhook-timestamp": timestamp,
        "webhook-signature": f"v1,{signature}",
    }


async def make_hook(client: Client, space: Space, graph: Json = DAY, **config: Any) -> Json:
    """A published automation with a webhook."""
    return await publish(client, space, graph=graph, triggerConfig={"kind": "webhook", **config})


async def send(
    client: httpx2.AsyncClient, made: Json, body: Any = None, **options: Any
) -> httpx2.Response:
    """A signed call with a JSON body."""
    content = json.dumps({"n": 1} if body is None else body).encode()
    headers = {
        "Content-Type": "application/json",
        **signed(made["webhookSecret"], content, **options),
    }
    return await client.post(made["webhookPath"], content=content, headers=headers)
