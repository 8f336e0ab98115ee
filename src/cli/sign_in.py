"""`workspace sign-in`: a link that signs a person in to the console, once."""

import asyncio
import os
from pathlib import Path
from typing import Annotated

import typer

from cli.console import reported
from cli.session import address
from cli.supervisor.errors import StartError
from cli.supervisor.state import StateDir


def sign_in(
    email: Annotated[
        str | None,
        typer.Argument(callback=address, help="E-mail address; by default the first owner's."),
    ] = None,
    state_dir: Annotated[
        Path, typer.Option(envvar="WORKSPACE_STATE_DIR", help="State directory of the platform.")
    ] = Path(".state"),
) -> None:
    """Print a link that opens the console as a person; it works once, for half an hour."""
    from cli.supervisor.development import EMAIL, NAME
    from cli.supervisor.files import read_object

    with reported():
        connection = read_object(StateDir(state_dir).connection)
        if "consoleUrl" not in connection:
            raise StartError(
                f"No platform runs on {state_dir.absolute()}: start `workspace up`, or name its"
                " --state-dir."
            )
        database_url = connection["databaseUrl"] or os.environ.get("DATABASE_URL")
        if not database_url:
            raise StartError("Set DATABASE_URL to the database of the platform.")
        name = NAME if email is None else None
        token = asyncio.run(_link(str(database_url), email or EMAIL, name))
        typer.echo(f"{connection['consoleUrl']}sign-in/{token}")


async def _link(database_url: str, email: str, name: str | None) -> str:
    from models.people.browser_sessions.commands import make_sign_in_link
    from models.people.credentials.queries import session_user
    from models.people.users.commands import sync_profile
    from runtime.database import Database
    from runtime.identity_settings import DEVELOPMENT_ISSUER

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
            return await make_sign_in_link(work, user_id)
    finally:
        await database.close()
