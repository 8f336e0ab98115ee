"""The schema of a database, looked at without loading what migrates it."""

from contextlib import suppress
from pathlib import Path

import psycopg

import models.migrations

_VERSIONS = Path(models.migrations.__file__).with_name("versions")


def is_current(url: str) -> bool:
    """True when the schema is this build's; False, too, for a database that cannot be asked."""
    newest = max(path.name for path in _VERSIONS.glob("[0-9]*.py"))
    with suppress(psycopg.Error), psycopg.connect(url) as connection:
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        return row is not None and newest.startswith(f"{row[0]}_")
    return False
