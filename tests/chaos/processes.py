"""The platform's own commands as real processes, which a test kills by their numbers."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from cli.supervisor.servers import EmbeddedPostgres
from cli.supervisor.state import StateDir
from tests.support.forked import Forked, workspace
from tests.support.patience import eventually
from tests.support.spaces import MASTER_SECRET

SECRET = MASTER_SECRET
"""The key that a database of the tests is written under."""


WITHOUT_OWNER = (
    "Task exception was never retrieved",
    "an event was not answered",
    "a debounced change was not answered",
    "a turn failed",
)
"""Messages that no log of a worker has, after any kill."""


def without_owner(log: str) -> list[str]:
    """The lines of a log about unhandled errors."""
    return [line for line in log.splitlines() if any(word in line for word in WITHOUT_OWNER)]


class Worker:
    """One `workspace worker`."""

    def __init__(self, process: Forked, log: Path) -> None:
        self.process = process
        self._log = log

    async def ready(self) -> None:
        """Wait until it says that it works."""

        async def is_ready() -> bool:
            assert self.process.exit_code is None, self.log()
            return "worker is ready" in self.log()

        await eventually(is_ready, what="the worker's start")

    async def ended(self) -> int:
        """The exit code; negative for a signal."""
        return await self.process.ended()

    def log(self) -> str:
        return self._log.read_text()


class Workers:
    """Starts workers on one database and one Temporal; kills those that are left in the end."""

    def __init__(self, directory: Path, url: str, temporal_address: str) -> None:
        self._directory = directory
        self._started: list[Worker] = []
        self._environment = os.environ | {
            "DATABASE_URL": url,
            "TEMPORAL_ADDRESS": temporal_address,
            "WORKSPACE_SECRET_KEY": SECRET,
            "WORKSPACE_OUTBOUND_ALLOW": "127.0.0.0/8",
        }

    async def start(self, *, prepared: str = "", **variables: str) -> Worker:
        """One more worker, with these environment variables, after some `prepared` Python."""
        path = self._directory / f"worker-{len(self._started)}.log"
        path.touch()
        process = workspace(["worker"], self._environment | variables, out=path, prepared=prepared)
        self._started.append(Worker(process, path))
        return self._started[-1]

    async def close(self) -> None:
        for worker in self._started:
            worker.process.kill()
            await worker.process.ended()
        assert [line for worker in self._started for line in without_owner(worker.log())] == []


class Operator:
    """An operator who changes the deployment of the workers, by `workspace deploy`."""

    def __init__(self, directory: Path, temporal_address: str) -> None:
        self._output = directory / "deploy.log"
        self._environment = os.environ | {"TEMPORAL_ADDRESS": temporal_address, "COLUMNS": "200"}

    async def run(
        self, *arguments: str, build: str = "", code: int | None = 0, **variables: str
    ) -> str:
        """What a command prints, in a checkout of a build; it must end with `code`."""
        environment = self._environment | {"WORKSPACE_WORKER_BUILD": build} | variables
        self._output.unlink(missing_ok=True)  # a command appends
        process = workspace(["deploy", *arguments], environment, out=self._output)
        ended = await process.ended()
        output = self._output.read_text()
        assert "Traceback" not in output, output
        assert code in {None, ended}, output
        return output


class Up:
    """A `workspace up` on free ports, which is killed and started again."""

    def __init__(self, directory: Path) -> None:
        self.state = StateDir(directory / "state")
        self._output = directory / "up.log"
        self._supervisor: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start it and wait until all of it is ready."""
        ports = ["--port=0", "--temporal-port=0", "--ui-port=0"]
        environment = {k: v for k, v in os.environ.items() if k != "DATABASE_URL"} | {
            "WORKSPACE_OUTBOUND_ALLOW": "127.0.0.0/8",
            "WORKSPACE_RATE_LIMIT_KEY": "0",
            "WORKSPACE_RATE_LIMIT_RUN_START": "0",
        }
        # One that was killed has left its own.
        self.state.connection.unlink(missing_ok=True)
        self.state.heartbeat.unlink(missing_ok=True)
        with self._output.open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "cli.main", "up", f"--state-dir={self.state.root}", *ports),
                env=environment,
                stdout=log,
                stderr=log,
            )
        self._supervisor = process

        async def is_up() -> bool:
            assert process.returncode is None, _text(self._output)
            return self.connection is not None and self.state.heartbeat.exists()

        await eventually(is_up, what="the platform's start")

    async def stop(self) -> None:
        """End it cleanly."""
        if self._supervisor is not None:
            await _end(self._supervisor)

    async def kill_supervisor(self, *, with_children: bool) -> None:
        """Send SIGKILL to an unsupervised process, and to all that it started."""
        assert self._supervisor is not None, "it runs"
        children = psutil.Process(self._supervisor.pid).children(recursive=True)
        self._supervisor.kill()
        await self._supervisor.wait()
        for child in children if with_children else ():
            with suppress(psutil.NoSuchProcess):
                child.kill()

    @property
    def connection(self) -> Mapping[str, Any] | None:
        """How to reach it, once it is up."""
        if not self.state.connection.exists():
            return None
        connection: Mapping[str, Any] = json.loads(self.state.connection.read_text())
        return connection

    @property
    def database_url(self) -> str:
        return EmbeddedPostgres(self.state).url()

    async def kill(self, name: str) -> int:
        """SIGKILL one of its children, once it is there; the number of the process that died."""

        async def is_there() -> bool:
            return self.pid(name) != 0

        await eventually(is_there, what=f"the start of {name}")
        pid = self.pid(name)
        os.kill(pid, signal.SIGKILL)
        return pid

    async def replaced(self, name: str, pid: int) -> None:
        """Wait until another process has taken the place of a dead one."""

        async def is_replaced() -> bool:
            return self.pid(name) not in {0, pid}

        await eventually(is_replaced, what=f"the return of {name}")

    async def working(self) -> None:
        """Wait until a worker that took the place of a dead one is ready."""

        async def is_working() -> bool:
            return self.state.heartbeat.exists()

        await eventually(is_working, what="a worker that is ready")

    def pid(self, name: str) -> int:
        """The number of a child; 0 while there is none."""
        with suppress(FileNotFoundError, ValueError):
            return int(json.loads((self.state.pids / f"{name}.json").read_text())["pid"])
        return 0


@asynccontextmanager
async def running_up(directory: Path) -> AsyncIterator[Up]:
    """`workspace up` until the block ends; it ends itself cleanly."""
    up = Up(directory)
    try:
        await up.start()
        yield up
        assert without_owner(_text(up.state.log("worker"))) == []
    finally:
        await up.stop()


def _text(path: Path) -> str:
    return path.read_text()


async def _end(process: asyncio.subprocess.Process) -> None:
    children = psutil.Process(process.pid).children(recursive=True) if _lives(process) else []
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    try:
        async with asyncio.timeout(60):
            await process.wait()
    except TimeoutError:
        for child in children:
            with suppress(psutil.NoSuchProcess):
                child.kill()
        process.kill()
        await process.wait()


def _lives(process: asyncio.subprocess.Process) -> bool:
    return process.returncode is None
