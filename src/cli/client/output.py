"""Output of the commands for a terminal: tables, JSON and pages, and the lists they read."""

import json
import sys
import webbrowser
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from urllib.parse import quote, urljoin

import typer
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from cli.api_client import ApiClient, Json
from cli.console import say, terminal

PAGE = 100
"""Rows of a list that one request asks for at most."""


def print_json(value: object, *, indent: int | None = 2) -> None:
    """Print an answer of the API for another program."""
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
    """As many of a list as are asked for, and the cursor behind them where there are more."""
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
_WIDEST = 36
"""Cells of a column that is not the last; an id has as many."""
_NARROWEST = 10
"""Cells below which a column is left out, with those behind it."""


def plain(value: object) -> str:
    """A text without the characters by which it could command the terminal."""
    text = "" if value is None else str(value)
    return "".join(sign if sign.isprintable() else " " for sign in text)


def print_rows(console: Console, names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows; the columns that have no room are left out, from the last on."""
    if not console.is_terminal:
        for row in rows:
            typer.echo("\t".join(plain(value) for value in row))
        return
    texts = [names, *([plain(value) for value in row] for row in rows)]
    widths = fitting_widths(texts, console.width)
    for row in texts:
        line = Text(no_wrap=True)
        for text, width in zip(row, widths, strict=False):
            line.append(cut(text, width), style="bold" if row is names else STYLES.get(text, ""))
            line.append(" " * _GAP)
        line.rstrip()
        console.print(line)


def fitting_widths(texts: Sequence[Sequence[str]], room: int) -> list[int]:
    """The widths of the columns that fit beside each other, of which the last takes the rest."""
    widths: list[int] = []
    for column in zip(*texts, strict=True):
        width = max(cell_len(text) for text in column)
        is_last = len(widths) == len(texts[0]) - 1
        width = width if is_last else min(width, _WIDEST)
        if widths and room < _NARROWEST:
            break
        widths.append(min(width, room))
        room -= width + _GAP
    return widths


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
