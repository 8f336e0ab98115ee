"""`workspace doctor`: checks the settings, and that what they name can be reached."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from cli.console import reported, terminal
from cli.supervisor.errors import StartError
from cli.supervisor.files import read_object
from cli.supervisor.state import StateDir
from runtime.settings import Settings, load_settings


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; a remedy makes it a fault."""

    subject: str
    fact: str
    remedy: str | None = None


def doctor(
    state_dir: Annotated[
        Path, typer.Option(envvar="WORKSPACE_STATE_DIR", help="State directory of a platform.")
    ] = Path(".state"),
) -> None:
    """Check the settings, the database and Temporal; exits with 1 when something is wrong.

    What the environment does not say is taken from the platform that runs on the state directory.
    """
    with reported():
        findings = asyncio.run(_examine(StateDir(state_dir)))
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("", "checked", "found", "do this"):
        table.add_column(column)
    for finding in findings:
        mark = "[green]ok[/]" if finding.remedy is None else "[red]fault[/]"
        table.add_row(mark, finding.subject, escape(finding.fact), escape(finding.remedy or ""))
    terminal().print(table)
    raise typer.Exit(1 if any(finding.remedy for finding in findings) else 0)


async def _examine(state: StateDir) -> Sequence[Finding]:
    findings = [Finding("Python", sys.version.split()[0])]
    overrides: dict[str, Any] = {}
    if state.is_owned():
        connection = read_object(state.connection)
        if not connection:
            raise StartError(f"{state.root}: the platform is not up. Wait, or see {state.logs}.")
        findings.append(await _platform(connection["baseUrl"], state))
        overrides = state.running_settings()
    elif "DATABASE_URL" not in os.environ:
        raise StartError(
            f"No platform runs on {state.root}: start it with `workspace up`, or choose another"
            " --state-dir. Of one that runs elsewhere, set DATABASE_URL and the other variables."
        )
    settings = load_settings(**overrides)
    checks: list[Callable[[Settings], Awaitable[Finding]]] = [
        _database, _schema, _object_store, _temporal, _search_attributes, _workers,
    ]  # fmt: skip
    if settings.database_pooler_url is not None:
        checks.insert(1, check_pooler)
    return [*findings, *[await check(settings) for check in checks]]


async def _platform(url: str, state: StateDir) -> Finding:
    import httpx2

    subject = "Platform"
    async with httpx2.AsyncClient(trust_env=False, timeout=5) as client:
        try:
            is_ready = (await client.get(f"{url}/readyz")).is_success
        except httpx2.TransportError:
            is_ready = False
    if is_ready:
        return Finding(subject, f"answers at {url}")
    return Finding(subject, f"does not answer at {url}", f"look into {state.logs}")


async def _database(settings: Settings) -> Finding:
    import psycopg

    from runtime.database import libpq_url

    url = libpq_url(settings.database_url.get_secret_value())
    try:
        async with await psycopg.AsyncConnection.connect(url, connect_timeout=5) as connection:
            version = connection.info.server_version // 10_000
    except psycopg.OperationalError:
        return Finding("PostgreSQL", "does not answer", "check DATABASE_URL, and that it is up")
    remedy = None if version >= 18 else "use PostgreSQL 18 or newer"
    return Finding("PostgreSQL", f"version {version}", remedy)


async def check_pooler(settings: Settings) -> Finding:
    """Look whether the pooler sets the limits that it does not let others set (ADR 0109)."""
    import psycopg

    from runtime.database import libpq_url
    from runtime.sessions import LIMITS

    subject, pooler = "Pooler", settings.database_pooler_url
    assert pooler is not None
    try:
        async with await psycopg.AsyncConnection.connect(
            libpq_url(pooler.get_secret_value()), connect_timeout=5, prepare_threshold=None
        ) as connection:
            query = "SELECT name, current_setting(name) FROM unnest(%s::text[]) AS name"
            rows = await (await connection.execute(query, ([*LIMITS],))).fetchall()
    except psycopg.OperationalError:
        return Finding(subject, "does not answer", "check DATABASE_POOLER_URL, and that it is up")
    limits = ", ".join(f"{name} {value}" for name, value in rows)
    if dict(rows) == LIMITS:
        return Finding(subject, limits)
    wanted = " ".join(f"SET {name} TO '{value}';" for name, value in LIMITS.items())
    return Finding(subject, limits, f"let its connect_query say: {wanted}")


async def _schema(settings: Settings) -> Finding:
    from sqlalchemy.exc import SQLAlchemyError

    from models.migrations.runner import current, head

    try:
        revision = await asyncio.to_thread(current, settings.database_url.get_secret_value())
    except SQLAlchemyError:
        return Finding("Schema", "cannot be read", "reach the database first")
    if revision == head():
        return Finding("Schema", f"revision {revision}")
    return Finding("Schema", f"revision {revision}, not {head()}", "run `workspace migrate`")


async def _object_store(settings: Settings) -> Finding:
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


async def _temporal(settings: Settings) -> Finding:
    from runtime.temporal_client import TemporalUnreachableError, connect

    try:
        client = await connect(settings, seconds=3)
    except TemporalUnreachableError:
        return Finding("Temporal", "does not answer", "check TEMPORAL_ADDRESS, and that it is up")
    return Finding("Temporal", f"namespace {client.namespace}")


async def _search_attributes(settings: Settings) -> Finding:
    from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
    from temporalio.service import RPCError

    from runtime.families import SearchAttribute
    from runtime.temporal_client import TemporalUnreachableError, connect

    subject = "Search attributes"
    try:
        client = await connect(settings, seconds=3)
        request = ListSearchAttributesRequest(namespace=client.namespace)
        answer = await client.operator_service.list_search_attributes(
            request, timeout=timedelta(seconds=5)
        )
    except (TemporalUnreachableError, RPCError):
        return Finding(subject, "cannot be read", "reach Temporal and its namespace first")
    missing = [name.value for name in SearchAttribute if name.value not in answer.custom_attributes]
    if not missing:
        return Finding(subject, "all registered")
    return Finding(subject, f"missing: {', '.join(missing)}", "run temporal/set-up-namespace.sh")


async def _workers(settings: Settings) -> Finding:
    from temporalio.service import RPCError

    from cli.deploy.deployment import Deployment
    from cli.deploy.overview import faults, overview
    from runtime.temporal_client import TemporalUnreachableError, connect

    subject = "Workers"
    try:
        client = await connect(settings, seconds=3)
        rows = await overview(Deployment(client, settings.worker_deployment))
    except (TemporalUnreachableError, RPCError):
        return Finding(subject, "cannot be read", "reach Temporal and its namespace first")
    builds = [
        f"{row.build or 'without version'} {row.state.value}, {row.percent:g} % of new work,"
        f" {len(row.workers)} workers"
        for row in rows
    ]
    remedies = [sentence for row in rows for sentence in faults(row)]
    return Finding(subject, "; ".join(builds) or "none was ever there", " ".join(remedies) or None)
