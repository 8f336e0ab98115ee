"""Records of a bundle are copied: values are imported as they are, without times in the future."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import select

from models.content.items.commands import ITEMS
from models.core.base import Id
from models.data.fields.commands import DATABASES
from models.data.records.bundle import RECORDS
from models.data.records.tables import record
from models.workspace.bundles.applying import insert_rows
from models.workspace.bundles.rules import BundleError
from runtime.database import UnitOfWork
from tests.support.spaces import Space

LONG_AGO = "2020-02-29T12:00:00.123456Z"


async def _inserted(space: Space, **values: Any) -> Any:
    """The record that is there when one with these values is brought in."""
    common = {"workspace_id": str(space.id), "created_at": LONG_AGO, "updated_at": LONG_AGO}
    async with space.database.transaction() as work:
        database_id = await _database(work, common)
        row = {
            **common,
            "id": str(uuid4()),
            "database_id": database_id,
            "title": "One",
            "data": {},
            "computed": {},
            "archived": False,
            "created_by_user_id": None,
            **values,
        }
        await insert_rows(work, RECORDS, [row])
        shown = select(record).where(record.c.id == Id(row["id"]))
        return await work.first(shown), work.now


async def _database(work: UnitOfWork, common: dict[str, str]) -> str:
    item_id, database_id = str(uuid4()), str(uuid4())
    item: dict[str, Any] = {"kind": "database", "title": "Goods", "position": 1, "archived": False}
    item |= {"access_mode": "open", "metadata": {}}
    await insert_rows(work, ITEMS, [{**common, "id": item_id, **item}])
    database: dict[str, Any] = {"item_id": item_id, "key": f"k{database_id[:8]}", "label": "Goods"}
    database |= {"settings": {}, "record_layout": {}}
    await insert_rows(work, DATABASES, [{**common, "id": database_id, **database}])
    return database_id


async def test_texts_and_values_are_imported_as_they_are(space: Space) -> None:
    title = "Tab\t, line\n, \\N, \\., 'quote' and ünïcode 𝄞"
    data = {"a": title, "b": [1, 2.5, None], "c": {"\\": "\t"}}
    there, _ = await _inserted(space, title=title, data=data)
    assert (there.title, there.data, there.created_by_user_id) == (title, data, None)


@pytest.mark.parametrize(
    "moment",
    [LONG_AGO, "2020-02-29t12:00:00.123456z", "2020-02-29T14:00:00.123456+02:00"],
)
async def test_a_moment_of_the_past_stays(space: Space, moment: str) -> None:
    there, _ = await _inserted(space, created_at=moment)
    assert there.created_at == datetime.fromisoformat(LONG_AGO)


@pytest.mark.parametrize(
    "moment",
    ["2999-01-01T00:00:00Z", "2999-01-01t00:00:00z", "2999-12-31T23:59:60Z"],
)
async def test_a_moment_of_the_future_is_now(space: Space, moment: str) -> None:
    there, now = await _inserted(space, created_at=moment, updated_at=moment)
    assert there.created_at == there.updated_at == now


async def test_a_moment_that_lies_ahead_by_its_zone_alone_is_now(space: Space) -> None:
    earlier = (datetime.now(UTC) - timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%S")
    there, now = await _inserted(space, created_at=f"{earlier}-02:00")
    assert there.created_at == now


@pytest.mark.parametrize(
    "values",
    [
        {"created_at": "0000-01-01T00:00:00Z"},
        {"created_at": "0000-01-01T00:00:00+00:00"},
        {"database_id": str(uuid4())},
    ],
)
async def test_a_record_that_postgresql_refuses_is_refused(
    space: Space, values: dict[str, str]
) -> None:
    with pytest.raises(BundleError):
        await _inserted(space, **values)
