"""The ids of the rows of one statement."""

from sqlalchemy import func, select

from models.core.repository import numbered_id
from runtime.database import Database


async def test_ids_of_a_statement_sort_as_its_rows_and_between_those_of_others(
    database: Database,
) -> None:
    numbers = func.generate_series(1, 300).table_valued("number")
    made = select(numbered_id().label("id")).select_from(numbers)
    async with database.transaction() as work:
        before = await work.scalar(select(func.uuidv7()))
        ids = [row.id for row in await work.rows(made)]
        after = await work.scalar(select(func.uuidv7()))
    assert [before, *ids, after] == sorted({before, *ids, after})
    assert {(one.version, one.variant) for one in ids} == {(before.version, before.variant)}
