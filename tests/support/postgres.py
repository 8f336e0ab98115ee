"""One embedded PostgreSQL per test run, and one database per test process."""

import os
import tempfile
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import fasteners
import psycopg
from psycopg import sql

from models.migrations.runner import upgrade
from models.migrations.throwaway import boot
from models.tables import metadata
from tests.support.events import check_logged_events

_TEMPLATE = "template_workspace"
_RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID", uuid.uuid4().hex)
_WORKER = os.environ.get("PYTEST_XDIST_WORKER", "solo")

# The server counts processes, not databases: only the last one here may let go of it.
_databases: Counter[Path] = Counter()


@contextmanager
def migrated_database(name: str = "main") -> Iterator[str]:
    """The URL of a database of this process's own, a copy of the run's migrated template."""
    temporary = Path(tempfile.gettempdir())
    home = temporary / f"workspace-tests-{_RUN}"
    lock = fasteners.InterProcessLock(temporary / "workspace-tests.lock")
    database = f"test_{name}_{_WORKER}_{os.getpid()}"
    with lock:
        home.mkdir(exist_ok=True)
        server = boot(home / "data")
        _databases[home] += 1
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            if not _exists(connection, _TEMPLATE):
                _make_template(connection, server.get_uri(_TEMPLATE))
            connection.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY").format(
                    sql.Identifier(database), sql.Identifier(_TEMPLATE)
                )
            )
    try:
        yield server.get_uri(database)
    finally:
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            connection.execute(
                sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(database))
            )
        _databases[home] -= 1
        if not _databases[home]:
            with lock, suppress(OSError):
                server.cleanup()
                home.rmdir()  # fails while another process still uses the server


def emptied(url: str) -> None:
    """Remove every row of a migrated database, once its events fit the document."""
    check_logged_events(url)
    with psycopg.connect(url, autocommit=True) as connection:
        names = [sql.Identifier(table.name) for table in metadata.sorted_tables]
        connection.execute(sql.SQL("TRUNCATE {}").format(sql.SQL(", ").join(names)))


def _make_template(connection: psycopg.Connection, url: str) -> None:
    """Migrate under another name first, so that a half-migrated template is never found."""
    draft = f"{_TEMPLATE}_draft"
    connection.execute(f"DROP DATABASE IF EXISTS {draft}")
    connection.execute(f"CREATE DATABASE {draft}")
    upgrade(url.replace(_TEMPLATE, draft))
    connection.execute(f"ALTER DATABASE {draft} RENAME TO {_TEMPLATE}")


def _exists(connection: psycopg.Connection, name: str) -> bool:
    query = "SELECT 1 FROM pg_database WHERE datname = %s"
    return connection.execute(query, (name,)).fetchone() is not None
