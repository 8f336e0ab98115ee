"""The API as a process of its own, for what only a real server and real connections show."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from runtime.configuration.settings import Settings
from tests.support.files import Wire
from tests.support.forked import Forked, workspace
from tests.support.patience import ENOUGH


@dataclass(frozen=True, slots=True)
class Server:
    """Where the process listens."""

    port: int
    pid: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def connect(self) -> Wire:
        return Wire(*await asyncio.open_connection("127.0.0.1", self.port))

    def memory(self) -> int:
        """Bytes of memory the process occupies."""
        return int(psutil.Process(self.pid).memory_info().rss)


@asynccontextmanager
async def serving(
    settings: Settings, *, prepared: str = "", **environment: str
) -> AsyncIterator[Server]:
    """`workspace api` on a free port after some `prepared` Python, for the length of the block."""
    with _reserved_port() as port:
        own = {"WORKSPACE_PUBLIC_URL": f"http://127.0.0.1:{port}", **environment}
        async with _listening_process(settings, port, own, prepared) as process:
            yield Server(port, process.pid)


@contextmanager
def _reserved_port() -> Iterator[int]:
    """A port that a server may listen on, reserved for it meanwhile."""
    with socket.socket() as reserved:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("127.0.0.1", 0))
        yield reserved.getsockname()[1]


@asynccontextmanager
async def _listening_process(
    settings: Settings, port: int, environment: Mapping[str, str], prepared: str
) -> AsyncIterator[Forked]:
    sessions = {
        "WORKSPACE_OIDC_ISSUER": str(settings.oidc_issuer),
        "WORKSPACE_OIDC_AUDIENCE": str(settings.oidc_audience),
        "WORKSPACE_OIDC_JWKS": str(settings.oidc_jwks),
    }
    process = workspace(
        ["api", f"--port={port}"],
        {
            **os.environ,
            "DATABASE_URL": settings.database_url.get_secret_value(),
            "WORKSPACE_SECRET_KEY": settings.secret_key.get_secret_value(),
            "WORKSPACE_OBJECT_STORE": settings.object_store,
            "WORKSPACE_OUTBOUND_ALLOW": ",".join(settings.outbound_allow),
            **sessions,
            **environment,
        },
        out=Path(os.devnull),
        prepared=prepared,
    )
    try:
        await _listening(port)
        yield process
    finally:
        process.kill()
        await process.ended()


async def _listening(port: int) -> None:
    async with asyncio.timeout(ENOUGH):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                await writer.wait_closed()
                return
