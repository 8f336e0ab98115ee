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
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from bench.endpoint import endpoint
from bench.fairness import another_workspace
from bench.figures import Figure, quantile
from bench.graphs import THREE_QUICK
from bench.platform import Platform, running_platform
from bench.rounds import Rounds, say
from models.core.access.rules import Scope

SAMPLES = 100
"""Times of each act, without and beside a flood."""
LONGEST = 300.0
"""Seconds of measuring at most. An act that has too few times by then is measured by those."""
LEAD = 5.0
"""Seconds for which a flood runs before it is measured."""
PAUSE = 0.05
FELT = 3.0
LEAST_CALLS = 10
"""Calls of a flood. Fewer are none, and then nothing was measured."""
LEAST = 100.0
"""Milliseconds that are always allowed."""
REFUSED = {409, 429, 503}
"""Answers after which an act is tried again."""
ONE_ROW = {"label": "One", "kind": "inline", "format": "csv", "content": "bixhCjEsMgo="}

Times = Mapping[str, list[float]]


async def floods(scratch: Path, names: Sequence[str], rounds: Rounds) -> list[Figure]:
    """For each flood the 95th percentile of what the neighbour does, against the same in quiet.

    Each round of a flood has a platform of its own, with the rate limits of production: the
    backlog of a flood would disturb the quiet before the next one.
    """
    figures: dict[str, Figure] = {}
    for place, (_, name) in enumerate(product(rounds, names)):
        alone, beside = await _flooded(scratch / f"flooded-{place}", name)
        for act, times in beside.items():
            label = f"{act} beside {name}, p95"
            figure = figures.setdefault(label, Figure(label, "ms", at_most=FELT))
            quiet_ms, ours = (quantile(those, 0.95) * 1000 for those in (alone[act], times))
            figure.add(ours, max(quiet_ms, LEAST / FELT))
            figure.tail(times, alone[act])
            say(f"  {label}: {ours:.0f} ms, in quiet {quiet_ms:.0f} ms, {len(times)} times")
    return list(figures.values())


async def _flooded(state: Path, name: str) -> tuple[Times, Times]:
    """Seconds of each act in quiet, and beside a flood."""
    async with (
        running_platform(state, limited=True) as platform,
        another_workspace(platform) as quiet,
        another_workspace(platform) as noisy,
        _neighbour(quiet, noisy) as acts,
    ):
        alone = await _measured(acts)
        async with _flooding(name, noisy):
            await asyncio.sleep(LEAD)
            return alone, await _measured(acts)


Act = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Neighbour:
    """The quiet workspace, what it has prepared for its acts, and the noisy one."""

    platform: Platform
    noisy: Platform
    automation_id: str
    endpoint_id: str
    arrived: asyncio.Event
    """A delivery came to the endpoint."""

    @property
    def acts(self) -> Mapping[str, Act]:
        return {
            "a GET": self._get,
            "a run of three nodes": self._run,
            "an import of one row": partial(self._import_row, self.platform),
            "an import of the flooding workspace": partial(self._import_row, self.noisy),
            "a delivery": self._deliver,
        }

    async def _get(self) -> None:
        (await self.platform.http.get(self.platform.automations)).raise_for_status()

    async def _run(self) -> None:
        await self.platform.run_one(self.automation_id)

    async def _import_row(self, platform: Platform) -> None:
        path = f"{_place(platform)}/data-sources/import-spreadsheet"
        body = {**ONE_ROW, "clientMutationId": f"quiet-{uuid.uuid4()}"}
        # A call with the id of an open import waits for its end; a refusal counts as time.
        while (answer := await platform.http.post(path, json=body)).status_code in REFUSED:
            await asyncio.sleep(PAUSE)
        answer.raise_for_status()

    async def _deliver(self) -> None:
        self.arrived.clear()
        path = f"{_place(self.platform)}/webhook-endpoints/{self.endpoint_id}/test"
        await self.platform.post(path, {})
        await self.arrived.wait()


@asynccontextmanager
async def _neighbour(quiet: Platform, noisy: Platform) -> AsyncIterator[Mapping[str, Act]]:
    """The acts of a quiet workspace by name, each done once before."""
    automation_id = await quiet.publish("Quiet", THREE_QUICK)
    arrived = asyncio.Event()
    async with endpoint(arrived) as url:
        body = {"url": url, "eventTypes": ["workspace.deleted"]}
        hook = await quiet.post(f"{_place(quiet)}/webhook-endpoints", body)
        acts = Neighbour(quiet, noisy, automation_id, hook["id"], arrived).acts
        for act in acts.values():
            await act()
        yield acts


def _place(platform: Platform) -> str:
    return f"/v1/workspaces/{platform.connection['workspaceId']}"


async def _measured(acts: Mapping[str, Act]) -> Times:
    """Seconds of each act, repeated until every act has its times."""
    times: dict[str, list[float]] = {name: [] for name in acts}
    ends = time.perf_counter() + LONGEST

    async def repeat(name: str, act: Act) -> None:
        while min(map(len, times.values())) < SAMPLES and time.perf_counter() < ends:
            started = time.perf_counter()
            await act()
            times[name].append(time.perf_counter() - started)
            await asyncio.sleep(PAUSE)

    await asyncio.gather(*(repeat(*one) for one in acts.items()))
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
