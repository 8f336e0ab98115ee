"""Sorted pages of records that have no index."""

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from models.data.fields.queries import load_schema
from models.data.records.commands import create_record
from models.data.records.queries import read_page
from models.data.records.rules.query import routes
from models.data.records.rules.query.plan import read_query
from models.data.records.shapes import CreateRecord, RecordQuery
from runtime.database import UnitOfWork
from tests.models.data.records.conftest import MakeDatabase
from tests.support.spaces import Space

FIELDS = ({"label": "Price", "kind": "number"}, {"label": "Note", "kind": "long_text"})
RECORDS = (("B", 1, "x"), ("A", 1, "y"), ("C", 2, None), ("D", None, "x"), ("E", 1, "x"))


@pytest.mark.parametrize(
    ("sorts", "expected"),
    [
        ([("price", "asc", "last")], "BAECD"),
        ([("price", "desc", "last")], "CEABD"),
        ([("price", "desc", "first")], "DCEAB"),
        ([("note", "asc", "first"), ("price", "desc", "last")], "CEBDA"),
        ([("title", "desc", "last")], "EDCBA"),
    ],
)
async def test_a_sort_carries_no_more_of_a_record_than_it_compares(
    space: Space, make_database: MakeDatabase, sorts: list[tuple[str, str, str]], expected: str
) -> None:
    database_id = await make_database(*FIELDS)
    asked = [{"field": key, "direction": way, "nulls": nulls} for key, way, nulls in sorts]
    async with space.database.transaction() as work:
        for title, price, note in RECORDS:
            body = {"title": title, "data": {"price": price, "note": note}}
            await create_record(work, space.actor, database_id, CreateRecord.model_validate(body))
        schema = await load_schema(work, space.id, database_id)
        sorted_query = RecordQuery.model_validate({"sorts": asked})
        query, route = read_query(sorted_query, schema.fields, work.now), routes.Route()
        (statement,) = routes.pages(schema, query, route, None, 10)
        carried = {column for sort in await _sorts(work, statement) for column in sort["Output"]}

        pages, after = "", None
        while page := await read_page(work, schema, query, route, after, 2):
            pages += "".join(row.title for row in page)
            after = query.order.position(page[-1])

    assert pages == expected
    assert carried
    assert not {column.rpartition(".")[2] for column in carried} & {"data", "updated_at"}


async def _sorts(work: UnitOfWork, statement: sa.Select[Any]) -> list[dict[str, Any]]:
    """The sorts whose rows a page is the first of."""
    written = statement.compile(
        dialect=postgresql.dialect(), compile_kwargs={"literal_binds": True}
    )
    plan = f"EXPLAIN (VERBOSE, FORMAT JSON) {str(written).replace(':', chr(92) + ':')}"
    (root,) = await work.scalar(sa.text(plan))
    limits = [node for node in _below(root["Plan"]) if node["Node Type"] == "Limit"]
    return [node for limit in limits for node in _below(limit) if "Sort" in node["Node Type"]]


def _below(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from _below(child)
