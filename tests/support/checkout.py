"""A checkout with a state directory, driven by the commands of temporal/RUNBOOK.md."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from temporalio.client import Client

from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.patience import ENOUGH, eventually
from tests.support.runbook import BLOCKS

Json = dict[str, Any]

BACK_UP, RESTORE_POSTGRESQL, RESTORE_TEMPORAL = BLOCKS["Back up and restore"]
SWEEP_SECONDS = 0.5
"""Between two sweeps of the reconciler: each takes a tenth of a second of a processor."""
OPTIONS = "--port=0 --temporal-port=0 --ui-port=0"


class Checkout:
    """A checkout with a state directory, and the platform that runs on it."""

    def __init__(self, directory: Path, commands: Path = Path(sys.executable).parent) -> None:
        (directory / ".venv").symlink_to(commands.parent)
        self.directory = directory
        self.environment = {
            **{
                k: v for k, v in os.environ.items() if not k.startswith(("WORKSPACE_", "TEMPORAL_"))
            },
            "PATH": f"{commands}:{os.environ['PATH']}",
        }
        self.environment.pop("DATABASE_URL", None)
        self.connection: Json = {}
        self.http = httpx2.AsyncClient(trust_env=False, timeout=ENOUGH)
        self._temporal: Client | None = None

    async def sh(self, script: str) -> str:
        """Execute a block of a page to its end, and give what it prints."""
        process = await self._start(script, "printed")
        ended = await asyncio.wait_for(process.wait(), ENOUGH)
        printed = (self.directory / "printed").read_text()
        assert ended == 0, f"{script}\n{printed}"
        return printed

    @asynccontextmanager
    async def up(self, script: str) -> AsyncIterator["Checkout"]:
        """The platform that a block starts, once it is up, until the block of code ends."""
        process = await self._start(script.replace("workspace up", f"exec workspace up {OPTIONS}"))
        published = self.directory / ".state" / "connection.json"

        async def is_up() -> bool:
            assert process.returncode is None, self.output()
            return published.exists() and published.with_name("worker.heartbeat").exists()

        try:
            await eventually(is_up, what="the start of the platform")
            self.connection = json.loads(published.read_text())
            self._temporal = None
            yield self
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
            await asyncio.wait_for(process.wait(), ENOUGH)

    def output(self) -> str:
        return (self.directory / "output").read_text()

    async def _start(self, script: str, file: str = "output") -> asyncio.subprocess.Process:
        with (self.directory / file).open("wb") as output:
            return await asyncio.create_subprocess_exec(
                *("bash", "-euo", "pipefail", "-c", script),
                cwd=self.directory,
                env=self.environment,
                stdout=output,
                stderr=output,
            )

    # ---- its API

    async def call(self, path: str, body: Json | None = None) -> Json:
        """The data of an answer; a GET without a body."""
        answer = await self.answer(path, body)
        assert answer.is_success, answer.text
        return dict(answer.json()["data"])

    async def put(self, path: str, body: Json) -> None:
        """Put a value below the workspace."""
        url = f"{self.connection['baseUrl']}/v1/workspaces/{self.connection['workspaceId']}{path}"
        headers = {"Authorization": f"Bearer {self.connection['apiKey']}"}
        answer = await self.http.put(url, headers=headers, json=body)
        assert answer.is_success, answer.text

    async def answer(self, path: str, body: Json | None = None) -> httpx2.Response:
        """The answer to a path below the workspace, or to one that begins with `/v1`."""
        below = (
            "" if path.startswith("/v1/") else f"/v1/workspaces/{self.connection['workspaceId']}"
        )
        url = f"{self.connection['baseUrl']}{below}{path}"
        headers = {"Authorization": f"Bearer {self.connection['apiKey']}"}
        if body is None:
            return await self.http.get(url, headers=headers)
        return await self.http.post(url, headers=headers, json=body)

    async def wait_for(self, run: str, status: str) -> None:
        """Wait until a run has a status, asking the reconciler not to wait for its time."""

        async def has_it() -> bool:
            if (await self.call(run))["status"] == status:
                return True
            await self._sweep()
            await asyncio.sleep(SWEEP_SECONDS)
            return False

        await eventually(has_it, what=f"{status} of {run}")

    async def approve(self, run: str) -> None:
        """Resume a run that waits, and wait for its end."""
        await self.wait_for(run, "waiting")
        await self.call(f"{run}/nodes/ask/resume", {"decision": "approved"})
        await self.wait_for(run, "succeeded")

    async def _sweep(self) -> None:
        if self._temporal is None:
            self._temporal = await Client.connect(self.connection["temporalAddress"])
        schedule = WorkflowKind.MAINTENANCE.workflow_id("reconcile")
        await self._temporal.get_schedule_handle(schedule).trigger()
