"""Floods: what a quiet workspace feels while another asks for as much as its limits allow."""

import asyncio
import json
import os
import sys
import time
import uuid
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.endpoint import endpoint
from bench.fairness import another_workspace
from bench.figures import Figure, quantile
from bench.graphs import THREE_QUICK
from bench.platform import Platform, running_platform
from bench.rounds import say
from models.core.access.rules import Scope

QUIET, BESIDE = 8.0, 15.0
"""Seconds of measuring without and beside a flood."""
LEAD = 5.0
"""Seconds for which a flood goes on before it is measured."""
PAUSE = 0.2
FELT = 3.0
LEAST_CALLS = 10
"""Calls of a flood. Fewer are none, and then nothing was measured."""
LEAST = 100.0
"""Milliseconds that are always allowed."""
ONE_ROW = {"label": "One", "kind": "inline", "format": "csv", "content": "bixhCjEsMgo="}

Times = Mapping[str, list[float]]


async def floods(scratch: Path, names: Sequence[str]) -> list[Figure]:
    """For each flood the 95th percentile of what the neighbour does, against the same in quiet.

    Each has a platform of its own, with its rate limits as they come: what a flood leaves behind
    would make the quiet before the next one none.
    """
    figures = []
    for place, name in enumerate(names):
        async with (
            running_platform(scratch / f"flooded-{place}", limited=True) as platform,
            another_workspace(platform) as quiet,
            another_workspace(platform) as noisy,
            _neighbour(quiet) as acts,
        ):
            alone = await _measured(acts, QUIET)
            async with _flooding(name, noisy):
                await asyncio.sleep(LEAD)
                beside = await _measured(acts, BESIDE)
        for act in acts:
            figures.append(_figure(f"{act} beside {name}", beside[act], alone[act]))
            ours, quiet_ms = figures[-1].medians[0], quantile(alone[act], 0.95) * 1000
            say(f"  {figures[-1].name}: {ours:.0f} ms, in quiet {quiet_ms:.0f} ms")
    return figures


def _figure(name: str, beside: list[float], alone: list[float]) -> Figure:
    figure = Figure(f"{name}, p95", "ms", at_most=FELT)
    floor = max(quantile(alone, 0.95) * 1000, LEAST / FELT)
    figure.add(quantile(beside, 0.95) * 1000, floor)
    figure.tail(beside, alone)
    return figure


Act = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Neighbour:
    """The quiet workspace, and what it has prepared for its acts."""

    platform: Platform
    automation_id: str
    endpoint_id: str
    arrived: asyncio.Event
    """A delivery came to the endpoint."""

    @property
    def acts(self) -> Mapping[str, Act]:
        return {
            "a GET": self._get,
            "a run of three nodes": self._run,
            "an import of one row": self._import_row,
            "a delivery": self._deliver,
        }

    async def _get(self) -> None:
        (await self.platform.http.get(self.platform.automations)).raise_for_status()

    async def _run(self) -> None:
        await self.platform.run_one(self.automation_id)

    async def _import_row(self) -> None:
        path = f"{_place(self.platform)}/data-sources/import-spreadsheet"
        body = {**ONE_ROW, "clientMutationId": f"quiet-{uuid.uuid4()}"}
        while (answer := await self.platform.http.post(path, json=body)).status_code == 409:
            pass  # It goes on, and the call with its id waits for it once more.
        answer.raise_for_status()

    async def _deliver(self) -> None:
        self.arrived.clear()
        path = f"{_place(self.platform)}/webhook-endpoints/{self.endpoint_id}/test"
        await self.platform.post(path, {})
        await self.arrived.wait()


@asynccontextmanager
async def _neighbour(quiet: Platform) -> AsyncIterator[Mapping[str, Act]]:
    """The acts of a quiet workspace by name, each done once before."""
    automation_id = await quiet.publish("Quiet", THREE_QUICK)
    arrived = asyncio.Event()
    async with endpoint(arrived) as url:
        body = {"url": url, "eventTypes": ["workspace.deleted"]}
        hook = await quiet.post(f"{_place(quiet)}/webhook-endpoints", body)
        acts = Neighbour(quiet, automation_id, hook["id"], arrived).acts
        for act in acts.values():
            await act()
        yield acts


def _place(platform: Platform) -> str:
    return f"/v1/workspaces/{platform.connection['workspaceId']}"


async def _measured(acts: Mapping[str, Act], seconds: float) -> Times:
    """Seconds of each act, over and over, while so many seconds pass; the last are waited for."""
    times: dict[str, list[float]] = {name: [] for name in acts}
    ends = time.perf_counter() + seconds

    async def over_and_over(name: str, act: Act) -> None:
        while time.perf_counter() < ends:
            started = time.perf_counter()
            await act()
            times[name].append(time.perf_counter() - started)
            await asyncio.sleep(PAUSE)

    await asyncio.gather(*(over_and_over(*one) for one in acts.items()))
    return times


@asynccontextmanager
async def _flooding(name: str, noisy: Platform) -> AsyncIterator[None]:
    """The flood in a process of its own, which takes no time of the measuring one."""
    connection: dict[str, Any] = {
        "baseUrl": noisy.connection["baseUrl"],
        "workspaceId": noisy.connection["workspaceId"],
        "token": await _key(noisy),
    }
    command = [sys.executable, "-m", "bench.flooders", name]
    process: Process = await asyncio.create_subprocess_exec(
        *command, stdin=PIPE, stdout=PIPE, env=os.environ
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(connection).encode() + b"\n")
        assert await process.stdout.readline() == b"ready\n", "The flood did not begin."
        yield
        assert process.returncode is None, "The flood ended early."
        process.stdin.close()
        answers = json.loads(await process.stdout.readline())
        say(f"  {name}: {answers['done']} calls done, {answers['refused']} refused")
        assert answers["done"] + answers["refused"] >= LEAST_CALLS, "Nothing was flooded."
        assert answers["done"], "Everything was refused."
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _key(noisy: Platform) -> str:
    """A key of the workspace that may do everything."""
    body = {"name": "Flood", "scopes": [scope.value for scope in Scope]}
    return str((await noisy.post(f"{_place(noisy)}/api-keys", body))["token"])
