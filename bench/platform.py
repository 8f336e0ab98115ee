"""The platform under measurement: `workspace up` on a fresh state directory, driven over HTTP."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import psutil
import psycopg

from cli.supervisor.servers import EmbeddedPostgres
from cli.supervisor.state import StateDir

READY_SECONDS = 240


@dataclass(frozen=True, slots=True)
class Platform:
    """A running platform, its HTTP client and a connection to its database."""

    connection: dict[str, str]
    pids: Path
    http: httpx2.AsyncClient
    database_url: str
    database: psycopg.AsyncConnection[Any]

    @property
    def automations(self) -> str:
        return f"/v1/workspaces/{self.connection['workspaceId']}/automations"

    async def publish(
        self, label: str, graph: dict[str, Any], trigger: dict[str, Any] | None = None
    ) -> str:
        """A published, enabled automation; its id."""
        body = {"label": label, "enabled": True, "graph": graph}
        if trigger is not None:
            body["triggerConfig"] = trigger
        created = await self.post(self.automations, body)
        await self.post(f"{self.automations}/{created['id']}/publish", {})
        return str(created["id"])

    async def start(self, automation_id: str) -> str:
        """Accept a run; its id."""
        return str((await self.post(f"{self.automations}/{automation_id}/run", {}))["id"])

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        response = await self.http.post(path, json=body)
        response.raise_for_status()
        data: dict[str, Any] = response.json()["data"]
        return data

    async def is_over(self, run_id: str) -> bool:
        query = "SELECT status FROM automation_run WHERE id = %s"
        row = await (await self.database.execute(query, [run_id])).fetchone()
        assert row is not None
        assert row[0] in {"queued", "running", "succeeded"}, row[0]
        return bool(row[0] == "succeeded")

    async def open_runs(self) -> int:
        query = "SELECT count(*) FROM automation_run WHERE status IN ('queued', 'running')"
        row = await (await self.database.execute(query)).fetchone()
        assert row is not None
        return int(row[0])

    async def run_one(self, automation_id: str) -> None:
        """Start one run and wait until our own row says it ended."""
        run_id = await self.start(automation_id)
        while not await self.is_over(run_id):
            await asyncio.sleep(0.001)

    async def accept_all(self, automation_id: str, count: int, at_once: int) -> None:
        """Accept `count` runs with that many requests at once."""
        room = asyncio.Semaphore(at_once)

        async def one() -> None:
            async with room:
                await self.start(automation_id)

        await asyncio.gather(*(one() for _ in range(count)))

    @property
    def worker_pid(self) -> int:
        """The process of the worker."""
        return self.pid("worker")

    @property
    def api_pid(self) -> int:
        """The process of the API."""
        return self.pid("api")

    def pid(self, name: str) -> int:
        """The process of a part of the platform: `api`, `worker`, `postgres` or `temporal`."""
        return int(json.loads((self.pids / f"{name}.json").read_text())["pid"])

    @contextmanager
    def paused_worker(self) -> Iterator[None]:
        """Stop the worker process for as long as the block runs; the outbox keeps the starts."""
        worker = psutil.Process(self.worker_pid)
        worker.suspend()
        try:
            yield
        finally:
            worker.resume()

    async def settled(self) -> None:
        """Wait until no run is open."""
        while await self.open_runs():
            await asyncio.sleep(0.02)


def launched(state: Path, *, limited: bool = False) -> subprocess.Popen[bytes]:
    """`workspace up`, just started; `limited` leaves its rate limits as they come."""
    program = Path(sys.executable).with_name("workspace")
    command = [str(program), "up", "--state-dir", str(state)]
    ports = ["--port", "0", "--temporal-port", "0", "--ui-port", "0"]
    limits = {} if limited else dict.fromkeys(("KEY", "RUN_START", "WEBHOOK"), "0")
    environment = {
        **os.environ,
        "WORKSPACE_OUTBOUND_ALLOW": "127.0.0.0/8",
        "WORKSPACE_CONNECTIONS_PER_ADDRESS": "0",
        **{f"WORKSPACE_RATE_LIMIT_{name}": value for name, value in limits.items()},
    }
    return subprocess.Popen([*command, *ports], stdout=subprocess.DEVNULL, env=environment)


@asynccontextmanager
async def running_platform(state: Path, *, limited: bool = False) -> AsyncIterator[Platform]:
    """`workspace up` until the block ends."""
    process = launched(state, limited=limited)
    try:
        connection = await connected(state, process)
        url = EmbeddedPostgres(StateDir(state)).url()
        async with (
            httpx2.AsyncClient(
                base_url=connection["baseUrl"],
                headers={"Authorization": f"Bearer {connection['apiKey']}"},
                timeout=60,
            ) as http,
            await psycopg.AsyncConnection.connect(url, autocommit=True) as database,
        ):
            yield Platform(connection, state / "pids", http, url, database)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


async def connected(state: Path, process: subprocess.Popen[bytes]) -> dict[str, str]:
    """What a platform says of itself once all of it is ready."""
    path = state / "connection.json"
    deadline = time.monotonic() + READY_SECONDS
    while not path.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit("The platform did not come up; see its logs.")
        await asyncio.sleep(0.1)
    connection: dict[str, str] = json.loads(path.read_text())
    return connection
