"""Opens what the workers of a process share, from its settings."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import structlog

from activities.deliveries.push import pushers_of
from activities.parts import Parts, Periods
from runtime.configuration.resources import platform_database, platform_policy
from runtime.configuration.settings import Settings
from runtime.crypto import KeyRing
from runtime.object_store import ObjectStore
from runtime.outbound.client import OutboundClient
from runtime.outbound.mail import MailClient
from runtime.temporal.client import connect

log = structlog.get_logger()


@asynccontextmanager
async def open_parts(
    settings: Settings, application: str, metrics_address: str | None = None
) -> AsyncIterator[Parts]:
    """The parts; PostgreSQL knows the process as `application`."""
    database = platform_database(settings, application)
    policy = platform_policy(settings)
    async with (
        OutboundClient(policy) as outbound,
        OutboundClient(policy, http2=True) as http2,
    ):
        yield Parts(
            database,
            await connect(settings, metrics_address=metrics_address, on_wait=_tell),
            outbound,
            KeyRing(settings.secret_keys),
            ObjectStore(settings.object_store),
            Periods.of(settings),
            settings.running_cap,
            None if settings.mail is None else MailClient(settings.mail, policy),
            timedelta(seconds=settings.run_limit_seconds),
            providers=settings.providers,
            pushers=pushers_of(settings, outbound, http2),
            counted_attributes=settings.counted_attributes,
            public_url=settings.public_url,
        )
    await database.close()


def _tell(address: str) -> None:
    log.warning("Temporal does not answer yet; the worker asks again", address=address)
