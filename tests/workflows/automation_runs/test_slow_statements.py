"""A statement that exceeds its time fails its node; a database that is away does not."""

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from activities.database_errors import DATABASE_AWAY, took_too_long
from runtime.database import Database


async def test_a_statement_that_takes_too_long_is_distinguished_from_a_database_that_is_away(
    database: Database,
) -> None:
    with pytest.raises(OperationalError) as slow:
        await _statements(database, "SET LOCAL statement_timeout = '50ms'", "SELECT pg_sleep(5)")
    assert isinstance(slow.value, DATABASE_AWAY)
    assert took_too_long(slow.value)
    with pytest.raises(OperationalError) as gone:
        await _statements(database, "SELECT pg_terminate_backend(pg_backend_pid())")
    assert not took_too_long(gone.value)


async def _statements(database: Database, *statements: str) -> None:
    async with database.transaction() as work:
        for statement in statements:
            await work.execute(text(statement))
