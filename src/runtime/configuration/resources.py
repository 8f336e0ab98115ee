"""The database and the outbound policy of a process, as its settings name them."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from psycopg.conninfo import conninfo_to_dict

from runtime.configuration.settings import Settings
from runtime.database import Database, libpq_url
from runtime.outbound_policy import Listener, OutboundPolicy
from runtime.postgresql.sessions import PATIENCE

_PATIENCE_OF_ANSWERS = 0.7
"""Seconds: a request is refused within a second when PostgreSQL does not answer."""


def platform_database(settings: Settings, application: str, *, answers: bool = False) -> Database:
    """Its transactions go through the pooler where there is one; `application` names the process.

    A process that `answers` requests does not wait long for a PostgreSQL that does not answer. A
    process that listens or migrates needs a session of its own, and uses `settings.database_url`.
    """
    pooler = settings.database_pooler_url
    url = (pooler or settings.database_url).get_secret_value()
    # Where the URL names several servers, the first may be one that is down.
    is_one = "," not in str(conninfo_to_dict(libpq_url(url)).get("host", ""))
    return Database(
        url,
        pool_size=settings.database_pool_size,
        application=application,
        pooled=pooler is not None,
        patience=_PATIENCE_OF_ANSWERS if answers and is_one else PATIENCE,
    )


_POSTGRESQL, _WEB = 5432, {"http": 80, "https": 443}


def platform_policy(settings: Settings) -> OutboundPolicy:
    """The policy of every call that a user causes."""
    return OutboundPolicy.from_entries(settings.outbound_allow, _listeners(settings))


def _listeners(settings: Settings) -> Iterator[Listener]:
    """The listeners of the platform that its settings name."""
    for database in filter(None, (settings.database_url, settings.database_pooler_url)):
        yield from _databases(database.get_secret_value())
    places = [settings.temporal_address, settings.worker_metrics_address, *settings.own_listeners]
    yield from (Listener.parse(place) for place in places if place)
    for text in (settings.temporal_ui_url, settings.public_url):
        url = urlsplit(text or "")
        if url.hostname and url.scheme in _WEB:
            yield Listener(url.hostname, url.port or _WEB[url.scheme], shared=True)


def _databases(url: str) -> Iterator[Listener]:
    """The servers of a libpq URL, of which there may be several; a socket is not reached."""
    parts = conninfo_to_dict(url)
    ports = str(parts.get("port") or _POSTGRESQL).split(",")
    for key in ("host", "hostaddr"):
        hosts = [host for host in str(parts.get(key) or "").split(",") if host]
        for place, host in enumerate(hosts):
            if not host.startswith(("/", "@")):
                port = ports[place] if len(ports) > 1 else ports[0]
                yield Listener(host.lower(), int(port or _POSTGRESQL))
