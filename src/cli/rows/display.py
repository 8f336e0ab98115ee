"""The progress of rows: a bar on a terminal, plain lines elsewhere."""

import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

_LINE_SECONDS = 5.0
"""Between two lines about the same stage."""

_STAGES = {"fetch": "Fetching", "stage": "Reading", "apply": "Writing"}


class Display:
    """One bar, whose label and numbers follow what is going on."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = Progress(
            TextColumn("{task.description}", justify="left"),
            BarColumn(),
            TextColumn("{task.fields[text]}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._task = self._bar.add_task("Waiting", total=None, text="")
        self._live = console.is_terminal
        self._shown = ("", "")
        self._last = 0.0

    def __enter__(self) -> Self:
        if self._live:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live:
            self._bar.stop()

    def sent(self, done: int, total: int) -> None:
        """So many bytes of the file have been sent."""
        self._show("Uploading", f"{in_bytes(done)} of {in_bytes(total)}", done, total)

    def run(self, state: Mapping[str, Any]) -> None:
        """A run is in this state."""
        progress = state.get("progress")
        if progress is None:
            self._show("Waiting", "for a worker", None, None)
            return
        counted = in_bytes(progress["bytes"])
        if progress["stage"] != "fetch":
            counted = f"{progress['rows']:,} rows of {counted}"
        self._show(_STAGES[progress["stage"]], counted, None, None)

    def _show(self, what: str, text: str, done: int | None, total: int | None) -> None:
        now = time.monotonic()
        if (what, text) == self._shown:
            return
        if self._live:
            if what != self._shown[0]:
                # Each stage has a bar and a time of its own.
                self._bar.remove_task(self._task)
                self._task = self._bar.add_task(what, total=total, text=text)
            self._bar.update(self._task, text=text, completed=done)
            self._shown = (what, text)
            return
        if what != self._shown[0] or now - self._last >= _LINE_SECONDS:
            self._console.print(f"{what}: {text}", markup=False, soft_wrap=True)
            self._last = now
        self._shown = (what, text)


def in_bytes(count: int) -> str:
    """A number of bytes as people read it."""
    if count < 1000:
        return f"{count} B"
    if count < 1_000_000:
        return f"{count / 1_000:.1f} kB"
    return f"{count / 1_000_000:,.1f} MB"
