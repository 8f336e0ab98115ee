"""Reads that go straight to the driver behave like those that do not."""

from contextlib import AsyncExitStack

import psycopg
import pytest
from sqlalchemy import bindparam, exc, func, literal, null, select, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import Integer

from runtime.database import Database
from runtime.postgresql.statements import PreparedStatement
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.watched import WatchedDatabase

NUMBERS = PreparedStatement(
    select(
        func.unnest(bindparam("numbers", type_=ARRAY(Integer))).label("n"), literal(7).label("k")
    )
)
PID = PreparedStatement(select(func.pg_backend_pid().label("pid")))


async def test_rows_of_a_prepared_statement_have_names(database: WatchedDatabase) -> None:
    async with database.transaction() as work:
        rows = await NUMBERS.rows(work, {"numbers": [1, 2]})
        assert [(row.n, row.k) for row in rows] == [(1, 7), (2, 7)]
        assert (await NUMBERS.first(work, {"numbers": [3]})).n == 3
        assert await NUMBERS.first(work, {"numbers": []}) is None


async def test_constants_are_written_out_for_the_planner(database: WatchedDatabase) -> None:
    """Quotes, percent signs and enumerations among them."""
    series = func.generate_series(1, bindparam("last", type_=Integer)).table_valued("n")
    statement = PreparedStatement(
        select(
            literal("it's 100 %").label("text"),
            func.coalesce(null(), 4).label("four"),
            literal(WorkflowKind.DELIVERY).label("workflow_kind"),
        )
        .select_from(series)
        .limit(1)
    )
    assert "LIMIT 1" in statement._compiled.text
    async with database.transaction() as work:
        rows = await statement.rows(work, {"last": 3})
    assert [tuple(row) for row in rows] == [("it's 100 %", 4, "delivery")]


async def test_a_prepared_statement_reads_inside_the_transaction(database: WatchedDatabase) -> None:
    async with database.transaction() as work:
        first = await work.scalar(text("SELECT pg_current_xact_id()::text"))
        seen = PreparedStatement(select(func.pg_current_xact_id_if_assigned().label("id")))
        assert str((await seen.first(work, {})).id) == first


@pytest.mark.parametrize("kind", ["transaction", "statement"])
async def test_a_dead_connection_takes_its_contemporaries_along(
    database_url: str, kind: str
) -> None:
    """After a restart of the server one request fails at most, not one per pooled connection."""
    database = Database(database_url)
    begin = getattr(database, kind)
    async with AsyncExitStack() as stack:
        works = [await stack.enter_async_context(begin()) for _ in range(4)]
        pids = {(await PID.first(work, {})).pid for work in works}
    with psycopg.connect(database_url) as other:
        for pid in pids:
            # It only sends a signal, unless it gets a time to wait for the end.
            other.execute("SELECT pg_terminate_backend(%s, 30000)", (pid,))
    failures = 0
    for _ in range(6):
        try:
            async with begin() as work:
                assert (await PID.first(work, {})).pid not in pids
        except (exc.OperationalError, psycopg.OperationalError):
            failures += 1
    await database.close()
    assert failures <= 1  # none, where they were idle long enough to be tried first


async def test_a_failure_that_leaves_the_connection_whole_stays_what_it_is(
    database: WatchedDatabase,
) -> None:
    broken = PreparedStatement(select(text("1 / 0 AS x")))
    with pytest.raises(psycopg.errors.DivisionByZero):
        async with database.transaction() as work:
            await broken.first(work, {})
