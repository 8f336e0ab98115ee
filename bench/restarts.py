"""Restarts: the time until the API answers again after a kill, against the promise."""

import asyncio
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import httpx2
import psutil

from bench.figures import Figure
from bench.platform import connected, launched
from bench.rounds import Rounds
from cli.supervisor.state import StateDir, read_object

SECONDS = {"the supervisor": 8.0, "everything": 8.0, "the API": 5.0}
"""The promises on two cores that no other process uses."""
SETTLE = 5.0
"""Seconds from the start of a platform until it is killed."""


async def restarts(scratch: Path, rounds: Rounds) -> list[Figure]:
    """Seconds from the start that follows a kill, or from the kill that none has to follow."""
    state = StateDir(scratch / "restarted")
    figures = {
        name: Figure(f"API answers after a kill of {name}", "s", at_most=1.0) for name in SECONDS
    }
    process = launched(state.root)
    try:
        await connected(state.root, process)
        for _ in rounds:
            for name, figure in figures.items():
                await asyncio.sleep(SETTLE)
                killed = _pid(state)
                if name == "the API":
                    os.kill(killed, signal.SIGKILL)
                    began = time.monotonic()
                else:
                    _kill(process.pid, with_children=name == "everything")
                    process.wait()
                    state.unpublish()
                    began = time.monotonic()
                    process = launched(state.root)
                await _answers(state, killed)
                figure.add(time.monotonic() - began, SECONDS[name])
                await connected(state.root, process)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)
    return [*figures.values()]


def _kill(pid: int, *, with_children: bool) -> None:
    supervisor = psutil.Process(pid)
    children = supervisor.children(recursive=True) if with_children else []
    for one in (supervisor, *children):
        with suppress(psutil.NoSuchProcess):
            one.kill()


def _pid(state: StateDir) -> int:
    return int(read_object(state.pids / "api.json").get("pid", 0))


async def _answers(state: StateDir, killed: int) -> None:
    """Wait for an answer of an API that is not the one that was killed."""
    url = f"http://127.0.0.1:{state.ports()['api']}/readyz"
    async with httpx2.AsyncClient(trust_env=False) as http:
        while True:
            with suppress(httpx2.TransportError):
                if _pid(state) not in {0, killed} and (await http.get(url)).status_code == 200:
                    return
            await asyncio.sleep(0.02)
