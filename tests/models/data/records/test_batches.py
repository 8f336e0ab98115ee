"""Writing many records at once: the statements it takes, and the ways upserts find theirs."""

import asyncio
from typing import Any
from unicodedata import normalize
from uuid import UUID

import pytest
from pydantic_core import to_json
from sqlalchemy import delete, func, select, text

from models.data.record_changes.history import record_change
from models.data.records.commands import write_batch
from models.data.records.queries import get_record
from models.data.records.shapes import BatchResult, RecordBatch
from models.data.records.tables import record, record_index
from models.data.records.upserts import RowsComingInError, hold_upserts
from runtime.errors import ValidationError
from tests.support.patience import eventually
from tests.support.record_indexes import index
from tests.support.spaces import Space

NUMBER = {"label": "Price", "kind": "number"}
CHECKBOX = {"label": "Done", "kind": "checkbox"}
MOMENT = {"label": "At", "kind": "datetime"}
PERSON = {"label": "Who", "kind": "person"}
SERIAL = {"label": "Serial", "kind": "auto_number"}
GROWING = {"label": "Tags", "kind": "multi_select", "settings": {"allowCreate": True}}


async def write(space: Space, database_id: UUID, operations: list[dict[str, Any]]) -> BatchResult:
    body = RecordBatch.model_validate_json(to_json({"operations": operations}))
    async with space.database.transaction() as work:
        return await write_batch(work, space.actor, database_id, body)


async def test_a_batch_of_any_size_takes_the_same_statements(
    space: Space, make_database: Any, sent: list[Any]
) -> None:
    database_id = await make_database(NUMBER, PERSON, SERIAL, GROWING)
    counts = []
    for round_, size in enumerate((2, 2, 30)):
        made = await write(
            space, database_id, [{"op": "create", "title": f"{round_}"} for _ in range(3 * size)]
        )
        ids = [one.id for one in made.records]
        operations: list[dict[str, Any]] = []
        for n in range(size):
            data = {"price": round_, "who": [str(space.user_id)], "tags": [f"New {round_} {n}"]}
            operations += [
                {"op": "create", "data": data},
                {"op": "update", "recordId": ids[3 * n], "data": data},
                {"op": "archive", "recordId": ids[3 * n + 1]},
                {"op": "delete", "recordId": ids[3 * n + 2]},
                {"op": "upsert", "upsertBy": ["title"], "title": f"{round_}/{n}", "data": data},
            ]
        sent.clear()
        await write(space, database_id, operations)
        counts.append(len(sent))
    assert counts[1] == counts[2] <= 20


@pytest.mark.parametrize(
    ("field", "key", "values"),
    [
        (NUMBER, "price", [0.1, 5, 2.5, 1e30, -3]),
        (CHECKBOX, "done", [False]),
        (MOMENT, "at", ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.001Z"]),
        (SERIAL, "title", ["a", "", "x" * 300, "é🙂"]),
    ],
    ids=["number", "checkbox", "datetime", "title"],
)
async def test_an_upsert_finds_along_an_index_what_it_finds_without(
    space: Space, make_database: Any, field: Any, key: str, values: list[Any]
) -> None:
    database_id = await make_database(field)
    await write(space, database_id, [{"op": "create", "title": "other", "data": {}}])
    operations: list[dict[str, Any]] = [
        {"op": "upsert", "upsertBy": [key], "data": {"title": f"{n}", key: value}}
        for n, value in enumerate(values)
    ]
    if key == "done":
        operations[0]["data"].pop("title")
    plain = await write(space, database_id, operations)
    await index(space, database_id, key)
    along = await write(space, database_id, operations)
    assert along.created == 0
    assert [one.id for one in along.records] == [one.id for one in plain.records]
    # It went along the index: what has no entry is not found.
    async with space.database.transaction() as work:
        await work.execute(delete(record_index).where(record_index.c.workspace_id == space.id))
    lost = await write(space, database_id, operations)
    assert lost.created == (0 if "" in values else len(values))


@pytest.mark.parametrize("key", ["title", "name"])
async def test_an_upsert_finds_a_text_in_either_normal_form(
    space: Space, make_database: Any, key: str
) -> None:
    database_id = await make_database({"label": "Name", "kind": "text"})
    name = "Zo\u00eb Ng\u1ecdc"
    forms = [normalize("NFD", name), name, normalize("NFD", name)]
    operations = [{"op": "upsert", "upsertBy": [key], "data": {key: one}} for one in forms]
    first = await write(space, database_id, operations[:1])
    for operation in operations:
        again = await write(space, database_id, [operation])
        assert (again.created, again.records[0].id) == (0, first.records[0].id)
    await write(space, database_id, operations[:1])
    await index(space, database_id, key)
    for operation in operations:
        again = await write(space, database_id, [operation])
        assert (again.created, again.records[0].id) == (0, first.records[0].id)
    with pytest.raises(ValidationError, match="already writes"):
        await write(space, database_id, operations)
    other = {"op": "upsert", "upsertBy": [key], "data": {key: "Zoe Ngoc"}}
    assert (await write(space, database_id, [other])).created == 1


async def test_the_history_of_a_batch_is_written_at_once(space: Space, make_database: Any) -> None:
    database_id = await make_database(NUMBER)
    made = await write(space, database_id, [{"op": "create", "data": {"price": 1}}] * 40)
    await write(
        space,
        database_id,
        [{"op": "update", "recordId": one.id, "data": {"price": 2}} for one in made.records],
    )
    async with space.database.transaction() as work:
        counted = await work.rows(
            select(record_change.c.kind, func.count().label("many"))
            .where(record_change.c.workspace_id == space.id)
            .group_by(record_change.c.kind)
        )
    assert {row.kind: row.many for row in counted} == {"created": 40, "updated": 40}


async def test_an_upsert_waits_no_longer_than_a_second_for_imported_rows(
    space: Space, make_database: Any
) -> None:
    database_id = await make_database(NUMBER)
    operations = [{"op": "upsert", "upsertBy": ["title"], "title": "a", "data": {"price": 1}}]
    async with space.database.transaction() as work:
        await hold_upserts(work, database_id)
        with pytest.raises(RowsComingInError):
            await write(space, database_id, operations)
        await write(space, database_id, [{"op": "create", "title": "b", "data": {}}])
    await write(space, database_id, operations)


async def test_a_batch_shows_its_records_as_they_are_stored(
    space: Space, make_database: Any
) -> None:
    database_id = await make_database(NUMBER, PERSON)
    values = {"price": 1.5, "who": [str(space.user_id)]}
    operations = [{"op": "create", "title": f"{n}", "data": values} for n in range(120)]
    made = await write(space, database_id, operations)
    changed = await write(
        space,
        database_id,
        [{"op": "update", "recordId": one.id, "data": {"price": 2}} for one in made.records[:70]],
    )
    async with space.database.reading() as work:
        for one in (*changed.records, *made.records[70:]):
            assert one == await get_record(work, space.actor, one.id)


async def test_a_batch_that_is_aborted_while_it_is_written_writes_nothing(
    space: Space, make_database: Any
) -> None:
    database_id = await make_database(NUMBER)
    operations = [{"op": "create", "title": f"{n}"} for n in range(120)]
    async with space.database.transaction() as work:
        await work.execute(text("LOCK TABLE record IN SHARE MODE"))
        task = asyncio.create_task(write(space, database_id, operations))

        async def waits() -> bool:
            waiting = (
                "SELECT EXISTS (SELECT FROM pg_locks JOIN pg_database ON pg_database.oid = database"
                " WHERE datname = current_database() AND NOT granted)"
            )
            return bool(await work.scalar(text(waiting)))

        await eventually(waits, what="the batch that waits for the table")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert len((await write(space, database_id, operations[:2])).records) == 2
    async with space.database.reading() as reading:
        counted = select(func.count()).where(record.c.database_id == database_id)
        assert await reading.scalar(counted) == 2
