"""The progress of rows that come in, stage by stage."""

import time
from collections.abc import Mapping
from typing import Any

from rich.console import Console

from cli.progress_bars import ProgressBars

_LINE_SECONDS = 5.0
"""Between two lines about the same stage."""

_STAGES = {"fetch": "Fetching", "stage": "Reading", "apply": "Writing"}


class Display(ProgressBars):
    """One bar at a time: each stage has a bar and a time of its own."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._stage = ""
        self._shown_at = 0.0

    def sent(self, count: int, size: int) -> None:
        """So many bytes of the file have been sent."""
        self._show_stage("Uploading", f"{in_bytes(count)} of {in_bytes(size)}", count, size)

    def run(self, state: Mapping[str, Any]) -> None:
        """A run is in this state."""
        progress = state.get("progress")
        if progress is None:
            self._show_stage("Waiting", "for a worker")
            return
        counted = in_bytes(progress["bytes"])
        if progress["stage"] != "fetch":
            counted = f"{progress['rows']:,} rows of {counted}"
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


def in_bytes(count: int) -> str:
    """A number of bytes as people read it."""
    if count < 1000:
        return f"{count} B"
    if count < 1_000_000:
        return f"{count / 1_000:.1f} kB"
    return f"{count / 1_000_000:,.1f} MB"
