"""The platform a command talks to, and the end of the command."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.console import complain, reported
from cli.rows.following import GivenUpError

STATE_DIR = Annotated[
    Path, typer.Option(envvar="WORKSPACE_STATE_DIR", help="State directory of the platform.")
]
URL = Annotated[
    str | None, typer.Option("--url", help="A platform elsewhere, such as https://example.com.")
]
API_KEY = Annotated[
    str | None, typer.Option(envvar="WORKSPACE_API_KEY", help="Its API key, with --url.")
]

Place = tuple[Path, str | None, str | None]
"""State directory, URL and API key: the place of the platform."""

INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it."""


def run_command(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a command; exits with 1 for a refusal, and with 130 when it is interrupted."""
    try:
        with reported():
            asyncio.run(coroutine)
    except GivenUpError as given_up:
        complain(str(given_up))
        raise typer.Exit(INTERRUPTED) from None
    except KeyboardInterrupt:
        complain("Stopped. Nothing was changed.")
        raise typer.Exit(INTERRUPTED) from None
