"""Checks of what is around the platform: objects, disks, identity provider, mail."""

import asyncio
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from cli.doctor.findings import Finding, warning
from runtime.settings import Settings

_SECONDS = 5.0
_GIB = 1024**3
_LOW, _FULL = (0.10, 2 * _GIB), (0.02, _GIB // 4)
"""A share of a disk, and bytes, of which less than both is free."""


async def check_object_store(settings: Settings) -> Finding:
    """Look whether the object store can be written and read."""
    from runtime.errors import UnavailableError
    from runtime.object_store import ObjectStore

    subject = "Object store"
    if settings.object_store.startswith("memory:"):
        return Finding(subject, "memory of one process", "set WORKSPACE_OBJECT_STORE")
    try:
        await ObjectStore(settings.object_store).probe()
    except (UnavailableError, OSError):
        remedy = "check WORKSPACE_OBJECT_STORE and the AWS_… variables"
        return Finding(subject, "cannot be written and read", remedy)
    return Finding(subject, settings.object_store)


async def check_disks(settings: Settings) -> Finding:
    """Look how much room is left on the disks of this machine that the platform writes to."""
    places = dict(_directories(settings))
    places |= await _data_directory(settings)
    disks: dict[int, tuple[list[str], int, int]] = {}
    for name, directory in places.items():
        try:
            usage = shutil.disk_usage(directory)
            device = directory.stat().st_dev
        except OSError:  # of another machine, or closed to this account
            continue
        disks.setdefault(device, ([], usage.free, usage.total))[0].append(name)
    facts, worst = [], Finding("Disks", "")
    for names, free, total in disks.values():
        facts.append(f"{', '.join(names)}: {_gib(free)} of {_gib(total)} free")
        if _is_below(free, total, _FULL):
            worst = Finding("Disks", "", "free some space, or move what is named to another disk")
        elif _is_below(free, total, _LOW) and worst.remedy is None:
            worst = warning("Disks", "", "free some space soon, or enlarge the disk")
    if not facts:
        return Finding("Disks", "none of them is on this machine")
    return Finding("Disks", "; ".join(facts), worst.remedy, worst.is_warning)


def _directories(settings: Settings) -> Iterator[tuple[str, Path]]:
    yield "state directory", _nearest(settings.state_dir)
    store = urlsplit(settings.object_store)
    if store.scheme == "file":
        yield "object store", _nearest(Path(unquote(store.path)))


def _nearest(directory: Path) -> Path:
    """The directory, or the one above it that is there."""
    directory = directory.absolute()
    return next(one for one in (directory, *directory.parents) if one.exists())


async def _data_directory(settings: Settings) -> dict[str, Path]:
    """The data of a PostgreSQL that is reached by a socket of this machine."""
    import psycopg

    from cli.supervisor.state import StateDir
    from runtime.database import libpq_url

    embedded = StateDir(settings.state_dir).postgres
    url = libpq_url(settings.database_url.get_secret_value())
    try:
        async with await psycopg.AsyncConnection.connect(url, connect_timeout=5) as connection:
            if not str(connection.info.host).startswith("/"):
                return {}
            row = await (await connection.execute("SHOW data_directory")).fetchone()
    except psycopg.errors.InsufficientPrivilege:
        return {"PostgreSQL": embedded} if embedded.exists() else {}
    except psycopg.Error:
        return {}
    return {} if row is None else {"PostgreSQL": Path(row[0])}


def _is_below(free: int, total: int, bound: tuple[float, int]) -> bool:
    share, least = bound
    return free < total * share and free < least


def _gib(size: int) -> str:
    return f"{size / _GIB:.1f} GiB"


async def check_identity_provider(settings: Settings) -> Finding:
    """Look whether people can sign in: the provider's documents can be read, and name it."""
    from runtime.identity_settings import DEVELOPMENT_ISSUER

    subject, issuer, keys = "Identity provider", settings.oidc_issuer, settings.oidc_jwks
    if issuer is None or keys is None:
        remedy = (
            "set WORKSPACE_OIDC_ISSUER, WORKSPACE_OIDC_AUDIENCE and WORKSPACE_OIDC_JWKS; until"
            " then only `workspace sign-in` lets people in (docs/first-sign-in.md)"
        )
        return warning(subject, "not configured", remedy)
    problem = await _key_set_problem(keys)
    if problem is not None:
        return Finding(subject, f"{issuer}: {problem}", "check WORKSPACE_OIDC_JWKS")
    if issuer == DEVELOPMENT_ISSUER:
        return Finding(subject, "the local one of `workspace up`")
    if settings.oidc_client_id is None:
        remedy = "set WORKSPACE_OIDC_CLIENT_ID to let people sign in at the console"
        return warning(subject, f"{issuer}, for session tokens alone", remedy)
    problem = await _discovery_problem(issuer)
    if problem is not None:
        return Finding(subject, f"{issuer}: {problem}", "check WORKSPACE_OIDC_ISSUER")
    return Finding(subject, issuer)


async def _key_set_problem(place: str) -> str | None:
    """The reason for which signing keys cannot be read, or None."""
    try:
        if place.startswith(("http://", "https://")):
            found = await _read_json(place)
        else:
            found = json.loads(await asyncio.to_thread(Path(place).read_text, "utf-8"))
    except (OSError, ValueError):
        return f"no key set can be read at {place}"
    keys = found.get("keys") if isinstance(found, dict) else None
    return None if isinstance(keys, list) and keys else f"{place} has no keys"


async def _discovery_problem(issuer: str) -> str | None:
    """The reason for which the console cannot send people to the provider, or None."""
    url = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
    try:
        found = await _read_json(url)
    except (OSError, ValueError):
        return f"no discovery document can be read at {url}"
    if not isinstance(found, dict) or found.get("issuer") != issuer:
        return f"the discovery document at {url} names another issuer"
    missing = [name for name in ("authorization_endpoint", "token_endpoint") if not found.get(name)]
    return f"the discovery document lacks {' and '.join(missing)}" if missing else None


async def _read_json(url: str) -> object:
    """A document of the operator's own choice. Raises OSError and ValueError."""
    import httpx2

    try:
        async with httpx2.AsyncClient(timeout=_SECONDS, follow_redirects=False) as client:
            answer = await client.get(url, headers={"Accept": "application/json"})
            answer.raise_for_status()
    except httpx2.HTTPError as error:
        raise ConnectionError(url) from error
    found: object = answer.json()
    return found


async def check_mail(settings: Settings) -> Finding:
    """Look whether the mail server answers, and lets the platform in."""
    from runtime.outbound.errors import OutboundError
    from runtime.outbound.mail import MailClient
    from runtime.platform_policy import platform_policy

    subject, server = "Mail server", settings.mail
    if server is None:
        remedy = "set WORKSPACE_SMTP_URL and WORKSPACE_SMTP_FROM; until then no mail is sent"
        return warning(subject, "not configured", remedy)
    place = f"{server.host}:{server.port}"
    try:
        await MailClient(server, platform_policy(settings), seconds=_SECONDS).probe()
    except OutboundError as error:
        remedy = "check WORKSPACE_SMTP_URL, and WORKSPACE_OUTBOUND_ALLOW for a private host"
        return Finding(subject, f"{place}: {error}", remedy)
    return Finding(subject, f"{place}, from {server.sender}")
