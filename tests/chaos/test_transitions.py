"""PostgreSQL itself refuses every status change outside the tables (promise I3)."""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from models.automation.automation_runs.rules import NODE_TRANSITIONS, RUN_TRANSITIONS
from models.messages.jobs.rules import TRANSITIONS as JOB_TRANSITIONS
from models.workspace.legacy_imports.rules import RUN_LIFECYCLE

TABLES: Mapping[str, Mapping[Any, Any]] = {
    "automation_run": RUN_TRANSITIONS,
    "node_run": NODE_TRANSITIONS,
    "job": JOB_TRANSITIONS,
    "legacy_import_run": RUN_LIFECYCLE.moves,
}
MATRIX = [
    (table, before, after)
    for table, transitions in TABLES.items()
    for before, after in product(transitions, repeat=2)
]


@pytest.fixture(scope="module")
def connection(url: str) -> Iterator[psycopg.Connection]:
    """A database without foreign keys, so that a row needs no platform around it."""
    with psycopg.connect(url, autocommit=True) as connection:
        for table in TABLES:
            keys = connection.execute(
                "SELECT conname FROM pg_constraint WHERE conrelid = %s::regclass AND contype = 'f'",
                (table,),
            )
            for (key,) in keys.fetchall():
                connection.execute(f"ALTER TABLE {table} DROP CONSTRAINT {key}")
        yield connection


@pytest.mark.parametrize(("table", "before", "after"), MATRIX)
def test_only_the_moves_of_the_table_are_taken(
    connection: psycopg.Connection, table: str, before: Any, after: Any
) -> None:
    key, value = _insert(connection, table, before)
    statement = f"UPDATE {table} SET status = %s WHERE {key} = %s"  # noqa: S608  # our own names
    if after == before or after in TABLES[table][before]:
        assert connection.execute(statement, (after.value, value)).rowcount == 1
    else:
        with pytest.raises(psycopg.errors.CheckViolation):
            connection.execute(statement, (after.value, value))


def _insert(connection: psycopg.Connection, table: str, status: Any) -> tuple[str, Any]:
    """A row with this status; gives its key column and value."""
    identity = uuid4()
    if table == "node_run":
        connection.execute(
            "INSERT INTO node_run (run_id, node_id, scope_key, workspace_id, node_kind, status,"
            " attempt) VALUES (%s, 'a', '', %s, 'transform', %s, 1)",
            (identity, uuid4(), status.value),
        )
    elif table == "job":
        connection.execute(
            "INSERT INTO job (id, workspace_id, family, subject_id, actor_user_id, status, input,"
            " progress, created_at) VALUES (%s, %s, '', %s, %s, %s, '{}', '{}', now())",
            (identity, uuid4(), uuid4(), uuid4(), status.value),
        )
    elif table == "legacy_import_run":
        connection.execute(
            "INSERT INTO legacy_import_run (id, bundle_object_key, bundle_checksum, uploaded,"
            " status, mode, created_by_user_id, created_at, updated_at)"
            " VALUES (%s, '', '', false, %s, 'dry_run', %s, now(), now())",
            (identity, status.value, uuid4()),
        )
    else:
        connection.execute(
            "INSERT INTO automation_run (id, workspace_id, automation_id, automation_version_id,"
            " graph_checksum, status, source, trigger_payload, options, created_at)"
            " VALUES (%s, %s, %s, %s, '', %s, 'manual', '{}', '{}', now())",
            (identity, uuid4(), uuid4(), uuid4(), status.value),
        )
    return ("run_id" if table == "node_run" else "id"), identity
