"""The progress of a legacy import: bars for workspaces on a terminal, plain lines elsewhere."""

from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

_ENDED = frozenset({"ready", "blocked", "done", "failed", "skipped", "cancelled"})

_GOING_BACK = frozenset({"requested", "running"})


class WorkspaceBars:
    """Bars that follow what the API says of a run."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars = Progress(
            TextColumn("{task.description}", justify="left", markup=False),
            BarColumn(),
            TextColumn("{task.fields[text]}", markup=False),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._tasks: dict[str, TaskID] = {}
        self._live = console.is_terminal
        self._shown: dict[str, str] = {}

    def __enter__(self) -> Self:
        if self._live:
            self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live:
            self._bars.stop()

    def run(self, state: dict[str, Any]) -> None:
        """A run is in this state."""
        self._show("run", "Legacy import", _words(state["status"]), None, None)
        for entry in state["workspaces"]:
            if entry["rollbackState"] in _GOING_BACK:
                self._show(entry["id"], entry["sourceName"], "taken back", None, None)
                continue
            progress = entry.get("progress", {})
            total = progress.get("total")
            done = total if entry["stage"] in _ENDED else progress.get("done")
            self._show(entry["id"], entry["sourceName"], _words(entry["stage"]), done, total)

    def _show(self, key: str, name: str, text: str, done: int | None, total: int | None) -> None:
        if self._live:
            if key not in self._tasks:
                self._tasks[key] = self._bars.add_task(name, total=total, text=text)
            self._bars.update(self._tasks[key], text=text, total=total, completed=done)
        elif self._shown.get(key) != text:
            self._console.print(f"{name}: {text}", markup=False, soft_wrap=True)
        self._shown[key] = text


def _words(name: str) -> str:
    return name.replace("_", " ")
