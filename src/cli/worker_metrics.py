"""The metrics of a worker: of its Temporal SDK, and of its process."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, generate_latest
from typing_extensions import override

from runtime.database import Database
from runtime.process_metrics import process_registry
from runtime.settings import Settings

LOOPBACK = "127.0.0.1"
_SDK_SECONDS = 5


def with_sdk_listener(settings: Settings) -> tuple[Settings, str | None]:
    """An address at which the SDK serves its metrics to this process alone; none without metrics.

    The settings name it as one of the platform's own, which no user's call reaches.
    """
    if settings.worker_metrics_address is None:
        return settings, None
    with socket.create_server((LOOPBACK, 0)) as listener:
        address = f"{LOOPBACK}:{listener.getsockname()[1]}"
    own = (*settings.own_listeners, address)
    return settings.model_copy(update={"own_listeners": own}), address


@contextmanager
def metrics_served(
    address: str | None, sdk_address: str | None, database: Database
) -> Iterator[None]:
    """Serve both kinds of metrics at one address, in a thread, until the block ends."""
    if address is None:
        yield
        return
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    process = process_registry(database)

    class Handler(_Handler):
        registry = process
        sdk_url = f"http://{sdk_address}/metrics"

    class Server(ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        daemon_threads = True

    server = Server((host, int(port)), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield
    finally:
        threading.Thread(target=server.shutdown, daemon=True).start()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    registry: CollectorRegistry
    sdk_url: str

    def do_GET(self) -> None:  # the name that the library looks for
        """Answer with all metrics, whatever the path."""
        body = generate_latest(self.registry) + self._of_the_sdk()
        self.send_response(200)
        self.send_header("Content-Type", CONTENT_TYPE_PLAIN_0_0_4)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _of_the_sdk(self) -> bytes:
        try:
            opener = build_opener(ProxyHandler({}))
            with opener.open(self.sdk_url, timeout=_SDK_SECONDS) as answer:
                body: bytes = answer.read()
        except (URLError, OSError):
            return b""
        return body

    @override
    def log_message(self, format: str, *arguments: object) -> None:
        """Keep scrapes out of the log."""
