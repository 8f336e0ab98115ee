"""Floods: what a quiet workspace feels while another asks for as much as its limits allow."""

import asyncio
import json
import os
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bench.fairness import another_workspace
from bench.figures import Figure, quantile
from bench.flooders import FLOODS
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
LEAST = 100.0
"""Milliseconds that are always allowed."""

Times = Mapping[str, list[float]]


async def floods(scratch: Path) -> list[Figure]:
    """For each flood the 95th percentile of what the neighbour does, against the same in quiet.

    The platform is one with its rate limits as they come.
    """
    figures = []
    async with running_platform(scratch / "flooded", limited=True) as platform:
        for name in FLOODS:
            async with (
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
                say(f"  {figures[-1].name}: {figures[-1].medians[0]:.0f} ms")
    return figures


def _figure(name: str, beside: list[float], alone: list[float]) -> Figure:
    figure = Figure(f"{name}, p95", "ms", at_most=FELT)
    floor = max(quantile(alone, 0.95) * 1000, LEAST / FELT)
    figure.add(quantile(beside, 0.95) * 1000, floor)
    figure.tail(beside, alone)
    return figure


Act = Callable[[], Awaitable[None]]


@asynccontextmanager
async def _neighbour(quiet: Platform) -> AsyncIterator[Mapping[str, Act]]:
    """What the quiet workspace does, by name."""
    place = f"/v1/workspaces/{quiet.connection['workspaceId']}"
    automation_id = await quiet.publish("Quiet", THREE_QUICK)
    row = {"label": "One", "kind": "inline", "format": "csv", "content": "bixhCjEsMgo="}
    numbers = iter(range(1_000_000))
    arrived = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()
        arrived.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    hook = await quiet.post(
        f"{place}/webhook-endpoints",
        {"url": f"http://127.0.0.1:{port}/", "eventTypes": ["workspace.deleted"]},
    )

    async def get() -> None:
        (await quiet.http.get(f"{place}/automations")).raise_for_status()

    async def run() -> None:
        await quiet.run_one(automation_id)

    async def import_row() -> None:
        named = {**row, "clientMutationId": f"quiet-{next(numbers)}"}
        path = f"{place}/data-sources/import-spreadsheet"
        while (answer := await quiet.http.post(path, json=named)).status_code == 409:
            pass  # It goes on, and the call with its id waits for it once more.
        answer.raise_for_status()

    async def deliver() -> None:
        arrived.clear()
        await quiet.post(f"{place}/webhook-endpoints/{hook['id']}/test", {})
        await arrived.wait()

    acts = {
        "a GET": get,
        "a run of three nodes": run,
        "an import of one row": import_row,
        "a delivery": deliver,
    }
    for act in acts.values():
        await act()
    try:
        yield acts
    finally:
        server.close()


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
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _key(noisy: Platform) -> str:
    """A key of the workspace that may do everything."""
    place = f"/v1/workspaces/{noisy.connection['workspaceId']}/api-keys"
    body = {"name": "Flood", "scopes": [scope.value for scope in Scope]}
    return str((await noisy.post(place, body))["token"])
