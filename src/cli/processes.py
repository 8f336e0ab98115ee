"""Commands that start the platform: `up` and `demo` start all of it, the others a part."""

import asyncio
import gc
import json
import os
import signal
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.console import StartError, reported
from cli.secret_keys import require_secret_key
from cli.shutdown import ANSWER_SECONDS, CLOSING_SECONDS, bound_memory, cut_off_later
from cli.supervisor.state import StateDir, port_option, read_object, running_services
from runtime.configuration.settings import Settings, load_settings
from runtime.processes.bounded_processes import refuse_beyond
from runtime.processes.exit_codes import PREDECESSOR
from runtime.temporal.workflow_kinds import Queue

if TYPE_CHECKING:
    import uvicorn
    from fastapi import FastAPI


def up(
    state_dir: Annotated[
        Path, typer.Option(envvar="WORKSPACE_STATE_DIR", help="Directory for all data.")
    ] = Path(".state"),
    port: Annotated[
        int, port_option("--port", "Port of the API. 0: any free port.", envvar="WORKSPACE_PORT")
    ] = 8000,
    temporal_port: Annotated[
        int, port_option("--temporal-port", "Port of the embedded Temporal. 0: any free port.")
    ] = 7233,
    ui_port: Annotated[
        int, port_option("--ui-port", "Port of Temporal's UI. 0: any free port.")
    ] = 8233,
    database_url: Annotated[
        str | None,
        typer.Option(envvar="DATABASE_URL", help="PostgreSQL to use instead of an embedded one."),
    ] = None,
    temporal_address: Annotated[
        str | None,
        typer.Option(envvar="TEMPORAL_ADDRESS", help="Temporal to use instead of an embedded one."),
    ] = None,
    restore: Annotated[
        Path | None,
        typer.Option(help="Replace the data with this pg_dump file, then start."),
    ] = None,
) -> None:
    """Start the platform and keep it running until Ctrl-C."""
    from cli.supervisor.platform import UpOptions, run_platform

    options = UpOptions(
        state_dir=state_dir,
        port=port,
        temporal_port=temporal_port,
        ui_port=ui_port,
        database_url=database_url or None,
        temporal_address=temporal_address or None,
        restore=restore,
    )
    # Logs, sockets and databases are for the account that runs the platform alone.
    os.umask(0o077)
    with reported():
        if restore is not None:
            _require_dump(restore, database_url)
        asyncio.run(run_platform(options))


def _require_dump(dump: Path, database_url: str | None) -> None:
    if database_url:
        raise StartError("--restore only works with the embedded PostgreSQL. Use pg_restore.")
    if not dump.is_file():
        raise StartError(f"{dump} is not a file.")


_STATE_DIR = typer.Option(envvar="WORKSPACE_STATE_DIR", help="State directory of the platform.")


def status(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
    state_dir: Annotated[Path, _STATE_DIR] = Path(".state"),
) -> None:
    """Show whether the platform runs here, and where. Exits with 1 if it does not run."""
    with reported():
        state = StateDir(state_dir)
        owner = state.owner()
        connection = read_object(state.connection) if owner is not None else {}
        services = running_services(state) if owner is not None else {}
    if as_json:
        urls = {name: url for name, url in connection.items() if name in _SHOWN}
        fields = {"running": owner is not None, "process": owner, "services": services}
        typer.echo(json.dumps({**fields, "ready": bool(connection), **urls}, indent=2))
    elif owner is None:
        typer.echo(f"Not running in {state.root}. Start it: workspace up")
    else:
        ready = "Running" if connection else "Starting"
        typer.echo(f"{ready} in {state.root} (process {owner})")
        for name, label in _SHOWN.items():
            if connection.get(name):
                typer.echo(f"{label:14}{connection[name]}")
        for name, process in services.items():
            typer.echo(f"{name:14}{'stopped' if process is None else f'process {process}'}")
    raise typer.Exit(0 if owner is not None else 1)


_SHOWN = {
    "consoleUrl": "Console",
    "baseUrl": "API",
    "docsUrl": "Documentation",
    "temporalUiUrl": "Temporal UI",
}


def stop(
    state_dir: Annotated[Path, _STATE_DIR] = Path(".state"),
    seconds: Annotated[
        float, typer.Option("--timeout", min=0, help="Seconds to wait for the end.")
    ] = 120,
) -> None:
    """Stop the platform that runs here, as Ctrl-C does. Exits with 1 if it does not end in time.

    Work in progress is finished or continued at the next start.
    """
    with reported():
        state = StateDir(state_dir)
        owner = state.owner()
        if owner is None:
            typer.echo(f"Not running in {state.root}.")
            return
        try:
            os.kill(owner, signal.SIGTERM)
        except PermissionError:
            raise StartError(f"Process {owner} belongs to another account.") from None
        except ProcessLookupError:
            pass
        typer.echo(f"Stopping the platform in {state.root} (process {owner})…")
        deadline = time.monotonic() + seconds
        while state.owner() == owner:
            if time.monotonic() > deadline:
                raise StartError(f"Process {owner} is still running after {seconds:g} s.")
            time.sleep(0.1)
        typer.echo("Stopped.")


def demo(
    into: Annotated[
        Path | None,
        typer.Option(
            metavar="STATE_DIR",
            help="Create the sample shop in the platform that runs there, and keep it.",
        ),
    ] = None,
) -> None:
    """Run a sample automation, and kill the worker halfway.

    Starts a temporary platform on free ports, and deletes it afterwards. With --into, only the
    sample shop is created, in the first workspace of a running platform.
    """
    from cli.demo import fill_platform, run_demo

    with reported():
        asyncio.run(run_demo() if into is None else fill_platform(into))


def migrate(
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Only compare migrations and tables, on a temporary PostgreSQL.",
        ),
    ] = False,
    first_key: Annotated[bool, typer.Option("--first-key", hidden=True)] = False,
) -> None:
    """Migrate the database at DATABASE_URL. Safe to run concurrently."""
    from models.migrations.runner import UnknownRevisionError, current, upgrade

    with reported():
        if check:
            _check_migrations()
            return
        settings = load_settings()
        url = settings.database_url.get_secret_value()
        try:
            upgrade(url)
        except UnknownRevisionError as error:
            raise StartError(str(error)) from None
        typer.echo(f"The database is at revision {current(url)}.")
        asyncio.run(require_secret_key(settings))
        if first_key:
            from cli.supervisor.first_workspace import ensure_first_key

            state = StateDir(Path(os.environ["WORKSPACE_STATE_DIR"]))
            asyncio.run(ensure_first_key(state, url))


def _check_migrations() -> None:
    """Raises StartError when the migrations do not make what the tables describe."""
    from alembic import command
    from alembic.util.exc import AutogenerateDiffsDetected
    from sqlalchemy import create_engine

    from models.migrations.runner import configuration, upgrade
    from models.migrations.throwaway import throwaway_server
    from runtime.database import driver_url

    with throwaway_server() as url:
        upgrade(url)
        engine = create_engine(driver_url(url))
        with engine.connect() as connection:
            config = configuration()
            config.attributes["connection"] = connection
            try:
                command.check(config)
            except AutogenerateDiffsDetected as error:
                raise StartError(f"The tables have changes without a migration: {error}") from None
            finally:
                connection.rollback()
                engine.dispose()
    typer.echo("Migrations and tables match.")


_LONG_EVALUATIONS = 6
"""At once: each holds a connection to the database. More are answered 503."""
_LONG_EVALUATIONS_OF_ONE_CALLER = 2

_KEEP_ALIVE_SECONDS = 75
"""The time an idle connection stays: longer than the minute that proxies and clients keep one."""


def api(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, port_option("--port", "Port to listen on.", envvar="WORKSPACE_PORT")
    ] = 8000,
) -> None:
    """Run the API server."""
    # Garbage collection during the imports takes a third of the time of a start.
    gc.disable()
    from api.app import create_app
    from runtime.observability.logs import configure_logging
    from runtime.observability.tracing import configure_tracing

    with reported():
        settings = listening_at(load_settings(), f"{host}:{port}")
        configure_logging(settings.log_format, settings.log_level)
        configure_tracing(settings.otel_endpoint, "workspace-api")
        bound_memory(settings.api_memory_limit)
        refuse_beyond(_LONG_EVALUATIONS_OF_ONE_CALLER, _LONG_EVALUATIONS)
        asyncio.run(require_secret_key(settings))
        app = create_app(settings)
        # Objects of the start are permanent, and a request frees its many objects soon: garbage
        # collection among them took a third of the time of a large batch.
        gc.freeze()
        gc.set_threshold(50_000, 10, 10)
        gc.enable()
        _serve(app, host, port)


def listening_at(settings: Settings, address: str) -> Settings:
    """The settings of a process that listens there itself."""
    return settings.model_copy(update={"own_listeners": (*settings.own_listeners, address)})


def _serve(app: "FastAPI", host: str, port: int) -> None:
    """Answer requests until a signal; requests in progress are still answered."""
    from api.server import Server

    def close_streams() -> None:
        # A database that does not answer holds up the requests that wait for it.
        cut_off_later(ANSWER_SECONDS + CLOSING_SECONDS, 0)
        # Clients of streams reconnect to another process, so this one need not wait.
        app.state.services.streams.closing = True
        app.state.services.hub.closing = True
        app.state.services.awaited.close()

    server = Server(_server_config(app, host, port), close_streams)
    with suppress(KeyboardInterrupt):
        server.run()
    # uvicorn logs a port in use and returns; a supervisor must see it as a failure.
    if not server.started:
        raise typer.Exit(3)


def _server_config(app: "FastAPI", host: str, port: int) -> "uvicorn.Config":
    import uvicorn

    from api.server import (
        MOST_RECEIVED,
        PING_SECONDS,
        BoundedConnection,
        BoundedSocket,
        ConnectionLimits,
    )

    settings = app.state.services.settings
    limits = ConnectionLimits(settings.receive_seconds, settings.connections_per_address)
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http=partial(BoundedConnection, limits),  # type: ignore[arg-type]  # makes the protocol
        ws=partial(BoundedSocket, limits.leave),  # type: ignore[arg-type]  # makes the protocol
        ws_max_size=MOST_RECEIVED,
        ws_ping_interval=PING_SECONDS,
        ws_ping_timeout=PING_SECONDS,
        ws_per_message_deflate=False,
        # The platform writes its own request log.
        access_log=False,
        log_config=None,
        server_header=False,
        # No answer depends on what a request says of its host, scheme or sender.
        proxy_headers=False,
        timeout_graceful_shutdown=ANSWER_SECONDS,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
    )


def worker(
    queues: Annotated[
        list[Queue] | None, typer.Option("--queue", help="Task queue. Default: all.")
    ] = None,
) -> None:
    """Run a worker until SIGTERM, then drain it."""
    # Garbage collection during the imports takes a third of the time of a start.
    gc.disable()
    import uvloop

    from runtime.observability.logs import configure_logging
    from runtime.observability.tracing import configure_tracing

    with reported():
        settings = load_settings()
        configure_logging(settings.log_format, settings.log_level)
        configure_tracing(settings.otel_endpoint, "workspace-worker")
        bound_memory(settings.worker_memory_limit)
        uvloop.run(_run_worker(settings, queues or list(Queue)))


async def _run_worker(settings: Settings, queues: list[Queue]) -> None:
    from cli.worker_process import run_worker

    gc.freeze()
    gc.enable()
    heartbeat = os.environ.get("WORKSPACE_HEARTBEAT_FILE")
    predecessor = os.environ.get(PREDECESSOR)
    await run_worker(
        settings,
        queues,
        None if heartbeat is None else Path(heartbeat),
        None if predecessor is None else int(predecessor),
    )
