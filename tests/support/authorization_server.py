"""A real authorization server (authlib) that asks for PKCE, rotates refresh tokens, and revokes.

A process of its own: `python -m tests.support.authorization_process` prints its URL.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from tests.support.patience import ENOUGH

CLIENT_ID, CLIENT_SECRET = "platform", "client-secret-9a1f"
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class AuthorizationServer:
    """Where the server is, and what it knows."""

    url: str

    async def seen(self) -> Any:
        """The number of issued tokens, the valid and the revoked ones."""
        async with httpx2.AsyncClient(timeout=ENOUGH) as client:
            return (await client.get(f"{self.url}/seen")).json()

    async def consent(self, authorization_url: str) -> dict[str, str]:
        """What the provider sends a user back with."""
        async with httpx2.AsyncClient(timeout=ENOUGH) as client:
            answer = await client.get(authorization_url)
        assert answer.status_code == 302, answer.text
        return dict(httpx2.URL(answer.headers["location"]).params)


@asynccontextmanager
async def process(*arguments: str) -> AsyncIterator[str]:
    """A Python process and the first line that it prints."""
    running = await asyncio.create_subprocess_exec(
        sys.executable,
        *arguments,
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert running.stdout is not None
    try:
        yield (await asyncio.wait_for(running.stdout.readline(), 30)).decode().strip()
    finally:
        running.kill()
        await running.wait()


@asynccontextmanager
async def authorization_server(seconds: int = 3_600) -> AsyncIterator[AuthorizationServer]:
    """The server, whose tokens live so long."""
    async with process("-m", "tests.support.authorization_process", str(seconds)) as url:
        yield AuthorizationServer(url)
