"""`workspace api`: serves HTTP."""

import asyncio
import gc
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from cli.console import reported
from cli.memory_limit import bound_memory
from cli.secret_keys import require_secret_key
from cli.shutdown import ANSWER_SECONDS, CLOSING_SECONDS, cut_off_later
from cli.supervisor.ports import port_option
from runtime.bounded_processes import refuse_beyond
from runtime.settings import Settings, load_settings

if TYPE_CHECKING:
    from fastapi import FastAPI

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
    """Serve the API."""
    # Looking for cycles among what is being imported takes a third of the time of a start.
    gc.disable()
    from api.app import create_app
    from runtime.telemetry import configure_logging
    from runtime.tracing import configure_tracing

    with reported():
        settings = listening_at(load_settings(), f"{host}:{port}")
        configure_logging(settings.log_format, settings.log_level)
        configure_tracing(settings.otel_endpoint, "workspace-api")
        bound_memory(settings.api_memory_limit)
        refuse_beyond(_LONG_EVALUATIONS_OF_ONE_CALLER, _LONG_EVALUATIONS)
        asyncio.run(require_secret_key(settings))
        app = create_app(settings)
        # What is there by now stays, and a request that makes many objects soon lets go of them:
        # looking for cycles among them took a third of the time of a large batch.
        gc.freeze()
        gc.set_threshold(50_000, 10, 10)
        gc.enable()
        _serve(app, host, port)


def listening_at(settings: Settings, address: str) -> Settings:
    """The settings of a process that listens there itself."""
    return settings.model_copy(update={"own_listeners": (*settings.own_listeners, address)})


def _serve(app: "FastAPI", host: str, port: int) -> None:
    """Answer requests until a signal; what is under way then is still answered."""
    import uvicorn

    from api.connections import BoundedConnection, ConnectionLimits
    from api.server import Server
    from api.websockets import MOST_RECEIVED, PING_SECONDS, BoundedSocket

    settings = app.state.services.settings

    def close_streams() -> None:
        # A database that does not answer holds up whoever waits for it.
        cut_off_later(ANSWER_SECONDS + CLOSING_SECONDS, 0)
        # Those who watch something come back to another process, and this one need not wait.
        app.state.services.streams.closing = True
        app.state.services.hub.closing = True
        app.state.services.awaited.close()

    limits = ConnectionLimits(settings.receive_seconds, settings.connections_per_address)
    server = Server(
        uvicorn.Config(
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
        ),
        close_streams,
    )
    with suppress(KeyboardInterrupt):
        server.run()
    if not server.started:
        raise typer.Exit(3)
