"""The console of all commands, and the form in which they show errors."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console

from cli.supervisor.errors import StartError
from runtime.settings import SettingsError


@contextmanager
def reported() -> Iterator[None]:
    """Tell errors that have a remedy in words instead of a trace, and exit with code 1."""
    try:
        yield
    except (StartError, SettingsError, ConnectionError) as error:
        complain(str(error))
        raise typer.Exit(1) from None


def terminal() -> Console:
    """The console for output that a person reads."""
    return Console(highlight=False)


def aside() -> Console:
    """The console for what goes on meanwhile, which is no part of the result."""
    return Console(stderr=True, highlight=False)


def say(console: Console, text: str) -> None:
    """Print text as it is, in lines as long as they come."""
    console.print(text, markup=False, soft_wrap=True)


def complain(text: str) -> None:
    """Say to standard error what is wrong."""
    Console(stderr=True, highlight=False).print(text, markup=False, soft_wrap=True, style="red")
