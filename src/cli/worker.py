"""`workspace worker`: executes workflows and activities."""

import gc
import os
from pathlib import Path
from typing import Annotated

import typer

from cli.console import reported
from cli.memory_limit import bound_memory
from runtime.exit_codes import PREDECESSOR
from runtime.families import Queue
from runtime.settings import Settings, load_settings


def worker(
    queues: Annotated[
        list[Queue] | None, typer.Option("--queue", help="Task queue to work on; all by default.")
    ] = None,
) -> None:
    """Execute workflows and activities until SIGTERM, then drain."""
    # Looking for cycles among what is being imported takes a third of the time of a start.
    gc.disable()
    import uvloop

    from runtime.telemetry import configure_logging
    from runtime.tracing import configure_tracing

    with reported():
        settings = load_settings()
        configure_logging(settings.log_format, settings.log_level)
        configure_tracing(settings.otel_endpoint, "workspace-worker")
        bound_memory(settings.worker_memory_limit)
        uvloop.run(_run(settings, queues or list(Queue)))


async def _run(settings: Settings, queues: list[Queue]) -> None:
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
