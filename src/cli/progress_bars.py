"""The progress of work: bars on a terminal, plain lines elsewhere."""

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from cli.console import say


class ProgressBars(Progress):
    """A bar for each part of some work; without a terminal, a line for each new text of a part."""

    def __init__(self, console: Console) -> None:
        super().__init__(
            TextColumn("{task.description}", justify="left", markup=False),
            BarColumn(),
            TextColumn("{task.fields[text]}", markup=False),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._bars: dict[str, TaskID] = {}
        self._lines: dict[str, str] = {}

    def show(
        self, key: str, label: str, text: str, count: int | None = None, total: int | None = None
    ) -> None:
        if not self.disable:
            if key not in self._bars:
                self._bars[key] = self.add_task(label, total=total, text=text)
            self.update(self._bars[key], text=text, total=total, completed=count)
        elif self._lines.get(key) != text:
            say(self.console, f"{label}: {text}")
            self._lines[key] = text

    def clear(self) -> None:
        for bar in self._bars.values():
            self.remove_task(bar)
        self._bars.clear()
        self._lines.clear()
