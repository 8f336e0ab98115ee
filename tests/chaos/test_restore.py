"""Backup and restore of a platform, by the commands of temporal/RUNBOOK.md as they stand there."""

import asyncio
import json
import os
import signal
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from temporalio.client import Client

from runtime.temporal.families import Family
from tests.support.engine import graph, node
from tests.support.patience import ENOUGH, eventually
from tests.support.runbook import BLOCKS

pytestmark = [pytest.mark.crash, pytest.mark.takes(seconds=60)]

Json = dict[str, Any]

BACK_UP, RESTORE_POSTGRESQL, RESTORE_TEMPORAL = BLOCKS["Back up and restore"]
SWEEP_SECONDS = 0.5
"""Between two sweeps of the reconciler: each takes a tenth of a second of a processor."""
OPTIONS = "--port=0 --temporal-port=0 --ui-port=0"


class Checkout:
    """A checkout with a state directory, and the platform that runs on it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.environment = {
            **{
                k: v for k, v in os.environ.items() if not k.startswith(("WORKSPACE_", "TEMPORAL_"))
            },
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        self.environment.pop("DATABASE_URL", None)
        self.connection: Json = {}
        self.http = httpx2.AsyncClient(trust_env=False, timeout=ENOUGH)
        self._temporal: Client | None = None

    async def sh(self, script: str) -> None:
        """Execute a block of the runbook to its end."""
        process = await self._start(script)
        assert await process.wait() == 0, self.output()

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

    async def _start(self, script: str) -> asyncio.subprocess.Process:
        with (self.directory / "output").open("wb") as output:
            return await asyncio.create_subprocess_exec(
                *("bash", "-euo", "pipefail", "-c", script),
                cwd=self.directory,
                env=self.environment,
                stdout=output,
                stderr=output,
            )

    # ---- its API

    async def call(self, path: str, body: Json | None = None) -> Json:
        """The data of an answer below the workspace; a GET without a body."""
        answer = await self.answer(path, body)
        assert answer.is_success, answer.text
        return dict(answer.json()["data"])

    async def answer(self, path: str, body: Json | None = None) -> httpx2.Response:
        url = f"{self.connection['baseUrl']}/v1/workspaces/{self.connection['workspaceId']}{path}"
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
        schedule = Family.MAINTENANCE.workflow_id("reconcile")
        await self._temporal.get_schedule_handle(schedule).trigger()


@pytest_asyncio.fixture
async def checkout(tmp_path: Path) -> AsyncIterator[Checkout]:
    (tmp_path / ".venv").symlink_to(sys.prefix)
    checkout = Checkout(tmp_path)
    yield checkout
    await checkout.http.aclose()


@pytest.mark.long
async def test_a_platform_goes_on_whichever_backup_it_is_given(checkout: Checkout) -> None:
    async with checkout.up("workspace up"):
        known = checkout.connection
        database = await checkout.call("/databases", {"label": "Effects", "fields": []})
        automation = await _publish(checkout, database["id"])
        ended, waiting = [await _run(checkout, automation) for _ in range(2)]
        for run in (ended, waiting):
            await checkout.wait_for(run, "waiting")
        await checkout.sh(BACK_UP)
        _is_private(checkout.directory / "backup")
        await checkout.approve(ended)
        lost = await _run(checkout, automation)
        await checkout.wait_for(lost, "waiting")

    # An older PostgreSQL: it knows neither the end of one run nor the other run at all.
    async with checkout.up(RESTORE_POSTGRESQL):
        _is_the_same(checkout.connection, known)
        assert (await checkout.answer(lost)).status_code == 404
        await checkout.approve(ended)
        assert await _records(checkout, database["id"]) == ["done"]
        late = await _run(checkout, automation)
        await checkout.wait_for(late, "waiting")

    # An older Temporal: it knows the first run as open, and the last one not at all.
    async with checkout.up(RESTORE_TEMPORAL):
        _is_the_same(checkout.connection, known)
        await checkout.approve(late)
        assert (await checkout.call(ended))["status"] == "succeeded"
        assert await _records(checkout, database["id"]) == ["done", "done"]

    # PostgreSQL alone.
    await checkout.sh("rm -r .state")
    async with checkout.up(RESTORE_POSTGRESQL):
        _is_the_same(checkout.connection, known)
        for run in (ended, waiting):
            await checkout.approve(run)
        assert await _records(checkout, database["id"]) == ["done", "done"]


def _is_private(backup: Path) -> None:
    """No other account of the machine reads any of it."""
    modes = {one: stat.S_IMODE(one.stat().st_mode) for one in (backup, *backup.rglob("*"))}
    assert {one.name for one in modes} >= {"workspace.dump", "secrets.json", "temporal.db"}
    wrong = {
        one: oct(mode) for one, mode in modes.items() if mode != (0o700 if one.is_dir() else 0o600)
    }
    assert wrong == {}


def _is_the_same(connection: Json, known: Json) -> None:
    """A client goes on with what it was told before."""
    for name in ("workspaceId", "apiKey"):
        assert connection[name] == known[name]


async def _publish(checkout: Checkout, database_id: str) -> str:
    content = graph(
        node("ask", "approval", role="owner", allowSelf=True),
        node("done", "create_record", databaseId=database_id, title="done"),
        edges=[("ask", "done", "approved")],
    )
    made = await checkout.call(
        "/automations", {"label": "Story", "enabled": True, "graph": content}
    )
    path = f"/automations/{made['id']}"
    await checkout.call(f"{path}/publish", {})
    return path


async def _run(checkout: Checkout, automation: str) -> str:
    run = await checkout.call(f"{automation}/run", {})
    return f"{automation}/runs/{run['id']}"


async def _records(checkout: Checkout, database_id: str) -> list[str]:
    url = f"{checkout.connection['baseUrl']}/v1/databases/{database_id}/records"
    headers = {"Authorization": f"Bearer {checkout.connection['apiKey']}"}
    records = (await checkout.http.get(url, headers=headers)).json()["data"]["records"]
    return [one["title"] for one in records]
