"""The console of all commands: what they say, how they show errors and progress."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from typing_extensions import override

from runtime.configuration.settings import SettingsError


class StartError(Exception):
    """The message says what is wrong and what to do."""

    retryable = False


def missing_extra(part: str, extra: str, otherwise: str = "") -> StartError:
    """The error for a part that comes with an extra of our package, and how to install it."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return StartError(
        f"{part} is not installed. It comes with the extra `{extra}`: run"
        f" `uv tool install --force --python {python} 'workspace-platform[{extra}]'`, with the"
        f" path of the wheel in place of the name if you have a wheel{otherwise}."
    )


EXPLAINED = (StartError, SettingsError, ConnectionError)
"""Errors whose message is all that an operator needs: no trace is shown of them."""
_UNUSABLE = ("08", "28", "3D", "53", "57P")
"""Classes of SQLSTATE: no connection, wrong credential, no such database, no room, shut down."""


@contextmanager
def reported(exit_code: int = 1) -> Iterator[None]:
    """Print errors that have a remedy without a trace, and exit."""
    try:
        yield
    except EXPLAINED as error:
        complain(str(error))
    except Exception as error:
        if (sentence := database_problem(error)) is None:
            raise
        complain(sentence)
    else:
        return
    raise typer.Exit(exit_code) from None


def database_problem(error: BaseException) -> str | None:
    """The problem with the database at DATABASE_URL, in a sentence; None for any other error."""
    import psycopg
    from sqlalchemy.exc import DBAPIError

    origin = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(origin, psycopg.errors.UndefinedTable):
        return "The database at DATABASE_URL lacks tables of this build. Run `workspace migrate`."
    if not isinstance(origin, psycopg.OperationalError):
        return None
    if origin.sqlstate is not None and not origin.sqlstate.startswith(_UNUSABLE):
        return None
    reason = str(origin).strip().splitlines()[0].removesuffix(".")
    return f"The database at DATABASE_URL cannot be used: {reason}."


def terminal() -> Console:
    """The console for output that a person reads."""
    return Console(highlight=False)


def aside() -> Console:
    """The console for progress and notes, which are not part of the result."""
    return Console(stderr=True, highlight=False)


def say(console: Console, text: str) -> None:
    """Print text as it is, in lines as long as they come."""
    console.print(text, markup=False, soft_wrap=True)


def complain(text: str) -> None:
    """Print an error to standard error."""
    Console(stderr=True, highlight=False).print(text, markup=False, soft_wrap=True, style="red")


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

    def finish(self) -> None:
        """Fill the bars: what they are about has ended."""
        for bar in self._bars.values():
            total = self._tasks[bar].total or 1
            self.update(bar, total=total, completed=total)

    @override
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.finish()
        super().__exit__(kind, error, trace)

    def clear(self) -> None:
        self.finish()
        self.refresh()
        for bar in self._bars.values():
            self.remove_task(bar)
        self._bars.clear()
        self._lines.clear()
