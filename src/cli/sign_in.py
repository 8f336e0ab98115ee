"""`workspace sign-in` and `workspace session`: a link to the console, a token for the API."""

import asyncio
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from cli.console import StartError, reported
from cli.supervisor.state import StateDir, no_platform

if TYPE_CHECKING:
    from models.core.base import Id
    from runtime.database import UnitOfWork


class _Place(NamedTuple):
    """The console, the database behind it, and the person who owns it, if it has one."""

    console_url: str
    database_url: str
    owner: tuple[str, str | None] | None


def address(text: str | None) -> str | None:
    """An e-mail address as it was given. Raises BadParameter for another text."""
    if text is not None and not _ADDRESS.fullmatch(text):
        raise typer.BadParameter(f"Enter a valid email such as ada@example.com, not {text!r}.")
    return text


def sign_in(
    email: Annotated[
        str | None,
        typer.Argument(callback=address, help="Email. Default: the first owner."),
    ] = None,
    *,
    new_workspace: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Create a workspace owned by this person."),
    ] = None,
    state_dir: Annotated[
        Path, typer.Option(envvar="WORKSPACE_STATE_DIR", help="State directory of the platform.")
    ] = Path(".state"),
) -> None:
    """Print a one-time sign-in link for the console, valid for 30 minutes.

    For a platform without a state directory, set DATABASE_URL and WORKSPACE_PUBLIC_URL.
    """
    with reported():
        place = _place(state_dir)
        person = place.owner if email is None else (email, None)
        if person is None:
            raise StartError("Enter an email: workspace sign-in ada@example.com")
        token = asyncio.run(_link(place.database_url, *person, new_workspace))
        typer.echo(f"{place.console_url}sign-in/{token}")


def _place(state_dir: Path) -> _Place:
    """The platform of the state directory, or the one that the environment names."""
    from cli.supervisor.development import EMAIL, NAME
    from cli.supervisor.state import read_object

    connection = read_object(StateDir(state_dir).connection)
    database_url = str(connection.get("databaseUrl") or os.environ.get("DATABASE_URL") or "")
    public_url = os.environ.get("WORKSPACE_PUBLIC_URL", "")
    if "consoleUrl" in connection:
        if not database_url:
            raise StartError("Set DATABASE_URL to the database of the platform.")
        return _Place(str(connection["consoleUrl"]), database_url, (EMAIL, NAME))
    if database_url and public_url:
        return _Place(f"{public_url.rstrip('/')}/", database_url, None)
    raise no_platform(state_dir, "set DATABASE_URL and WORKSPACE_PUBLIC_URL")


async def _link(database_url: str, email: str, name: str | None, new_workspace: str | None) -> str:
    from models.people.credentials import make_sign_in_link, session_user
    from models.people.users import sync_profile
    from runtime.configuration.sections import DEVELOPMENT_ISSUER
    from runtime.database import Database

    database = Database(database_url, pool_size=1, application="workspace-sign-in")
    try:
        async with database.transaction() as work:
            subject = email.lower()
            known = await session_user(work, DEVELOPMENT_ISSUER, subject)
            user_id = known[0].id if known else None
            if user_id is None:
                user_id = await sync_profile(
                    work,
                    issuer=DEVELOPMENT_ISSUER,
                    subject=subject,
                    email=email,
                    name=name,
                    platform_admin=None,
                )
            if new_workspace is not None:
                await _make_workspace(work, user_id, new_workspace)
            return await make_sign_in_link(work, user_id)
    finally:
        await database.close()


async def _make_workspace(work: "UnitOfWork", user_id: "Id", name: str) -> None:
    from pydantic import ValidationError

    from models.core.access.rules import Principal, PrincipalType
    from models.people.workspaces import CreateWorkspace, create_workspace

    try:
        body = CreateWorkspace(name=name)
    except ValidationError as error:
        raise StartError(f"--new-workspace: {error.errors()[0]['msg']}.") from None
    principal = Principal(type=PrincipalType.SESSION, id=user_id, user_id=user_id)
    await create_workspace(work, principal, body)


_ADDRESS = re.compile(r"[^@\s<>()\",;:\\]{1,64}@[^@\s<>()\",;:\\]{1,189}")
"""A mailbox at a host; the host may be a name without a dot, as of the first owner's address."""


def session(
    email: Annotated[str, typer.Argument(callback=address, help="Email of the person.")],
    state_dir: Annotated[
        Path, typer.Option(envvar="WORKSPACE_STATE_DIR", help="State directory of the platform.")
    ] = Path(".state"),
    name: Annotated[str | None, typer.Option(help="Name of the person.")] = None,
) -> None:
    """Print a session token for development, valid for 30 days."""
    from cli.supervisor.development import ensure_issuer, is_issuer

    with reported():
        if not is_issuer(state_dir):
            raise StartError(
                f"{state_dir.absolute()} has no session key. Use the --state-dir of `workspace up`."
                " If WORKSPACE_OIDC_ISSUER is set, that provider issues the sessions."
            )
        typer.echo(ensure_issuer(state_dir.absolute()).mint(email, name))
