"""The long-lived objects of an API process, and what runs beside its requests.

`create_app` makes them once; every request finds them as `request.services`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field

from api.kernel.awaited_work import AwaitedWork
from api.kernel.connection_shares import ConnectionShares
from api.kernel.event_streams import Streams
from api.kernel.identity_provider import IdentityProvider
from api.kernel.metrics import Metrics
from api.kernel.rate_limits import RateLimits
from api.kernel.request_log import RequestLogWriter
from api.kernel.sessions import SessionVerifier
from api.realtime.hub import Hub
from api.realtime.presence import Presence
from runtime.crypto import KeyRing
from runtime.database import Database, libpq_url
from runtime.notifier import ANSWER_CHANNEL, LOG_CHANNEL, Notifier, listen
from runtime.object_store import ObjectStore
from runtime.outbound_policy import OutboundPolicy
from runtime.settings import Settings


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
    provider: IdentityProvider | None = None
    """The identity provider that people sign in at."""
    streams: Streams = field(default_factory=Streams)
    awaited: AwaitedWork = field(default_factory=AwaitedWork)
    metrics: Metrics = field(init=False)
    hub: Hub = field(init=False)

    def __post_init__(self) -> None:
        self.metrics = Metrics(self.database)
        self.hub = Hub(self.database)


Background = Callable[[Services], AbstractAsyncContextManager[None]]
"""Something that runs beside the requests: entered at start, left at shutdown."""


@asynccontextmanager
async def notifications(services: Services) -> AsyncIterator[None]:
    """Notify workers, and readers of logs, after each commit that concerns them."""
    notifier = Notifier(services.settings.database_url.get_secret_value())
    services.database.notify_workers = notifier.notify
    services.database.notify_readers = notifier.notify_readers
    services.database.notify_waiters = notifier.notify_waiters
    task = asyncio.create_task(notifier.run(), name="notifier")
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@asynccontextmanager
async def feeds(services: Services) -> AsyncIterator[None]:
    """Tell requests and connected clients of what other processes have committed."""
    hub, awaited = services.hub, services.awaited
    url = libpq_url(services.settings.database_url.get_secret_value())

    def on_connect() -> None:
        hub.wake_all()
        awaited.wake_all()

    channels = {LOG_CHANNEL: hub.grown, ANSWER_CHANNEL: awaited.wake}
    listening = listen(url, channels, on_connect)
    tasks = [
        asyncio.create_task(one)
        for one in (hub.run(), Presence(services.database, hub).run(), listening)
    ]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
