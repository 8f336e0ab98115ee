"""The check of the secret key that each process begins with, and `workspace rotate-secret`."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.markup import escape
from rich.table import Table

from cli.console import StartError, aside, database_problem, reported, say, terminal
from runtime.configuration.settings import Settings

if TYPE_CHECKING:
    from models.core.secret_keys import KnownKey, Outdated
    from models.people.credentials import OutdatedKey
    from models.workspace.share_links.links import OutdatedLink
    from runtime.crypto import KeyRing
    from runtime.database import Database

_CHECK_SECONDS = 10.0
_ANSWER_SECONDS = 3.0
"""The time a database has to answer a process that starts; without an answer it starts anyway."""
_MOST_LISTED = 500
"""API keys, and share links, that are listed."""


async def require_secret_key(settings: Settings) -> None:
    """Record the key that a process is about to write under. Raises StartError for a wrong one.

    A database that does not answer, or has no tables yet, is asked again by the process itself.
    """
    async with _database(settings) as database:
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                await _register(database, _keys(settings))
        except TimeoutError:
            return


async def watch_secret_key(database: "Database", keys: "KeyRing") -> NoReturn:
    """Check for ever. Raises StartError when the database is written under a key that is not here.

    Other processes have then a newer one, and this one would fail at what they write.
    """
    while True:
        await _register(database, keys)
        await asyncio.sleep(_CHECK_SECONDS)


async def _register(database: "Database", keys: "KeyRing") -> None:
    import psycopg
    from sqlalchemy.exc import DBAPIError
    from sqlalchemy.exc import TimeoutError as PoolTimeoutError

    import models.tables  # noqa: F401  # every table with sealed values
    from models.core.secret_keys import WrongSecretKeyError, register_keys

    try:
        async with database.transaction() as work:
            await register_keys(work, keys)
    except WrongSecretKeyError as error:
        raise StartError(f"{error.message} {error.keys}") from None
    except (psycopg.Error, DBAPIError, PoolTimeoutError):
        return


def rotate_secret(
    *,
    check: Annotated[
        bool, typer.Option("--check", help="Only show what is left to rotate.")
    ] = False,
    forget_lost: Annotated[
        bool,
        typer.Option(
            "--forget-lost",
            help="Continue without lost keys. Values encrypted with them stay unreadable.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
    state_dir: Annotated[
        Path, typer.Option(envvar="WORKSPACE_STATE_DIR", help="State directory of the platform.")
    ] = Path(".state"),
) -> None:
    """Re-encrypt all values with the first key of WORKSPACE_SECRET_KEY.

    Safe while the platform runs, and to stop and repeat. Exits with 1 while values are left.
    """
    from cli.doctor import settings_of

    with reported():
        if check and forget_lost:
            raise StartError("Use --check or --forget-lost, not both.")
        settings, _ = settings_of(state_dir)
        found = asyncio.run(_rotate(settings, check=check, forget_lost=forget_lost))
    if as_json:
        typer.echo(json.dumps(_json_of(found), indent=2))
    else:
        _print(found)
    raise typer.Exit(1 if found.left else 0)


@dataclass(frozen=True, slots=True)
class Standing:
    """The current key, and everything that is not under it yet."""

    current: "KnownKey"
    older: "Sequence[KnownKey]"
    values: "Sequence[Outdated]"
    configured: Sequence[bytes]
    api_keys: "Sequence[OutdatedKey]"
    share_links: "Sequence[OutdatedLink]"
    invitations: int

    @property
    def left(self) -> "Sequence[Outdated]":
        """The values that a rotation seals again."""
        return [one for one in self.values if one.key_id in self.configured]

    @property
    def unreadable(self) -> "Sequence[Outdated]":
        """The values whose key is not configured."""
        return [one for one in self.values if one.key_id not in self.configured]


async def standing(database: "Database", keys: "KeyRing") -> Standing:
    """Count values that are not under the current key.

    Raises WrongSecretKeyError and StartError.
    """
    from models.core.secret_keys import check_keys, known_keys, outdated_values
    from models.people.credentials import outdated_keys
    from models.people.invitations import open_invitations
    from models.workspace.share_links.links import outdated_links

    async with database.transaction() as work:
        recorded = await known_keys(work)
        check_keys([*recorded], keys.ids)
        if keys.current_id not in recorded:
            raise StartError(
                f"Key {keys.current_id.hex()}, the first of WORKSPACE_SECRET_KEY, is not in use."
                " Restart all processes with it, or rotate without --check."
            )
        current = recorded[keys.current_id]
        api_keys = await outdated_keys(work, current.id, _MOST_LISTED)
        links = await outdated_links(work, current.id, _MOST_LISTED)
        invitations = 0 if len(recorded) == 1 else await open_invitations(work, current.since)
    return Standing(
        current,
        [row for row in recorded.values() if row.id != current.id],
        await outdated_values(database, keys),
        keys.ids,
        api_keys,
        links,
        invitations,
    )


async def _rotate(settings: Settings, *, check: bool, forget_lost: bool) -> Standing:
    import psycopg
    from sqlalchemy.exc import DBAPIError

    import models.tables  # noqa: F401  # every table with sealed values
    from models.core.secret_keys import (
        WrongSecretKeyError,
        forget_lost_keys,
        promote_key,
        rotate_values,
    )

    keys = _keys(settings)
    try:
        async with _database(settings) as database:
            if forget_lost:
                async with database.transaction() as work:
                    lost = await forget_lost_keys(work, keys)
                names = ", ".join(sorted(one.hex() for one in lost)) or "none"
                say(aside(), f"Forgotten keys: {names}.")
            if not check:
                async with database.transaction() as work:
                    await promote_key(work, keys)
                await rotate_values(database, keys, _tell)
            return await standing(database, keys)
    except WrongSecretKeyError as error:
        raise StartError(f"{error.message} {error.keys}") from None
    except (psycopg.Error, DBAPIError) as error:
        cause = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        problem = database_problem(error) or f"Database error: {cause}."
        raise StartError(
            f"{problem} Progress is kept. Run the command again to continue."
        ) from None


def _tell(kind: str, done: int) -> None:
    if done:
        say(aside(), f"{kind}: {done} re-encrypted")


def _keys(settings: Settings) -> "KeyRing":
    from runtime.crypto import KeyRing

    return KeyRing(settings.secret_keys)


@asynccontextmanager
async def _database(settings: Settings) -> "AsyncIterator[Database]":
    """The database, for one transaction at a time; through no pooler, which others share."""
    from runtime.database import Database

    url = settings.database_url.get_secret_value()
    database = Database(url, pool_size=1, application="workspace-secret-keys")
    try:
        yield database
    finally:
        await database.close()


def _print(found: Standing) -> None:
    screen = terminal()
    say(screen, f"Current key {found.current.id.hex()}, since {_minute(found.current.since)}.")
    for older in found.older:
        say(screen, f"Older key {older.id.hex()}, since {_minute(older.since)}.")
    if found.values:
        table = _table("kind", "key", "left", "since")
        for one in found.values:
            table.add_row(one.kind, one.key_id.hex(), str(one.count), _minute(one.oldest))
        screen.print(table)
    if found.unreadable:
        say(screen, "Values encrypted with a missing key can't be read.")
    if not found.left:
        say(screen, "All readable values use the current key.")
    _print_tokens(found)
    if found.older and not found.left:
        before = "use or replace the above, then " if _is_any_token_left(found) else ""
        say(screen, f"Next: {before}remove the older key from WORKSPACE_SECRET_KEY, and restart.")


def _is_any_token_left(found: Standing) -> bool:
    return bool(found.api_keys or found.share_links or found.invitations)


def _print_tokens(found: Standing) -> None:
    """Print what only its next use brings under the current key."""
    screen = terminal()
    if found.api_keys:
        say(screen, "\nAPI keys that still depend on the older key:")
        table = _table("name", "prefix", "workspace", "last used")
        for one in found.api_keys:
            used = "never" if one.last_used_at is None else _minute(one.last_used_at)
            table.add_row(escape(one.name), one.prefix, escape(one.workspace_name), used)
        screen.print(table)
    if found.share_links:
        say(screen, "\nShare links that still depend on the older key:")
        table = _table("link", "kind", "workspace", "created")
        for link in found.share_links:
            created = _minute(link.created_at)
            table.add_row(str(link.id), link.kind, str(link.workspace_id), created)
        screen.print(table)
    if found.invitations:
        say(screen, f"\n{found.invitations} open invitations still depend on the older key.")


def _table(*columns: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _minute(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M}Z"


def _json_of(standing_: Standing) -> dict[str, Any]:
    return {
        "currentKey": {
            "id": standing_.current.id.hex(),
            "since": standing_.current.since.isoformat(),
        },
        "olderKeys": [
            {"id": row.id.hex(), "since": row.since.isoformat()} for row in standing_.older
        ],
        "values": [
            {
                "kind": row.kind,
                "key": row.key_id.hex(),
                "configured": row.key_id in standing_.configured,
                "left": row.count,
                "since": row.oldest.isoformat(),
            }
            for row in standing_.values
        ],
        "apiKeys": [
            {
                "id": str(row.id),
                "name": row.name,
                "prefix": row.prefix,
                "workspaceId": str(row.workspace_id),
                "lastUsedAt": row.last_used_at and row.last_used_at.isoformat(),
            }
            for row in standing_.api_keys
        ],
        "shareLinks": [
            {"id": str(row.id), "workspaceId": str(row.workspace_id)}
            for row in standing_.share_links
        ],
        "openInvitations": standing_.invitations,
    }
