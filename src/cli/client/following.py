"""Following a run to its end: how the command ends, the events it reads, the progress shown."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import httpx2
import typer
from pydantic_core import from_json
from rich.console import Console

from cli.api_client import ApiClient, Json, read
from cli.console import ProgressBars, StartError, complain, reported

STATE_DIR = Annotated[
    Path, typer.Option(envvar="WORKSPACE_STATE_DIR", help="State directory of the platform.")
]
URL = Annotated[
    str | None, typer.Option("--url", help="URL of a remote platform, e.g. https://example.com.")
]
API_KEY = Annotated[
    str | None, typer.Option(envvar="WORKSPACE_API_KEY", help="API key, used with --url.")
]

Place = tuple[Path, str | None, str | None]
"""State directory, URL and API key: the place of the platform."""

INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it."""


def run_command(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a command; exits with 1 for a refusal, and with 130 when it is interrupted."""
    try:
        with reported():
            asyncio.run(coroutine)
    except GivenUpError as given_up:
        complain(str(given_up))
        raise typer.Exit(INTERRUPTED) from None
    except KeyboardInterrupt:
        complain("Interrupted. Nothing was changed.")
        raise typer.Exit(INTERRUPTED) from None


_SILENCE_SECONDS = 30
"""A silent stream is lost after this: it sends a comment every ten seconds."""
_BUSY = frozenset({429, 503})
_TRIES = 10
"""Failures in a row after which the platform counts as lost."""


class _BusyError(Exception):
    """The platform has no room for another stream at the moment."""

    retryable = False


async def follow(
    client: ApiClient,
    path: str,
    page: str,
    show: Callable[[Json], None],
    enough: Callable[[Json], bool] = lambda _: False,
) -> None:
    """Show how far the run at `path` has come until it has ended, or that is `enough`.

    Raises StartError, which names the `page` of the run.
    """
    failures = 0
    while failures < _TRIES:
        try:
            async for name, data in _events(client, path):
                failures = 0
                if name == "end":
                    return
                show(data)
                if enough(data):
                    return
        except (httpx2.TransportError, _BusyError):
            failures += 1
            await asyncio.sleep(min(0.5 * failures, 3))
    raise StartError(
        f"Lost the connection to {client.base_url}. The run continues: {client.base_url}{page}"
    )


async def _events(client: ApiClient, path: str) -> AsyncIterator[tuple[str, Json]]:
    name = ""
    async with client.http.stream("GET", f"{path}/events", timeout=_SILENCE_SECONDS) as answer:
        if answer.status_code in _BUSY:
            raise _BusyError
        if answer.is_error:
            await answer.aread()
            read(answer)
        async for line in answer.aiter_lines():
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                yield name, from_json(line.removeprefix("data: "))


class Display(ProgressBars):
    """One bar at a time: each stage has a bar and a time of its own."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._stage = ""
        self._shown_at = 0.0

    def sent(self, count: int, size: int) -> None:
        """Show the number of bytes of the file that were sent."""
        self._show_stage("Uploading", f"{in_bytes(count)} of {in_bytes(size)}", count, size)

    def run(self, state: Mapping[str, Any]) -> None:
        """A run is in this state."""
        progress = state.get("progress")
        if progress is None:
            self._show_stage("Waiting", "for a worker")
            return
        counted = in_bytes(progress["bytes"])
        if progress["stage"] != "fetch":
            counted = f"{progress['rows']:,} rows, {counted}"
        self._show_stage(_STAGES[progress["stage"]], counted)

    def _show_stage(
        self, stage: str, text: str, count: int | None = None, total: int | None = None
    ) -> None:
        now = time.monotonic()
        if stage != self._stage:
            self.clear()
        elif self.disable and now - self._shown_at < _LINE_SECONDS:
            return
        self.show(stage, stage, text, count, total)
        self._stage, self._shown_at = stage, now


async def follow_rows(client: ApiClient, run_id: str, display: Display) -> None:
    """Show the progress of a run that imports rows, until it ends. Raises StartError."""
    page = f"/data-source-runs/{run_id}"
    await follow(client, f"/v1{page}", page, display.run)


class GivenUpError(Exception):
    """Ctrl-C; the message says what became of the run."""

    retryable = False


@asynccontextmanager
async def cancelling(client: ApiClient, path: str) -> AsyncIterator[None]:
    """Cancel the run at `path` when the block is interrupted. Raises GivenUpError then."""
    try:
        yield
    except asyncio.CancelledError:
        run = await client.call("POST", f"{path}/cancel", json={})
        if run["status"] == "cancelled":
            raise GivenUpError("Cancelled. Nothing was changed.") from None
        ended = run["status"].replace("_", " ")
        raise GivenUpError(f"The run had already ended: {ended}.") from None


_LINE_SECONDS = 5.0
"""Between two lines about the same stage."""

_STAGES = {"fetch": "Fetching", "stage": "Reading", "apply": "Writing"}


def in_bytes(count: int) -> str:
    """A number of bytes as people read it."""
    if count < 1000:
        return f"{count} B"
    if count < 1_000_000:
        return f"{count / 1_000:.1f} kB"
    return f"{count / 1_000_000:,.1f} MB"
