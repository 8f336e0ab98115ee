"""Rows for people, fit for the terminal's width, and for other programs, divided by tabs."""

from collections.abc import Sequence
from datetime import UTC, datetime

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

STYLES = {
    "succeeded": "green",
    "failed": "red",
    "timed_out": "red",
    "cancelled": "dim",
    "running": "cyan",
    "waiting": "yellow",
}


def plain(value: object) -> str:
    """A text without the characters by which it could command the terminal."""
    text = "" if value is None else str(value)
    return "".join(sign if sign.isprintable() else " " for sign in text)


def print_rows(console: Console, names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows; the first column is whole at any width, the last is cut first."""
    if not console.is_terminal:
        for row in rows:
            typer.echo("\t".join(plain(value) for value in row))
        return
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for place, name in enumerate(names):
        table.add_column(
            name, no_wrap=True, overflow="ellipsis", min_width=36 if place == 0 else None
        )
    for row in rows:
        texts = [plain(value) for value in row]
        table.add_row(*(Text(text, style=STYLES.get(text, "")) for text in texts))
    console.print(table)


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
