"""Output for a terminal: tables, JSON, pages, the lists they read, a run followed to its end."""

import asyncio
import inspect
import json
import sys
import time
import webbrowser
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Concatenate, ParamSpec
from urllib.parse import quote, urljoin

import httpx2
import typer
from pydantic_core import from_json
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from cli.api_client import ApiClient, Json, read
from cli.console import ProgressBars, StartError, aside, complain, reported, say, terminal

PAGE = 100
"""Rows of a list that one request asks for at most."""


def print_json(value: object, *, indent: int | None = 2) -> None:
    """Print a response of the API as JSON."""
    typer.echo(json.dumps(value, indent=indent))


def show_page(page: str, *, as_json: bool) -> None:
    """Print the address of a page, and open it where this is a terminal."""
    if as_json:
        print_json({"pageUrl": page})
        return
    say(terminal(), page)
    if sys.stdout.isatty():
        webbrowser.open(page)


async def list_of(
    client: ApiClient, path: str, key: str, filters: Mapping[str, object], limit: int
) -> Json:
    """A list up to a limit, and the cursor of the next page if there is one."""
    query = {name: str(value) for name, value in filters.items() if value is not None}
    rows: list[Json] = []
    cursor: str | None = None
    while len(rows) < limit:
        turn = {"limit": str(min(PAGE, limit - len(rows)))}
        turn |= {} if cursor is None else {"cursor": cursor}
        page = await client.call("GET", path, params={**query, **turn})
        rows += page[key]
        cursor = page["cursor"]
        if cursor is None:
            break
    return {key: rows, "cursor": cursor}


_MOST_MEMBERS = 10_000


async def member_id(client: ApiClient, email: str) -> str:
    """The id of the member with an email address. Raises StartError."""
    path = f"{client.workspace}/members"
    listed = await list_of(client, path, "members", {}, _MOST_MEMBERS)
    for member in listed["members"]:
        if (member["email"] or "").lower() == email.lower():
            return str(member["userId"])
    raise StartError(f"No member with the email {email}. Invite them in the console.")


async def overview_of(client: ApiClient, run_id: str) -> Json:
    """A run by its id alone, with its automation. Raises RefusedError."""
    answer: Json = await client.call("GET", f"/v1/runs/{quote(run_id, safe='')}")
    return answer


async def path_of(client: ApiClient, run_id: str) -> str:
    """The path of the operations of a run. Raises RefusedError."""
    run = (await overview_of(client, run_id))["run"]
    return f"{client.workspace}/automations/{run['automationId']}/runs/{run['id']}"


def page_of(client: ApiClient, run: Json) -> str:
    """The address of the page of a run."""
    page: str = run["metadata"]["pageUrl"]
    return urljoin(f"{client.base_url}/", page)


STYLES = {
    "succeeded": "green",
    "failed": "red",
    "timed_out": "red",
    "cancelled": "dim",
    "running": "cyan",
    "waiting": "yellow",
}

_GAP = 2
_ID_WIDTH = 36
_LABEL_WIDTH = 24
_WIDE = 120
"""Cells of a terminal in which labels have as much room as ids."""
_NARROWEST = 20
"""Cells that the last column has at least, unless all of its texts are shorter."""
_INDENT = 2


def plain(value: object) -> str:
    """A text without the characters by which it could command the terminal."""
    text = "" if value is None else str(value)
    return "".join(sign if sign.isprintable() else " " for sign in text)


def print_rows(
    console: Console,
    names: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    empty: str = "",
) -> None:
    """Print rows; columns that do not fit beside each other continue below. `empty`: no rows."""
    if not rows and empty:
        say(aside(), empty)
        return
    if not console.is_terminal:
        for row in rows:
            typer.echo("\t".join(plain(value) for value in row))
        return
    texts = [names, *([plain(value) for value in row] for row in rows)]
    lines = fitting_lines(texts, console.width)
    for row in texts:
        cells = iter(row)
        for indent, widths in zip((0, *[_INDENT] * len(lines)), lines, strict=False):
            line = Text(" " * indent, no_wrap=True)
            for width, text in zip(widths, cells, strict=False):
                style = "bold" if row is names else STYLES.get(text, "")
                line.append(cut(text, width), style=style)
                line.append(" " * _GAP)
            line.rstrip()
            console.print(line)


def fitting_lines(texts: Sequence[Sequence[str]], room: int) -> list[list[int]]:
    """The widths of the columns, line by line; the last column takes what remains of its line."""
    lines: list[list[int]] = [[]]
    free = room
    for index, column in enumerate(zip(*texts, strict=True), start=1):
        width = max(cell_len(text) for text in column)
        is_last = index == len(texts[0])
        widest = _ID_WIDTH if index == 1 or room >= _WIDE else _LABEL_WIDTH
        width = width if is_last else min(width, widest)
        if lines[-1] and free < (min(width, _NARROWEST) if is_last else width):
            lines.append([])
            free = room - _INDENT
        lines[-1].append(min(width, free))
        free -= width + _GAP
    return lines


def cut(text: str, width: int) -> str:
    """A text as wide as that, cut or filled up with spaces."""
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    return set_cell_size(text, width - 1) + "…"


def clock(moment: str | None) -> str:
    """A moment of the API in the terminal's own time."""
    if moment is None:
        return ""
    return f"{datetime.fromisoformat(moment).astimezone():%Y-%m-%d %H:%M:%S}"


def taken(start: str | None, end: str | None) -> str:
    """The time between two moments of the API, or until now."""
    if start is None:
        return ""
    until = datetime.now(UTC) if end is None else datetime.fromisoformat(end)
    seconds = max(0.0, (until - datetime.fromisoformat(start)).total_seconds())
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s"
    return f"{minutes // 60} h {minutes % 60:02} min"


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

P = ParamSpec("P")


def take_options(
    command: Callable[..., None], function: Callable[..., Any], extra: Callable[..., None]
) -> None:
    """Give a command the parameters of its function but the first, and the shared ones."""
    _, *own = inspect.signature(function).parameters.values()
    parameters = [*own, *inspect.signature(extra).parameters.values()]
    # Typer reads both.
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}


def remote_command(function: Callable[Concatenate[Place, P], None]) -> Callable[P, None]:
    """The command of a function, with --state-dir, --url and --api-key after its own options."""

    def shared(
        state_dir: STATE_DIR = Path(".state"), url: URL = None, api_key: API_KEY = None
    ) -> None:
        raise NotImplementedError("only its parameters are read")

    @wraps(function)
    def command(*args: P.args, **given: P.kwargs) -> None:
        own: dict[str, Any] = dict(given)
        state_dir, url, api_key = map(own.pop, ("state_dir", "url", "api_key"))
        function((state_dir, url, api_key), *args, **own)

    take_options(command, function, shared)
    return command


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
