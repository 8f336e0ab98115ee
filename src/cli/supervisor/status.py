"""The status of the platform: a live table on a terminal, plain lines elsewhere."""

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table

_STYLES = {"ready": "green", "starting": "yellow", "stopping": "yellow", "done": "green"}


class Status:
    """The state of each service, in the order they were first named."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._rows: dict[str, tuple[str, str]] = {}
        self._started = time.monotonic()
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def set(self, name: str, state: str, detail: str = "") -> None:
        """Show the state of a service; what is shown already is not shown again."""
        if self._rows.get(name) == (state, detail):
            return
        self._rows[name] = (state, detail)
        if self._live is not None:
            self._live.update(self._table(), refresh=True)
        else:
            elapsed = time.monotonic() - self._started
            self.say(f"{elapsed:6.1f}s  {name:<10} {state:<10} {detail}".rstrip())

    def say(self, text: str) -> None:
        """Print a line above the table."""
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def _table(self) -> Table:
        table = Table(box=None, padding=(0, 2, 0, 0))
        for column in ("service", "state", ""):
            table.add_column(column)
        for name, (state, detail) in self._rows.items():
            table.add_row(name, f"[{_STYLES.get(state, 'red')}]{state}[/]", detail)
        return table
