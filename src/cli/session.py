"""`workspace session`: a session token for the platform that `workspace up` runs."""

from pathlib import Path
from typing import Annotated

import typer

from cli.console import reported
from cli.supervisor.errors import StartError


def session(
    email: Annotated[str, typer.Argument(help="E-mail address of the person.")],
    state_dir: Annotated[
        Path, typer.Option(envvar="WORKSPACE_STATE_DIR", help="State directory of the platform.")
    ] = Path(".state"),
    name: Annotated[str | None, typer.Option(help="Name of the person.")] = None,
) -> None:
    """Print a development session token, valid for 30 days."""
    from runtime.development_issuer import ensure_issuer

    with reported():
        if not state_dir.is_dir():
            raise StartError(f"{state_dir} is no state directory: run `workspace up` first.")
        typer.echo(ensure_issuer(state_dir.absolute()).mint(email, name))
