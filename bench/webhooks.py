"""Taking signed webhook calls, each verified and told from copies, against committed INSERTs."""

import asyncio
import base64
import hmac
import json
import time
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2

from bench.figures import Figure
from bench.graphs import ONE_QUICK, Graph
from bench.platform import Platform
from bench.rounds import Rounds

AT_ONCE = 20
BODY = json.dumps({"event": {"id": 1, "kind": "opened"}, "text": "Some words. " * 10}).encode()


async def webhook_rate(
    platform: Platform, floor: httpx2.AsyncClient, rounds: Rounds, count: int
) -> Figure:
    """Calls a second, each a run of its own, both while no worker runs."""
    figure = Figure("signed webhook accepted vs committed INSERT", "1/s", at_least=0.40)
    hook = await publish_hook(platform)

    async def ours() -> httpx2.Response:
        return await call_hook(platform, hook)

    async def theirs() -> httpx2.Response:
        return await floor.post("/rows", json={"body": json.loads(BODY)})

    for call in (ours, theirs):
        await _rate(AT_ONCE, call)
    await platform.settled()
    for _ in rounds:
        with platform.paused_worker():
            figure.add(await _rate(count, ours), await _rate(count, theirs))
        await platform.settled()
    return figure


async def call_hook(platform: Platform, hook: dict[str, Any]) -> httpx2.Response:
    """One signed call of an automation of `publish_hook`."""
    headers = _signed(hook["webhookSecret"])
    return await platform.http.post(hook["webhookPath"], content=BODY, headers=headers)


async def publish_hook(
    platform: Platform, graph: Graph = ONE_QUICK, *, respond: str = "immediate"
) -> dict[str, Any]:
    """A published automation that a webhook starts."""
    body = {
        "label": "Webhook",
        "enabled": True,
        "graph": graph,
        "triggerConfig": {"kind": "webhook", "respond": respond},
    }
    created = await platform.post(platform.automations, body)
    return await platform.post(f"{platform.automations}/{created['id']}/publish", {})


def _signed(secret: str) -> dict[str, str]:
    message, timestamp = f"msg_{uuid.uuid4().hex}", str(int(time.time()))
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signature = hmac.digest(key, f"{message}.{timestamp}.".encode() + BODY, "sha256")
    return {
        "Content-Type": "application/json",
        "webhook-id": message,
        "webhook-timestamp": timestamp,
        "webhook-signature": f"v1,{base64.b64encode(signature).decode()}",
    }


async def _rate(count: int, call: Callable[[], Awaitable[httpx2.Response]]) -> float:
    room = asyncio.Semaphore(AT_ONCE)

    async def one() -> None:
        async with room:
            (await call()).raise_for_status()

    started = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(count)))
    return count / (time.perf_counter() - started)
