"""The platform of the demo: of its own, in a directory that is removed with it."""

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from rich.console import Console

from cli.console import terminal
from cli.demo.endpoint import FlakyEndpoint
from cli.demo.story import play
from cli.supervisor.errors import StartError
from cli.supervisor.files import tail
from cli.supervisor.state import StateDir

_START_SECONDS = 120
_SETTINGS = ("WORKSPACE_", "TEMPORAL_", "AWS_", "DATABASE_")


async def run_demo() -> None:
    """Run the demo on a platform of its own, and leave nothing of it behind. Raises StartError."""
    console = terminal()
    endpoint = FlakyEndpoint()
    async with endpoint.serving(), _platform(endpoint, console) as state:
        waits = sys.stdin.isatty() and console.is_terminal
        await play(state, endpoint, console, waits=waits)
        if waits:
            console.print("[dim]These pages are there until you press Enter.[/]")
            await _line()
    console.print("The platform of the demo is gone. `make up` starts one that stays.")


@asynccontextmanager
async def _platform(endpoint: FlakyEndpoint, console: Console) -> AsyncIterator[StateDir]:
    """A running platform, whose workers may call the endpoint and nothing else that is private."""
    home = _directory()
    state = StateDir(home / "state")
    console.print(f"Starting a platform of the demo's own in {home}.", soft_wrap=True)
    try:
        async with _running(state, endpoint, home / "up.log"):
            yield state
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _directory() -> Path:
    """A new directory; when root starts the platform, PostgreSQL's account passes through it."""
    home = Path(tempfile.mkdtemp(prefix="workspace-demo-"))
    home.chmod(0o711)
    return home


@asynccontextmanager
async def _running(state: StateDir, endpoint: FlakyEndpoint, output: Path) -> AsyncIterator[None]:
    ours = {key: value for key, value in os.environ.items() if not key.startswith(_SETTINGS)}
    options = [f"--state-dir={state.root}", "--port=0", "--temporal-port=0", "--ui-port=0"]
    with output.open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "cli.main", "up", *options),
            env=ours | {"WORKSPACE_OUTBOUND_ALLOW": endpoint.address},
            stdout=log,
            stderr=log,
            # Ctrl-C is for the demo, which ends it then.
            start_new_session=True,
        )
    try:
        await _ready(state, process, output)
        yield
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await process.wait()


async def _ready(state: StateDir, process: asyncio.subprocess.Process, output: Path) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _START_SECONDS
    while process.returncode is None and loop.time() < deadline:
        if state.connection.exists():
            return
        await asyncio.sleep(0.1)
    raise StartError(f"The platform did not become ready:\n{tail(output)}")


async def _line() -> None:
    """Wait for a line, or the end, of what is typed."""
    typed = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(sys.stdin, typed.set)
    await typed.wait()
    loop.remove_reader(sys.stdin)
