"""PostgreSQL itself refuses every status change outside the tables of moves."""

from collections.abc import Iterator, Mapping
from typing import Any

import psycopg
import pytest

from models.automation.action_runs.rules import STEP_TRANSITIONS
from models.automation.automation_runs.rules import NODE_TRANSITIONS
from models.core.lifecycle.commands import WORK
from models.tables import metadata

TABLES: Mapping[str, Mapping[Any, Any]] = {
    "node_run": NODE_TRANSITIONS,
    "action_step": STEP_TRANSITIONS,
    **{
        name: table.info[WORK].lifecycle.moves
        for name, table in metadata.tables.items()
        if WORK in table.info
    },
}
"""Every table of durable work, and those of its parts."""
STATUSES = [(table, before) for table, moves in TABLES.items() for before in moves]
_CONSTRAINTS = "SELECT conname FROM pg_constraint WHERE conrelid = %s::regclass AND contype <> 'n'"


@pytest.fixture(scope="module")
def connection(url: str) -> Iterator[psycopg.Connection]:
    """A database in which a row of these tables needs nothing but its status."""
    with psycopg.connect(url, autocommit=True) as connection:
        for table in TABLES:
            constraints = connection.execute(_CONSTRAINTS, (table,)).fetchall()
            bare = [f'DROP CONSTRAINT "{name}" CASCADE' for (name,) in constraints]
            bare += [f"ALTER {one.name} DROP NOT NULL" for one in metadata.tables[table].columns]
            connection.execute(f"ALTER TABLE {table} {', '.join(bare)}")
        yield connection


@pytest.mark.parametrize(("table", "before"), STATUSES)
def test_only_the_moves_of_the_table_are_taken(
    connection: psycopg.Connection, table: str, before: Any
) -> None:
    moves = TABLES[table]
    followed_by = {after for after in moves if _takes(connection, table, before, after)}
    assert followed_by == {before, *moves[before]}


def _takes(connection: psycopg.Connection, table: str, before: Any, after: Any) -> bool:
    connection.execute(f"DELETE FROM {table}")  # noqa: S608  # our own names
    connection.execute(f"INSERT INTO {table} (status) VALUES (%s)", (before.value,))  # noqa: S608
    try:
        changed = connection.execute(f"UPDATE {table} SET status = %s", (after.value,))  # noqa: S608
    except psycopg.errors.CheckViolation:  # all constraints of the table are gone
        return False
    return changed.rowcount == 1
