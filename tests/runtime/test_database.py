"""What reads see of writes beside them."""

import pytest
from sqlalchemy import (
    Integer,
    QueuePool,
    bindparam,
    column,
    func,
    insert,
    literal,
    select,
    table,
    text,
)

from runtime.database import Database
from runtime.errors import NotFoundError
from runtime.postgresql.statements import PreparedStatement
from runtime.rehearsal import dry_run

ONE = PreparedStatement(select(literal(1).label("one")))
ACTING = PreparedStatement(select(func.set_config("workspace.actor", "somebody", True)))
NUMBERS = table("number_seen", column("number", Integer))


@pytest.fixture
async def numbers(database: Database) -> Database:
    async with database.transaction() as work:
        await work.execute(text("CREATE TABLE IF NOT EXISTS number_seen (number int)"))
        await work.execute(text("TRUNCATE number_seen"))
    return database


async def test_the_reads_of_a_snapshot_agree(numbers: Database) -> None:
    async with numbers.snapshot() as reading:
        assert await reading.rows(select(NUMBERS)) == []
        async with numbers.transaction() as work:
            await work.execute(insert(NUMBERS), {"number": 1})
        assert await reading.rows(select(NUMBERS)) == []
    async with numbers.snapshot() as reading:
        assert await reading.rows(select(NUMBERS)) == [(1,)]


async def test_other_reads_see_what_was_committed_last(numbers: Database) -> None:
    async with numbers.reading() as reading:
        assert await reading.rows(select(NUMBERS)) == []
        async with numbers.transaction() as work:
            await work.execute(insert(NUMBERS), {"number": 1})
        assert await reading.rows(select(NUMBERS)) == [(1,)]


async def test_one_row_is_the_first_or_an_error_that_names_it(numbers: Database) -> None:
    async with numbers.transaction() as work:
        with pytest.raises(NotFoundError, match="The number does not exist"):
            await work.one(select(NUMBERS), "number")
        await work.execute(insert(NUMBERS), [{"number": 2}, {"number": 1}])
        row = await work.one(select(NUMBERS).order_by(NUMBERS.c.number), "number")
        assert row == (1,)


@pytest.mark.parametrize("kind", ["reading", "snapshot"])
async def test_a_reading_unit_of_work_does_not_write(numbers: Database, kind: str) -> None:
    with pytest.raises(RuntimeError, match="A read was announced"):
        async with getattr(numbers, kind)() as reading:
            await reading.execute(insert(NUMBERS), {"number": 1})
    async with numbers.transaction() as work:
        await work.execute(insert(NUMBERS), {"number": 2})


async def test_a_read_takes_a_connection_when_it_needs_one(numbers: Database) -> None:
    pool = numbers.engine.pool
    assert isinstance(pool, QueuePool)
    async with numbers.reading() as reading:
        async with reading.for_one_statement() as single:
            assert (await ONE.first(single, {})).one == 1
        assert pool.checkedout() == 0
        assert await reading.scalar(text("SELECT 1")) == 1
        assert pool.checkedout() == 1
    assert pool.checkedout() == 0


async def test_the_first_statement_of_a_transaction_belongs_to_it(numbers: Database) -> None:
    setting = "SELECT current_setting('workspace.actor', true)"
    async with numbers.transaction() as work, work.for_one_statement() as first:
        assert first is work
        await ACTING.first(first, {})
        assert await work.scalar(text(setting)) == "somebody"


async def test_a_dry_run_keeps_nothing_but_the_prepared_statements(
    numbers: Database, database_url: str
) -> None:
    """The driver drops them at each rollback, and the next transaction would plan them anew."""
    statement = PreparedStatement(insert(NUMBERS).values(number=bindparam("number")))
    prepared = text("SELECT count(*) FROM pg_prepared_statements")
    database = Database(database_url, pool_size=1)
    try:
        async with database.transaction() as work:
            await statement.execute(work, {"number": 1})
            before = await work.scalar(prepared)
        async with dry_run(database) as work:
            await statement.execute(work, {"number": 2})
        async with database.transaction() as work:
            assert await work.scalar(prepared) == before > 0
            assert [row.number for row in await work.rows(select(NUMBERS))] == [1]
            await statement.execute(work, {"number": 3})
    finally:
        await database.close()
    async with numbers.snapshot() as work:
        assert await work.scalar(select(func.count()).select_from(NUMBERS)) == 2
