"""`workspace session`: a session token for the platform that `workspace up` runs."""

import re
from pathlib import Path
from typing import Annotated

import typer

from cli.console import reported
from cli.supervisor.errors import StartError

_ADDRESS = re.compile(r"[^@\s<>()\",;:\\]{1,64}@[^@\s<>()\",;:\\]{1,189}")
"""A mailbox at a host; the host may be a name without a dot, as of the first owner's address."""


def address(text: str | None) -> str | None:
    """An e-mail address as it was given. Raises BadParameter for another text."""
    if text is not None and not _ADDRESS.fullmatch(text):
        raise typer.BadParameter(f"{text!r} is no e-mail address, such as ada@example.com.")
    return text


def session(
    email: Annotated[str, typer.Argument(callback=address, help="E-mail address of the person.")],
    state_dir: Annotated[
        Path, typer.Option(envvar="WORKSPACE_STATE_DIR", help="State directory of the platform.")
    ] = Path(".state"),
    name: Annotated[str | None, typer.Option(help="Name of the person.")] = None,
) -> None:
    """Print a development session token, valid for 30 days."""
    from runtime.development_issuer import ensure_issuer, is_issuer

    with reported():
        if not is_issuer(state_dir):
            raise StartError(
                f"{state_dir.absolute()} has no key for sessions: name the --state-dir that"
                " `workspace up` runs on. Where WORKSPACE_OIDC_ISSUER is set, sessions are that"
                " provider's."
            )
        typer.echo(ensure_issuer(state_dir.absolute()).mint(email, name))
