"""The outbound policy of a process: what its settings allow, and where the platform itself is."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from psycopg.conninfo import conninfo_to_dict

from runtime.outbound_policy import OutboundPolicy
from runtime.own_listeners import Listener
from runtime.settings import Settings

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
