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
from cli.console import StartError, aside, say, terminal

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
