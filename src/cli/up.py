"""`workspace up`: the whole platform with one command."""

import asyncio
import os
import signal
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.console import reported, terminal
from cli.supervisor.children import clear_strays
from cli.supervisor.platform import STOP_ORDER, Platform, UpOptions
from cli.supervisor.state import StateDir
from cli.supervisor.status import Status


def up(
    state_dir: Annotated[
        Path, typer.Option(envvar="WORKSPACE_STATE_DIR", help="Where all data are kept.")
    ] = Path(".state"),
    port: Annotated[
        int, typer.Option(envvar="WORKSPACE_PORT", help="Port of the API; 0 for a free one.")
    ] = 8000,
    temporal_port: Annotated[
        int, typer.Option(help="Port of the embedded Temporal; 0 for a free one.")
    ] = 7233,
    ui_port: Annotated[
        int, typer.Option(help="Port of the embedded Temporal's UI; 0 for a free one.")
    ] = 8233,
    database_url: Annotated[
        str | None,
        typer.Option(envvar="DATABASE_URL", help="Use this PostgreSQL instead of the embedded."),
    ] = None,
    temporal_address: Annotated[
        str | None,
        typer.Option(envvar="TEMPORAL_ADDRESS", help="Use this Temporal instead of the embedded."),
    ] = None,
) -> None:
    """Start the platform and keep it running until Ctrl-C."""
    options = UpOptions(
        state_dir=state_dir,
        port=port,
        temporal_port=temporal_port,
        ui_port=ui_port,
        database_url=database_url or None,
        temporal_address=temporal_address or None,
    )
    # Logs, sockets and databases are for the account that runs the platform alone.
    os.umask(0o077)
    with reported():
        asyncio.run(_run(options))


async def _run(options: UpOptions) -> None:
    state = StateDir(options.state_dir)
    state.prepare()
    with state.locked(), Status(terminal()) as status:
        state.unpublish()
        for name in await asyncio.to_thread(clear_strays, state, STOP_ORDER):
            status.say(f"Ended a {name} that an earlier start left behind.")
        platform = Platform(options, state, status)
        stopping = _stop_on_signals(platform)
        try:
            await _until(stopping, _start(platform, state, status))
        finally:
            state.unpublish()
            await platform.stop()


async def _start(platform: Platform, state: StateDir, status: Status) -> None:
    connection = await platform.start()
    state.publish(connection)
    status.say(
        "\n".join(
            [
                "",
                f"API           {connection['baseUrl']}",
                f"Documentation {connection['docsUrl']}",
                f"Temporal UI   {connection['temporalUiUrl'] or '(not known)'}",
                f"Workspace     {connection['workspaceId']}",
                f"API key       {connection['apiKey']}",
                "",
                f"The same as JSON: {state.connection}. Logs: {state.logs}. Ctrl-C stops.",
                "",
            ]
        )
    )
    await asyncio.Event().wait()


async def _until(stopping: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """Run the work until it fails or a signal asks to stop."""
    working = asyncio.create_task(work)
    waiting = asyncio.create_task(stopping.wait())
    await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    working.cancel()
    with suppress(asyncio.CancelledError):
        await working


def _stop_on_signals(platform: Platform) -> asyncio.Event:
    """Set by the first signal; the second one ends all children at once."""
    stopping = asyncio.Event()

    def on_signal() -> None:
        if stopping.is_set():
            platform.kill()
        stopping.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, on_signal)
    return stopping
