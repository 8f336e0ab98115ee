"""The platform that the demo uses: the one that is running, else one started for it."""

import asyncio
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from rich.console import Console

from cli.console import terminal
from cli.demo.story import play
from cli.supervisor.errors import StartError
from cli.supervisor.state import StateDir

_START_SECONDS = 120


async def run_demo(state_dir: Path) -> None:
    """Run the demo on the platform of a state directory. Raises StartError."""
    state = StateDir(state_dir)
    console = terminal()
    async with _running(state, console):
        await play(state, console)


@asynccontextmanager
async def _running(state: StateDir, console: Console) -> AsyncIterator[None]:
    if state.is_owned():
        await _ready(state, state.is_owned)
        yield
        return
    console.print(f"No platform runs on {state.root}: starting one.")
    options = [f"--state-dir={state.root}", "--port=0", "--temporal-port=0", "--ui-port=0"]
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "cli.main", "up", *options)
    try:
        await _ready(state, lambda: process.returncode is None)
        yield
        console.print("This platform ends with the demo; one that `make up` runs stays.")
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await process.wait()


async def _ready(state: StateDir, is_alive: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while is_alive() and time.monotonic() < deadline:
        if state.connection.exists():
            return
        await asyncio.sleep(0.1)
    raise StartError(f"The platform on {state.root} did not become ready.")
