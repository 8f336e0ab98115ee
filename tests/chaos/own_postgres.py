"""A PostgreSQL that a test may kill."""

import asyncio
import signal
import subprocess
from pathlib import Path

from cli.supervisor.servers import EmbeddedPostgres
from cli.supervisor.state import StateDir
from models.migrations.runner import upgrade
from tests.support.patience import eventually


class OwnPostgres:
    """A server whose death disturbs no other test."""

    def __init__(self, directory: Path) -> None:
        state = StateDir(directory)
        state.root.mkdir()
        self._server = EmbeddedPostgres(state)
        self._process: subprocess.Popen[bytes] | None = None
        self.pid_file = state.postgres_data / "postmaster.pid"
        self.url = self._server.url()

    async def make(self) -> None:
        """Make it and start it, with the tables of the platform."""
        self._server.initialise()
        await self.start()
        self._server.create_database()
        await asyncio.to_thread(upgrade, self.url)

    async def start(self) -> None:
        """Start it, again if it died."""
        await asyncio.to_thread(self._begin)
        await eventually(self._server.is_ready, "the start of PostgreSQL")
        await self._server.end_session()

    def _begin(self) -> None:
        service = self._server.service()
        service.before_start()
        self._process = subprocess.Popen(  # our own binary, our own arguments
            service.command,
            env=dict(service.environment),
            cwd=service.directory,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    async def died(self) -> None:
        """Wait for the end of a killed server."""
        assert self._process is not None
        assert await asyncio.to_thread(self._process.wait) == -signal.SIGKILL

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait()
