"""What the kernel keeps while the process lives."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from api.kernel.event_streams import Streams
from api.kernel.rate_limits import RateLimit
from api.kernel.request_log import RequestLogWriter
from api.kernel.sessions import SessionVerifier
from runtime.crypto import KeyRing
from runtime.database import Database
from runtime.object_store import ObjectStore
from runtime.settings import Settings


@dataclass(slots=True)
class Services:
    """Found by every request at `app.state.kernel`."""

    settings: Settings
    database: Database
    keys: KeyRing
    sessions: SessionVerifier | None
    request_log: RequestLogWriter
    store: ObjectStore
    webhook_limit: RateLimit
    streams: Streams = field(default_factory=Streams)


Background = Callable[[Services], AbstractAsyncContextManager[None]]
"""Something that runs beside the requests: entered at start, left at shutdown."""
