"""Checks of `workspace doctor`: PostgreSQL, Temporal, object store, disks, sign-in, mail."""

import asyncio
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from runtime.configuration.settings import Settings

if TYPE_CHECKING:
    from cli.deploy.deployment import BuildOverview
    from models.workspace.system import WorkerBody


class Status(StrEnum):
    """The status of a check. A warning needs no immediate action."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; a remedy makes it a failure, unless it is said to be less."""

    subject: str
    fact: str
    remedy: str | None = None
    is_warning: bool = False

    @property
    def status(self) -> Status:
        if self.remedy is None:
            return Status.OK
        return Status.WARNING if self.is_warning else Status.FAILURE


def warning(subject: str, fact: str, remedy: str) -> Finding:
    """A finding that is worth a look."""
    return Finding(subject, fact, remedy, is_warning=True)


OLDEST = 18
"""The version of PostgreSQL that migrations need."""


async def check_database(settings: Settings) -> Finding:
    """Look whether PostgreSQL answers, and which version it is."""
    import psycopg

    from runtime.database import libpq_url

    url = libpq_url(settings.database_url.get_secret_value())
    try:
        async with await psycopg.AsyncConnection.connect(url, connect_timeout=5) as connection:
            version = connection.info.server_version
    except psycopg.OperationalError:
        return Finding("PostgreSQL", "no response", "check DATABASE_URL and PostgreSQL")
    remedy = None if version // 10_000 >= OLDEST else f"use PostgreSQL {OLDEST} or newer"
    return Finding("PostgreSQL", f"version {version // 10_000}.{version % 10_000}", remedy)


async def check_pooler(settings: Settings) -> Finding:
    """Look whether the pooler sets the limits that it does not let others set (ADR 0109)."""
    import psycopg

    from runtime.database import libpq_url
    from runtime.postgresql.sessions import LIMITS

    subject, pooler = "Pooler", settings.database_pooler_url
    assert pooler is not None
    try:
        async with await psycopg.AsyncConnection.connect(
            libpq_url(pooler.get_secret_value()), connect_timeout=5, prepare_threshold=None
        ) as connection:
            query = "SELECT name, current_setting(name) FROM unnest(%s::text[]) AS name"
            rows = await (await connection.execute(query, ([*LIMITS],))).fetchall()
    except psycopg.OperationalError:
        return Finding(subject, "no response", "check DATABASE_POOLER_URL and the pooler")
    limits = ", ".join(f"{name} {value}" for name, value in rows)
    if dict(rows) == LIMITS:
        return Finding(subject, limits)
    wanted = " ".join(f"SET {name} TO '{value}';" for name, value in LIMITS.items())
    return Finding(subject, limits, f"set its connect_query to: {wanted}")


async def check_schema(settings: Settings) -> Finding:
    """Look whether the schema is that of this build."""
    from sqlalchemy.exc import SQLAlchemyError

    from models.migrations.runner import current, head

    try:
        revision = await asyncio.to_thread(current, settings.database_url.get_secret_value())
    except SQLAlchemyError:
        return Finding("Schema", "not available", "fix the database connection first")
    if revision == head():
        return Finding("Schema", f"revision {revision}")
    return Finding("Schema", f"revision {revision}, not {head()}", "run `workspace migrate`")


async def check_secret_key(settings: Settings) -> Finding:
    """Look whether the secret key is that of the database, and whether an older one is in use."""
    import psycopg
    from sqlalchemy.exc import DBAPIError

    from models.core.secret_keys import (
        DOCUMENTATION,
        WrongSecretKeyError,
        check_keys,
        key_names,
        known_keys,
    )
    from runtime.crypto import KeyRing
    from runtime.database import Database

    subject, keys = "Secret key", KeyRing(settings.secret_keys)
    database = Database(settings.database_url.get_secret_value(), pool_size=1)
    try:
        async with database.transaction() as work:
            recorded = [*await known_keys(work)]
        check_keys(recorded, keys.ids)
    except WrongSecretKeyError:
        fact = f"{key_names(keys.ids)}, but the database uses {key_names(recorded)}"
        return Finding(
            subject, fact, f"set WORKSPACE_SECRET_KEY to the keys of the database ({DOCUMENTATION})"
        )
    except (psycopg.Error, DBAPIError):
        return Finding(subject, "not checked", "fix the database and its schema first")
    finally:
        await database.close()
    current = key_names([keys.current_id])
    older = [one for one in recorded if one != keys.current_id]
    if recorded and keys.current_id not in recorded:
        return warning(subject, f"{current}, not in use yet", "restart the API and the workers")
    if older:
        remedy = f"run `workspace rotate-secret`, then remove the older one ({DOCUMENTATION})"
        return warning(subject, f"{current}; older: {key_names(older)}", remedy)
    return Finding(subject, current)


_TIMEOUT = timedelta(seconds=5)


async def check_temporal(settings: Settings) -> Finding:
    """Look whether Temporal answers, and has the namespace."""
    from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, GetSystemInfoRequest
    from temporalio.service import RPCError, RPCStatusCode

    from runtime.temporal.client import TemporalUnreachableError, connect

    subject = "Temporal"
    try:
        client = await connect(settings, seconds=3)
        service = client.workflow_service
        server = await service.get_system_info(GetSystemInfoRequest(), timeout=_TIMEOUT)
        described = DescribeNamespaceRequest(namespace=client.namespace)
        await service.describe_namespace(described, timeout=_TIMEOUT)
    except TemporalUnreachableError:
        return Finding(subject, "no response", "check TEMPORAL_ADDRESS and Temporal")
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            remedy = "run temporal/set-up-namespace.sh, or check TEMPORAL_NAMESPACE"
            return Finding(subject, f"namespace {client.namespace} not found", remedy)
        remedy = "check TEMPORAL_API_KEY and the other TEMPORAL_ variables"
        return Finding(subject, f"refuses: {error.status.name.lower()}", remedy)
    return Finding(subject, f"version {server.server_version}, namespace {client.namespace}")


async def check_search_attributes(settings: Settings) -> Finding:
    """Look whether the namespace has the search attributes."""
    from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
    from temporalio.service import RPCError

    from runtime.temporal.client import TemporalUnreachableError, connect
    from runtime.temporal.workflow_kinds import SearchAttribute

    subject = "Search attributes"
    try:
        client = await connect(settings, seconds=3)
        request = ListSearchAttributesRequest(namespace=client.namespace)
        answer = await client.operator_service.list_search_attributes(request, timeout=_TIMEOUT)
    except (TemporalUnreachableError, RPCError):
        return Finding(subject, "not available", "fix the Temporal connection first")
    missing = [name.value for name in SearchAttribute if name.value not in answer.custom_attributes]
    if not missing:
        return Finding(subject, "all registered")
    return Finding(subject, f"missing: {', '.join(missing)}", "run temporal/set-up-namespace.sh")


async def check_workers(settings: Settings) -> Finding:
    """Look whether each build with work has workers: processes that poll, and are alive."""
    from temporalio.service import RPCError

    from cli.deploy.deployment import Deployment, overview
    from cli.polling import identity, worker_processes
    from runtime.temporal.client import TemporalUnreachableError, connect

    subject = "Workers"
    processes = await worker_processes(settings.database_url.get_secret_value())
    if processes is None:
        return Finding(subject, "not available", "fix the database and its schema first")
    alive = {identity(one) for one in processes if one.alive}
    try:
        client = await connect(settings, seconds=3)
        deployment = Deployment(client, settings.worker_deployment, alive)
        rows = await overview(deployment)
    except TemporalUnreachableError:
        return Finding(subject, "not available", "fix the Temporal connection first")
    except RPCError as error:
        remedy = "read the log of Temporal: its own storage may be full or not available"
        return Finding(subject, f"Temporal answers {error.status.name.lower()}", remedy)
    return judged_workers(processes, rows)


def judged_workers(processes: "Sequence[WorkerBody]", rows: "Sequence[BuildOverview]") -> Finding:
    """The finding about the processes of the last hour, and builds with their workers."""
    from cli.deploy.deployment import faults
    from cli.polling import identity

    subject = "Workers"
    facts = [
        f"{row.build or 'without version'} {row.state.value}, {row.percent:g} % of new work,"
        f" {len(row.workers)} worker{'' if len(row.workers) == 1 else 's'}"
        for row in rows
    ]
    absences = [
        f"{identity(one)} last seen at {one.seen_at:%H:%M:%S}Z"
        for one in processes
        if not one.alive
    ]
    fact = "; ".join([*facts, *absences]) or "none seen"
    if all(not one.alive for one in processes):
        return Finding(subject, fact, "start `workspace worker`")
    remedies = [sentence for row in rows for sentence in faults(row)]
    if remedies:
        return Finding(subject, fact, " ".join(remedies))
    if absences:
        return warning(subject, fact, "check why the worker stopped (shown for one hour)")
    return Finding(subject, fact)


_SECONDS = 5.0
_GIB = 1024**3
_LOW, _FULL = (0.10, 2 * _GIB), (0.02, _GIB // 4)
"""A share of a disk, and bytes, of which less than both is free."""


async def check_object_store(settings: Settings) -> Finding:
    """Look whether the object store can be written and read."""
    from runtime.errors import StorageFullError, UnavailableError
    from runtime.object_store import ObjectStore

    subject = "Object store"
    if settings.object_store.startswith("memory:"):
        return Finding(subject, "in memory of one process", "set WORKSPACE_OBJECT_STORE")
    try:
        await ObjectStore(settings.object_store).probe()
    except StorageFullError:
        return Finding(subject, "its disk is full", "free disk space")
    except (UnavailableError, OSError):
        remedy = "check WORKSPACE_OBJECT_STORE and the AWS_… variables"
        return Finding(subject, "write and read failed", remedy)
    return Finding(subject, settings.object_store)


async def check_disks(settings: Settings) -> Finding:
    """Check the free space on the disks of this machine that the platform writes to."""
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
            worst = Finding("Disks", "", "free disk space, or move the data to another disk")
        elif _is_below(free, total, _LOW) and worst.remedy is None:
            worst = warning("Disks", "", "free disk space soon, or enlarge the disk")
    if not facts:
        return Finding("Disks", "not on this machine")
    return Finding("Disks", "; ".join(facts), worst.remedy, worst.is_warning)


def _directories(settings: Settings) -> Iterator[tuple[str, Path]]:
    yield "state directory", _nearest(settings.state_dir)
    store = urlsplit(settings.object_store)
    if store.scheme == "file":
        yield "object store", _nearest(Path(unquote(store.path)))


def _nearest(directory: Path) -> Path:
    """The directory, or the nearest existing one above it."""
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
    from runtime.configuration.sections import DEVELOPMENT_ISSUER

    subject, issuer, keys = "Identity provider", settings.oidc_issuer, settings.oidc_jwks
    if issuer is None or keys is None:
        remedy = (
            "set WORKSPACE_OIDC_ISSUER, WORKSPACE_OIDC_AUDIENCE and WORKSPACE_OIDC_JWKS; until"
            " then, people can only use `workspace sign-in` (docs/first-sign-in.md)"
        )
        return warning(subject, "not configured", remedy)
    problem = await _key_set_problem(keys)
    if problem is not None:
        return Finding(subject, f"{issuer}: {problem}", "check WORKSPACE_OIDC_JWKS")
    if issuer == DEVELOPMENT_ISSUER:
        return Finding(subject, "the local one of `workspace up`")
    if settings.oidc_client_id is None:
        remedy = "set WORKSPACE_OIDC_CLIENT_ID to enable sign-in to the console"
        return warning(subject, f"{issuer}, session tokens only", remedy)
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
        return f"no key set found at {place}"
    keys = found.get("keys") if isinstance(found, dict) else None
    return None if isinstance(keys, list) and keys else f"{place} has no keys"


async def _discovery_problem(issuer: str) -> str | None:
    """The reason for which the console cannot send people to the provider, or None."""
    url = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
    try:
        found = await _read_json(url)
    except (OSError, ValueError):
        return f"no discovery document found at {url}"
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
    from runtime.configuration.resources import platform_policy
    from runtime.outbound.errors import OutboundError
    from runtime.outbound.mail import MailClient

    subject, server = "Mail server", settings.mail
    if server is None:
        remedy = "set WORKSPACE_SMTP_URL and WORKSPACE_SMTP_FROM; until then no email is sent"
        return warning(subject, "not configured", remedy)
    place = f"{server.host}:{server.port}"
    try:
        await MailClient(server, platform_policy(settings), seconds=_SECONDS).probe()
    except OutboundError as error:
        remedy = "check WORKSPACE_SMTP_URL, and WORKSPACE_OUTBOUND_ALLOW for a private host"
        return Finding(subject, f"{place}: {error}", remedy)
    return Finding(subject, f"{place}, from {server.sender}")
