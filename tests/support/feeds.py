"""Clients of realtime connections: a real WebSocket library against a real server."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
from websockets.asyncio.client import ClientConnection, connect

from tests.support.patience import ENOUGH
from tests.support.server import Server
from tests.support.spaces import Space


@dataclass(slots=True)
class Listener:
    """One client; `events` are those of the log that it was sent."""

    socket: ClientConnection
    ready: dict[str, Any]
    events: list[dict[str, Any]] = field(default_factory=list)

    async def next(self) -> dict[str, Any]:
        """The next message."""
        async with asyncio.timeout(ENOUGH):
            message: dict[str, Any] = json.loads(await self.socket.recv())
        if "seq" in message:
            self.events.append(message)
        return message

    async def present(self) -> set[str]:
        """Who is connected, as the next message that tells it says."""
        while (message := await self.next())["type"] != "presence":
            pass
        return set(message["userIds"])

    async def until(self, type_: str, **data: Any) -> dict[str, Any]:
        """The next event of this type with these data."""
        while True:
            message = await self.next()
            if message["type"] == type_ and data.items() <= message["data"].items():
                return message


async def ticket(server: Server, space: Space, session: str) -> dict[str, Any]:
    """A ticket of a member's session."""
    async with httpx2.AsyncClient(base_url=server.url, timeout=ENOUGH) as client:
        answer = await client.post(
            f"{space.path}/realtime/ticket", headers={"Authorization": f"Bearer {session}"}
        )
    assert answer.status_code == 200, answer.text
    minted: dict[str, Any] = answer.json()["data"]
    return minted


@asynccontextmanager
async def listening(
    server: Server, space: Space, session: str, since: int | None = None
) -> AsyncIterator[Listener]:
    """A client that is connected for the length of the block."""
    url = (await ticket(server, space, session))["url"]
    if since is not None:
        url += f"&since={since}"
    async with connect(url, compression=None) as socket:
        async with asyncio.timeout(ENOUGH):
            ready = json.loads(await socket.recv())
        assert ready["type"] == "ready"
        yield Listener(socket, ready)
