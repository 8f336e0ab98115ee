"""The process that serves the bare routes."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2

from runtime.database import driver_url


@asynccontextmanager
async def floor_route(database_url: str) -> AsyncIterator[httpx2.AsyncClient]:
    """The bare route, served by its own process as the API is."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "bench.floor_route:app", "--port", str(port)]
    process = subprocess.Popen(
        [*command, "--log-level", "warning", "--no-access-log", "--timeout-keep-alive", "75"],
        env={**os.environ, "FLOOR_DATABASE_URL": driver_url(database_url)},
    )
    try:
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30) as http:
            await _until_up(http)
            yield http
    finally:
        process.terminate()
        process.wait(20)


async def _until_up(http: httpx2.AsyncClient) -> None:
    async with asyncio.timeout(20):
        while True:
            try:
                await http.post("/rows", json={"body": {}})
            except httpx2.TransportError:
                await asyncio.sleep(0.1)
            else:
                return
