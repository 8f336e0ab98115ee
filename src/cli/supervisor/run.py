"""From start to stop: own the state directory, run the platform, end it on a signal."""

import asyncio
import os
import signal
import sys
import webbrowser

from cli.console import terminal
from cli.shutdown import until_stopped
from cli.supervisor.children import clear_strays
from cli.supervisor.platform import Platform, UpOptions
from cli.supervisor.state import StateDir
from cli.supervisor.status import Status


async def run(options: UpOptions) -> None:
    """Run the platform until SIGINT, SIGTERM or SIGHUP. Raises StartError."""
    state = StateDir(options.state_dir)
    state.prepare()
    with state.locked(), Status(terminal()) as status:
        state.unpublish()
        for name in await asyncio.to_thread(clear_strays, state):
            status.say(f"Ended {name}, which an earlier start had left behind.")
        platform = Platform(options, state, status)
        stopping = _stop_on_signals(platform)
        try:
            await until_stopped(stopping, _start(platform, state, status))
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
                f"Console       {connection['signInUrl']}",
                "              (signs you in once; `workspace sign-in` prints another link)",
                f"API           {connection['baseUrl']}",
                f"Documentation {connection['docsUrl']}",
                f"Temporal UI   {connection['temporalUiUrl'] or '(not known)'}",
                f"Workspace     {connection['workspaceId']}",
                # The key has all scopes, and output ends up in logs.
                f"API key       apiKey in {state.connection}",
                "",
                f"The same as JSON: {state.connection}. Logs: {state.logs}. Ctrl-C stops.",
                "",
            ]
        )
    )
    if has_screen():
        await asyncio.to_thread(webbrowser.open, connection["signInUrl"])
    await platform.worker_is_ready()
    await asyncio.Event().wait()


def has_screen() -> bool:
    """True for a person at a terminal of a machine that can show a browser's window."""
    if not sys.stdout.isatty() or os.environ.get("WORKSPACE_OPEN_BROWSER") == "0":
        return False
    return sys.platform == "darwin" or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))


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
