"""Comparing rows that PostgreSQL knows nothing of yet."""

import pytest
from sqlalchemy import Select, text
from sqlalchemy.dialects import postgresql

from models.data.fields.rules.fields import Schema
from models.sources.data_source_runs.comparison import (
    Comparison,
    gone_rows,
    joining_sets,
    other_records,
)
from runtime.database import Database, UnitOfWork
from runtime.ids import new_id

ROWS = Comparison(Schema(new_id(), new_id(), {}), new_id(), new_id())


async def plan_of(work: UnitOfWork, query: Select[tuple[object, ...]]) -> str:
    literal = {"literal_binds": True}
    written = query.compile(dialect=postgresql.dialect(), compile_kwargs=literal)
    return "\n".join(row[0] for row in await work.rows(text(f"EXPLAIN {written}")))


@pytest.mark.parametrize("query", [gone_rows(ROWS), other_records(ROWS)], ids=["gone", "others"])
async def test_no_side_of_a_join_is_read_for_each_row_of_the_other(
    database: Database, query: Select[tuple[object, ...]]
) -> None:
    async with database.transaction() as work:
        async with joining_sets(work):
            assert "Nested Loop" not in await plan_of(work, query)
        assert "Nested Loop" in await plan_of(work, query), "and other statements are as ever"
