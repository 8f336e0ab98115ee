"""The side index: asked for by queries, built beside writers, and always what the records say."""

import asyncio
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import func, select, text, update
from sqlalchemy.exc import OperationalError

from activities.jobs.records import FieldIndexes
from activities.jobs.transactions import JobActivities
from models.data.fields.commands import share_schema
from models.data.fields.queries import load_schema
from models.data.fields.tables import field
from models.data.records import side_index
from models.data.records.commands import create_record, delete_record, update_record
from models.data.records.queries import QueryTooSlowError, ask_records, in_time
from models.data.records.shapes import CreateRecord, RecordQuery, UpdateRecord
from models.data.records.tables import record, record_index
from models.messages.jobs.store import job
from runtime.database import Database
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.spaces import Space

FIELDS = (
    {"label": "Price", "kind": "number"},
    {"label": "Due", "kind": "date"},
    {"label": "Note", "kind": "long_text"},
    {"label": "Changed", "kind": "updated_at"},
)
BY_PRICE = {"sorts": [{"field": "price"}]}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three records are a large database, and two a chunk."""
    monkeypatch.setattr(side_index, "LARGE", 3)
    monkeypatch.setattr(side_index, "CHUNK", 2)


class Indexing:
    """A database whose fields get indexed."""

    def __init__(self, space: Space, keys: Any, database_id: UUID) -> None:
        self.space = space
        self.keys = keys
        self.id = database_id
        self.jobs = JobActivities(space.database, {WorkflowKind.FIELD_INDEX: FieldIndexes()})

    async def add(self, **data: Any) -> UUID:
        async with self.space.database.transaction() as work:
            body = CreateRecord.model_validate({"title": "T", "data": data})
            return (await create_record(work, self.space.actor, self.id, body)).id

    async def change(self, record_id: UUID, **data: Any) -> None:
        async with self.space.database.transaction() as work:
            body = UpdateRecord.model_validate({"data": data})
            await update_record(work, self.space.actor, record_id, body)

    async def ask(self, **query: Any) -> list[UUID]:
        async with self.space.database.transaction() as work:
            body = RecordQuery.model_validate(query)
            found = await ask_records(work, self.space.actor, self.id, body, self.keys)
        return [one.id for one in found.records]

    async def jobs_asked_for(self) -> list[str]:
        async with self.space.database.transaction() as work:
            rows = await work.rows(
                select(job.c.id)
                .where(
                    job.c.workspace_id == self.space.id,
                    job.c.workflow_kind == WorkflowKind.FIELD_INDEX.value,
                )
                .order_by(job.c.id)
            )
        return [str(row.id) for row in rows]

    async def finish(self, job_id: str) -> str:
        while (outcome := await self.jobs.advance_job(job_id)) == "more":
            pass
        return outcome

    async def index(self, key: str) -> None:
        """Have a field indexed as a query would have it."""
        await self.ask(sorts=[{"field": key}])
        assert await self.finish((await self.jobs_asked_for())[-1]) == "done"
        assert (await self.field(key)).index_ready

    async def field(self, key: str) -> Any:
        async with self.space.database.transaction() as work:
            return (await load_schema(work, self.space.id, self.id)).fields[key]

    async def entries(self) -> dict[tuple[str, UUID], tuple[Any, ...]]:
        """What the index holds: by field and record a number, a text and a folded text."""
        async with self.space.database.transaction() as work:
            rows = await work.rows(
                select(field.c.key, record_index)
                .join(field, field.c.index_id == record_index.c.index_id)
                .where(record_index.c.workspace_id == self.space.id)
            )
        return {(row.key, row.record_id): (row.number, row.text, row.folded) for row in rows}

    async def expected(self, *keys: str) -> dict[tuple[str, UUID], tuple[Any, ...]]:
        """What it should hold for these fields, worked out from the records."""
        async with self.space.database.transaction() as work:
            rows = await work.rows(select(record).where(record.c.database_id == self.id))
        return {(key, row.id): entry(key, row) for row in rows for key in keys}


def entry(key: str, row: Any) -> tuple[Any, ...]:
    value = row.data.get(key)
    match key:
        case "price":
            return (None if value is None else Decimal(repr(value)), None, None)
        case "note":
            first = (value or "")[:100] or None
            return (None, first, first and first.lower())
        case "changed":
            return (None, row.updated_at.strftime("%Y-%m-%dT%H:%M:%S.%f"), None)
        case _:
            return (None, value, None)


@pytest.fixture
async def things(space: Space, keys: Any, make_database: Any) -> Indexing:
    return Indexing(space, keys, await make_database(*FIELDS))


@pytest.mark.usefixtures("small")
async def test_a_query_of_a_large_database_has_its_fields_indexed_once(things: Indexing) -> None:
    for price in (3, 1):
        await things.add(price=price)
    assert len(await things.ask(**BY_PRICE)) == 2
    assert await things.jobs_asked_for() == [], "two records are not many"
    await things.add(price=2)
    query = {"filter": {"field": "note", "op": "starts_with", "value": "x"}, **BY_PRICE}
    await things.ask(**query)
    assert len(await things.jobs_asked_for()) == 2, "one for the filter, one for the order"
    await things.ask(**query)
    assert len(await things.jobs_asked_for()) == 2


@pytest.mark.usefixtures("small")
async def test_an_index_holds_what_the_records_hold(things: Indexing) -> None:
    notes = ["Äpfel", "", None, "x" * 150, "B"]
    for number, note in enumerate(notes):
        await things.add(
            **({} if note is None else {"note": note}),
            **({"price": number + 0.5, "due": f"2026-05-0{number + 1}"} if number else {}),
        )
    keys = ("price", "due", "note", "changed")
    for key in keys:
        await things.index(key)
    assert await things.entries() == await things.expected(*keys)


@pytest.mark.usefixtures("small")
async def test_writers_keep_the_entries_of_what_they_write(things: Indexing) -> None:
    ids = [await things.add(price=number, note="a") for number in range(4)]
    keys = ("price", "note", "changed")
    for key in keys:
        await things.index(key)
    await things.change(ids[0], price=9)
    await things.change(ids[1], price=None, note="B" * 200)
    await things.add(price=2.5)
    async with things.space.database.transaction() as work:
        await delete_record(work, things.space.actor, ids[2])
    assert await things.entries() == await things.expected(*keys)
    assert ids[2] not in await things.ask(**BY_PRICE)
    assert (await things.ask(sorts=[{"field": "price", "direction": "desc"}]))[0] == ids[0]


@pytest.mark.usefixtures("small")
async def test_columns_that_every_write_changes_are_indexed_too(things: Indexing) -> None:
    ids = [await things.add(price=number) for number in range(3)]
    await things.index("changed")
    async with things.space.database.transaction() as work:
        await work.execute(
            update(record).where(record.c.id == ids[0]).values(updated_at=work.now_after(60))
        )
        schema = await load_schema(work, things.space.id, things.id)
        await side_index.index_records(work, schema, ids, ["price"])
    assert await things.entries() == await things.expected("changed")


@pytest.mark.usefixtures("small")
async def test_a_writer_between_two_chunks_is_not_overwritten(things: Indexing) -> None:
    ids = [await things.add(price=number) for number in range(6)]
    await things.ask(**BY_PRICE)
    (job_id,) = await things.jobs_asked_for()
    assert await things.jobs.advance_job(job_id) == "more", "the index has its name"
    for number, record_id in enumerate(ids):
        await things.change(record_id, price=100 + number)
        assert await things.jobs.advance_job(job_id) in {"more", "done", "closed"}
    await things.finish(job_id)
    assert await things.entries() == await things.expected("price")


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("writer_first", [True, False])
async def test_a_writer_and_a_chunk_at_once_leave_what_the_writer_wrote(
    things: Indexing, writer_first: bool
) -> None:
    ids = [await things.add(price=number) for number in range(3)]
    await things.ask(**BY_PRICE)
    (job_id,) = await things.jobs_asked_for()
    await things.jobs.advance_job(job_id)

    async def write() -> None:
        async with things.space.database.transaction() as work:
            body = UpdateRecord.model_validate({"data": {"price": 50}})
            await update_record(work, things.space.actor, ids[0], body)
            await asyncio.sleep(0.2)

    async def build() -> None:
        await things.jobs.advance_job(job_id)

    first, second = (write, build) if writer_first else (build, write)
    begun = asyncio.create_task(first())
    await asyncio.sleep(0.05)
    await asyncio.gather(begun, second())
    await things.finish(job_id)
    assert await things.entries() == await things.expected("price")


@pytest.mark.usefixtures("small")
async def test_a_writer_that_began_before_the_index_had_a_name_is_waited_for(
    things: Indexing,
) -> None:
    for number in range(3):
        await things.add(price=number)
    await things.ask(**BY_PRICE)
    (job_id,) = await things.jobs_asked_for()
    async with things.space.database.transaction() as work:
        await share_schema(work, things.id)
        naming = asyncio.create_task(things.jobs.advance_job(job_id))
        await asyncio.sleep(0.1)
        assert not naming.done()
        body = CreateRecord.model_validate({"title": "Late", "data": {"price": 7}})
        await create_record(work, things.space.actor, things.id, body)
    await naming
    await things.finish(job_id)
    assert await things.entries() == await things.expected("price")


@pytest.mark.usefixtures("small")
async def test_an_unused_index_is_swept_by_the_next(things: Indexing) -> None:
    for number in range(5):
        await things.add(price=number, due="2026-05-20")
    await things.index("price")
    lost = (await things.field("price")).index_id
    async with things.space.database.transaction() as work:
        await work.execute(
            update(field).where(field.c.index_id == lost).values(index_id=None, index_ready=False)
        )
    assert await things.ask(**BY_PRICE), "without its index the query is answered all the same"
    await things.index("due")
    async with things.space.database.transaction() as work:
        left = select(func.count()).where(record_index.c.index_id == lost)
        assert await work.scalar(left) == 0
    assert await things.entries() == await things.expected("due")


@pytest.mark.usefixtures("small")
async def test_a_job_whose_index_was_taken_away_ends(things: Indexing) -> None:
    for number in range(5):
        await things.add(price=number)
    await things.ask(**BY_PRICE)
    (job_id,) = await things.jobs_asked_for()
    await things.jobs.advance_job(job_id)
    async with things.space.database.transaction() as work:
        await work.execute(
            update(field).where(field.c.index_id == UUID(job_id)).values(index_id=None)
        )
    assert await things.jobs.advance_job(job_id) == "done"
    assert not (await things.field("price")).index_ready


async def test_nothing_is_written_where_nothing_is_indexed(
    things: Indexing, sent: list[Any]
) -> None:
    await things.add(price=1)
    assert not any("record_index" in str(statement) for statement in sent)


@pytest.mark.usefixtures("small")
async def test_one_statement_writes_the_entries_of_all_fields(
    things: Indexing, sent: list[Any]
) -> None:
    for number in range(3):
        await things.add(price=number)
    for key in ("price", "due", "note"):
        await things.index(key)
    sent.clear()
    await things.add(price=1, due="2026-05-20", note="x")
    assert sum("record_index" in str(statement) for statement in sent) == 1


async def test_a_query_that_takes_too_long_is_distinguished_from_a_database_that_is_away(
    database: Database,
) -> None:
    with pytest.raises(QueryTooSlowError):
        await _in_time(database, "SET LOCAL statement_timeout = '20ms'", "SELECT pg_sleep(5)")
    with pytest.raises(OperationalError):
        await _in_time(database, "SELECT pg_terminate_backend(pg_backend_pid())")


async def _in_time(database: Database, *statements: str) -> None:
    async with database.transaction() as work, in_time():
        for statement in statements:
            await work.execute(text(statement))
