"""The long-lived objects of an API process, and what runs beside its requests.

`create_app` makes them once; every request finds them as `request.services`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import psycopg
import structlog
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

import models.tables  # noqa: F401  # all sealed values
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
from models.core.secret_keys.commands import register_keys
from models.core.secret_keys.rules import WrongSecretKeyError
from runtime.crypto import KeyRing
from runtime.database import Database, libpq_url
from runtime.notifier import ANSWER_CHANNEL, LOG_CHANNEL, Notifier, listen
from runtime.object_store import ObjectStore
from runtime.outbound_policy import OutboundPolicy
from runtime.settings import Settings

log = structlog.get_logger()

_REGISTERED_AGAIN_SECONDS = 2.0
"""Until a database that is away is asked again."""


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
async def beside(work: Coroutine[Any, Any, None], name: str) -> AsyncIterator[None]:
    """Run something in a task of its own for the length of the block."""
    task = asyncio.create_task(work, name=name)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@asynccontextmanager
async def notifications(services: Services) -> AsyncIterator[None]:
    """Notify workers, and readers of logs, after each commit that concerns them."""
    notifier = Notifier(services.settings.database_url.get_secret_value())
    services.database.notify_workers = notifier.notify
    services.database.notify_readers = notifier.notify_readers
    services.database.notify_waiters = notifier.notify_waiters
    async with beside(notifier.run(), "notifier"):
        yield


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


@asynccontextmanager
async def secret_keys(services: Services) -> AsyncIterator[None]:
    """Record the secret key that the process writes under, once the database answers."""
    async with beside(_register(services), "secret-keys"):
        yield


async def _register(services: Services) -> None:
    while True:
        try:
            async with services.database.transaction() as work:
                await register_keys(work, services.keys)
        except WrongSecretKeyError as error:
            # `/readyz` says so as long as it is true.
            log.critical("the secret key is wrong", reason=error.message, keys=error.keys)
            return
        except (psycopg.Error, DBAPIError, PoolTimeoutError):
            await asyncio.sleep(_REGISTERED_AGAIN_SECONDS)
        else:
            return
