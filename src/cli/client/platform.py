"""The platform that a command for a terminal talks to, and the end of the command."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.client.profiles import profiles_path, read_profiles
from cli.console import complain
from cli.rows.connection import INTERRUPTED
from cli.supervisor.errors import StartError

if TYPE_CHECKING:
    from cli.api_client import ApiClient

PROFILE = Annotated[
    str | None,
    typer.Option(
        "--profile", envvar="WORKSPACE_PROFILE", help="A profile; by default the one in use."
    ),
]
STATE_DIR = Annotated[
    Path | None,
    typer.Option(
        envvar="WORKSPACE_STATE_DIR",
        help="The platform that runs on this state directory; .state where no profile is in use.",
    ),
]
LIMIT = Annotated[int, typer.Option(min=1, max=10_000, help="How many at most.")]
JSON = Annotated[bool, typer.Option("--json", help="Print what the API answers, as JSON.")]

Place = tuple[str | None, Path | None]
"""A profile, and a state directory."""

REFUSED = 3
"""The exit code when the platform refused or did not answer; the others tell how a run ended."""


async def connected(place: Place) -> "ApiClient":
    """A client of the platform that is named, or in use, or runs here. Raises StartError."""
    from cli.api_client import api_client

    name, state_dir = place
    if name is None and state_dir is not None:
        return await api_client(state_dir, None, None)
    profiles = read_profiles(profiles_path())
    name = name or profiles.current
    if name is None:
        return await api_client(Path(".state"), None, None)
    profile = profiles.named(name)
    return await api_client(Path(".state"), profile.url, profile.api_key)


def retry_body(begin: str, version: str) -> dict[str, str]:
    """The body of a retry by its options. Raises BadParameter."""
    if begin not in ("start", "failed"):
        raise typer.BadParameter("--from takes start or failed.")
    if version not in ("own", "published"):
        raise typer.BadParameter("--version takes own or published.")
    return {"from": begin, "version": "original" if version == "own" else version}


def run_command(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a command; exits with 3 and a line for a refusal, and with 130 after Ctrl-C."""
    try:
        asyncio.run(coroutine)
    except StartError as error:
        complain(" ".join(str(error).split()))
        raise typer.Exit(REFUSED) from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
