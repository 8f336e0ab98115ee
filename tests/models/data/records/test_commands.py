"""Writing records: stored rows, results of concurrent writers, number of statements."""

import asyncio
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import func, select, update

from models.content.items.joins import item
from models.core.access.rules import Role
from models.core.pagination import page_request
from models.data.databases.store import get_database
from models.data.fields.queries import load_schema
from models.data.records.commands import create_record, delete_record, update_record, upsert_record
from models.data.records.queries import get_record, list_records, query_records, visible
from models.data.records.shapes import CreateRecord, RecordDetail, RecordQuery, UpdateRecord
from models.data.records.tables import record
from runtime.errors import ConflictError, NotFoundError, ValidationError
from tests.support.spaces import Space

NUMBER = {"label": "Price", "kind": "number"}
SERIAL = {"label": "Serial", "kind": "auto_number"}
GROWING = {"label": "Tags", "kind": "multi_select", "settings": {"allowCreate": True}}


async def create(space: Space, database_id: UUID, **body: Any) -> RecordDetail:
    async with space.database.transaction() as work:
        shape = CreateRecord.model_validate(body)
        return await create_record(work, space.actor, database_id, shape)


async def change(space: Space, record_id: UUID, expected: Any = None, **body: Any) -> RecordDetail:
    async with space.database.transaction() as work:
        shape = UpdateRecord.model_validate(body)
        return await update_record(work, space.actor, record_id, shape, expected)


async def count(space: Space) -> int:
    async with space.database.transaction() as work:
        statement = select(func.count()).where(record.c.workspace_id == space.id)
        return int(await work.scalar(statement))


async def test_a_created_record_is_read_as_created(space: Space, make_database: Any) -> None:
    database_id = await make_database(NUMBER, {"label": "Born", "kind": "created_at"})
    made = await create(space, database_id, title="A", data={"price": 1.5})
    async with space.database.transaction() as work:
        assert await get_record(work, space.actor, made.id) == made
    assert made.data == {"title": "A", "price": 1.5}
    assert list(made.system) == ["born"]
    assert made.created_by_user_id == space.user_id


async def test_numbers_are_given_in_order_without_gaps(space: Space, make_database: Any) -> None:
    database_id = await make_database(SERIAL)
    made = await asyncio.gather(*(create(space, database_id) for _ in range(8)))
    assert sorted(one.system["serial"] for one in made) == list(range(1, 9))
    with pytest.raises(ValidationError):
        await create(space, database_id, data={"nobody": 1})
    assert (await create(space, database_id)).system["serial"] == 9


async def test_options_that_two_writers_add_at_once_are_both_kept(
    space: Space, make_database: Any
) -> None:
    database_id = await make_database(GROWING)
    names = [f"New {n}" for n in range(6)]
    made = await asyncio.gather(
        *(create(space, database_id, data={"tags": [name, "Shared"]}) for name in names)
    )
    async with space.database.transaction() as work:
        detail = await get_database(work, space.actor, database_id)
    options = {option.name: option.key for option in detail.fields[1].options}
    assert sorted(options) == sorted([*names, "Shared"])
    for one, name in zip(made, names, strict=True):
        assert one.data["tags"] == [options[name], options["Shared"]]


async def test_a_patch_merges_and_null_clears(space: Space, make_database: Any) -> None:
    database_id = await make_database(NUMBER, {"label": "Note", "kind": "text"})
    made = await create(space, database_id, title="A", data={"price": 1, "note": "n"})
    changed = await change(space, made.id, data={"price": None})
    assert changed.data == {"title": "A", "note": "n"}
    assert (await change(space, made.id, title=None)).data["title"] == ""
    assert (await change(space, made.id, archived=True)).archived


async def test_every_change_has_its_own_updated_at(space: Space, make_database: Any) -> None:
    made = await create(space, await make_database())
    async with space.database.transaction() as work:
        work.now = made.created_at
        first = await update_record(work, space.actor, made.id, UpdateRecord(title="1"))
        second = await update_record(work, space.actor, made.id, UpdateRecord(title="2"))
    assert made.updated_at < first.updated_at < second.updated_at


async def test_a_change_of_what_was_changed_meanwhile_is_refused(
    space: Space, make_database: Any
) -> None:
    made = await create(space, await make_database(), title="A")
    await change(space, made.id, made.updated_at, title="B")
    with pytest.raises(ConflictError):
        await change(space, made.id, made.updated_at, title="C")
    async with space.database.transaction() as work:
        assert (await get_record(work, space.actor, made.id)).title == "B"


async def test_a_record_is_bounded_also_over_several_writes(
    space: Space, make_database: Any
) -> None:
    fields = [{"label": f"Part {n}", "kind": "long_text"} for n in range(1, 8)]
    made = await create(space, await make_database(*fields))
    for n in range(1, 6):
        await change(space, made.id, data={f"part_{n}": "x" * 200_000})
    with pytest.raises(ValidationError, match="1 MiB"):
        await change(space, made.id, data={"part_6": "x" * 200_000})


async def test_people_are_members(space: Space, foreign: Space, make_database: Any) -> None:
    database_id = await make_database({"label": "Who", "kind": "person"})
    member, _ = await space.member(Role.VIEWER)
    made = await create(space, database_id, data={"who": [str(member), str(space.user_id)]})
    assert made.data["who"] == [str(member), str(space.user_id)]
    messages = []
    for stranger in (foreign.user_id, uuid4()):
        with pytest.raises(ValidationError) as refusal:
            await change(space, made.id, data={"who": [str(stranger)]})
        messages.append(refusal.value.message.replace(str(stranger), "…"))
    assert messages[0] == messages[1]


async def test_a_deleted_record_is_gone_for_everyone(
    space: Space, keys: Any, make_database: Any
) -> None:
    database_id = await make_database()
    made = await create(space, database_id)
    async with space.database.transaction() as work:
        assert (await delete_record(work, space.actor, made.id)).id == made.id
    async with space.database.transaction() as work:
        assert await visible(work, [space.id], made.id, space.user_id) is None
        found = await query_records(
            work, space.id, database_id, RecordQuery.model_validate({"includeArchived": True}), keys
        )
        assert found.records == []
        for attempt in (
            get_record(work, space.actor, made.id),
            update_record(work, space.actor, made.id, UpdateRecord(title="x")),
            delete_record(work, space.actor, made.id),
        ):
            with pytest.raises(NotFoundError):
                await attempt


async def test_nothing_is_reached_from_another_workspace(
    space: Space, foreign: Space, keys: Any, make_database: Any
) -> None:
    database_id = await make_database(NUMBER)
    made = await create(space, database_id, title="mine")
    async with space.database.transaction() as work:
        for attempt in (
            create_record(work, foreign.actor, database_id, CreateRecord()),
            update_record(work, foreign.actor, made.id, UpdateRecord(title="theirs")),
            delete_record(work, foreign.actor, made.id),
            get_record(work, foreign.actor, made.id),
            query_records(work, foreign.id, database_id, RecordQuery(), keys),
            upsert_record(work, foreign.actor, database_id, ["title"], CreateRecord(title="mine")),
        ):
            with pytest.raises(NotFoundError):
                await attempt
        assert (await get_record(work, space.actor, made.id)).title == "mine"
    assert await count(foreign) == 0


async def test_a_database_in_the_trash_takes_its_records_along(
    space: Space, keys: Any, make_database: Any
) -> None:
    database_id = await make_database()
    made = await create(space, database_id)
    async with space.database.transaction() as work:
        await work.execute(
            update(item).where(item.c.target_id == database_id).values(deleted_at=work.now)
        )
    async with space.database.transaction() as work:
        for attempt in (
            get_record(work, space.actor, made.id),
            load_schema(work, space.id, database_id),
            query_records(work, space.id, database_id, RecordQuery(), keys),
            create_record(work, space.actor, database_id, CreateRecord()),
            update_record(work, space.actor, made.id, UpdateRecord(title="x")),
        ):
            with pytest.raises(NotFoundError):
                await attempt


async def upsert(space: Space, database_id: UUID, by: list[str], **body: Any) -> Any:
    async with space.database.transaction() as work:
        shape = CreateRecord.model_validate(body)
        return await upsert_record(work, space.actor, database_id, by, shape)


async def test_an_upsert_creates_once_and_changes_afterwards(
    space: Space, make_database: Any
) -> None:
    database_id = await make_database(NUMBER, GROWING | {"kind": "select"})
    made = await asyncio.gather(
        *(
            upsert(space, database_id, ["tags", "price"], data={"tags": "Brand new", "price": five})
            for five in (5, 5.0, 5, 5.0, 5, 5.0)
        )
    )
    assert [one.created for one in made].count(True) == 1
    again = await upsert(space, database_id, ["price"], title="now", data={"price": 5.0})
    assert (again.created, again.record.title, again.record.data["tags"]) == (
        False,
        "now",
        "brand_new",
    )
    assert await count(space) == 1


async def test_an_upsert_that_matches_several_records_changes_none(
    space: Space, make_database: Any
) -> None:
    database_id = await make_database()
    for _ in range(2):
        await create(space, database_id, title="twin")
    with pytest.raises(ConflictError):
        await upsert(space, database_id, ["title"], title="twin")


@pytest.mark.parametrize(
    ("by", "data", "path"),
    [
        ([], {}, "upsertBy"),
        (["nobody"], {}, "upsertBy.0"),
        (["serial"], {}, "upsertBy.0"),
        (["tags"], {"tags": ["a"]}, "upsertBy.0"),
        (["price"], {}, "data.price"),
        (["price"], {"price": "5"}, "data.price"),
    ],
)
async def test_an_upsert_needs_fields_it_can_match_by(
    space: Space, make_database: Any, by: list[str], data: dict[str, Any], path: str
) -> None:
    database_id = await make_database(NUMBER, SERIAL, GROWING)
    with pytest.raises(ValidationError) as refusal:
        await upsert(space, database_id, by, data=data)
    assert refusal.value.details[0].path == path
    assert await count(space) == 0


async def test_statements_are_few_and_constant(
    space: Space, keys: Any, make_database: Any, sent: list[Any]
) -> None:
    people = {"label": "Who", "kind": "person"}
    database_id = await make_database(NUMBER, SERIAL, people)
    made = [
        await create(space, database_id, data={"price": n, "who": [str(space.user_id)]})
        for n in range(31)
    ]
    page = page_request(keys, 30, None, "records")
    query = RecordQuery.model_validate(
        {"filter": {"field": "price", "op": "gte", "value": 1}, "sorts": [{"field": "price"}]}
    )
    body = CreateRecord.model_validate({"data": {"price": 1, "who": [str(space.user_id)]}})
    patch = UpdateRecord.model_validate({"data": {"price": 2, "who": []}})
    async with space.database.transaction() as work:
        for most, operation in (
            (5, lambda: create_record(work, space.actor, database_id, body)),
            (5, lambda: update_record(work, space.actor, made[0].id, patch)),
            (2, lambda: get_record(work, space.actor, made[0].id)),
            (2, lambda: list_records(work, space.actor, database_id, page)),
            (2, lambda: query_records(work, space.id, database_id, query, keys)),
            (6, lambda: delete_record(work, space.actor, made[1].id)),
            (1, lambda: visible(work, [space.id], made[0].id, space.user_id)),
        ):
            sent.clear()
            await operation()
            assert 0 < len(sent) <= most, sent
