"""The long-lived objects of an API process, and what runs beside its requests.

`create_app` makes them once; every request finds them as `request.services`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field

from api.kernel.connection_shares import ConnectionShares
from api.kernel.event_streams import Streams
from api.kernel.rate_limits import RateLimits
from api.kernel.request_log import RequestLogWriter
from api.kernel.sessions import SessionVerifier
from runtime.crypto import KeyRing
from runtime.database import Database
from runtime.object_store import ObjectStore
from runtime.outbound_policy import OutboundPolicy
from runtime.settings import Settings
from runtime.worker_notifier import WorkerNotifier


@dataclass(slots=True)
class Services:
    """Held at `app.state.services`."""

    settings: Settings
    database: Database
    keys: KeyRing
    sessions: SessionVerifier | None
    request_log: RequestLogWriter
    store: ObjectStore
    limits: RateLimits
    shares: ConnectionShares
    outbound: OutboundPolicy
    streams: Streams = field(default_factory=Streams)


Background = Callable[[Services], AbstractAsyncContextManager[None]]
"""Something that runs beside the requests: entered at start, left at shutdown."""


@asynccontextmanager
async def worker_notifications(services: Services) -> AsyncIterator[None]:
    """Notify the workers after each commit that left something for them to do."""
    notifier = WorkerNotifier(services.settings.database_url.get_secret_value())
    services.database.notify_workers = notifier.notify
    task = asyncio.create_task(notifier.run(), name="worker-notifier")
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
