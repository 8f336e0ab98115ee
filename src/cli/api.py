"""`workspace api`: the HTTP door."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Annotated

import typer

from cli.console import reported
from runtime.settings import load_settings

if TYPE_CHECKING:
    from api.kernel.state import Kernel

_GRACE_SECONDS = 10
"""How long a stopping process lets requests finish."""


def api(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(envvar="WORKSPACE_PORT", help="Port to listen on.")] = 8000,
) -> None:
    """Serve the API."""
    import uvicorn

    from api.app import create_app
    from runtime.telemetry import configure_logging

    with reported():
        settings = load_settings()
        configure_logging(settings.log_format, settings.log_level)
        uvicorn.run(
            create_app(settings, services=[_wakes_relays]),
            host=host,
            port=port,
            # The platform writes its own request log.
            access_log=False,
            log_config=None,
            server_header=False,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )


@asynccontextmanager
async def _wakes_relays(kernel: "Kernel") -> AsyncIterator[None]:
    """Tell the workers of a commit that left work in the outbox, for as long as the API runs."""
    from runtime.database import libpq_url
    from runtime.outbox_notifier import OutboxNotifier

    notifier = OutboxNotifier(libpq_url(kernel.settings.database_url.get_secret_value()))
    kernel.database.on_outbox = notifier.notify
    running = asyncio.create_task(notifier.run())
    try:
        yield
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
