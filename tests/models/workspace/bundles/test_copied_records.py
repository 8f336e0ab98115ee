"""Records of a bundle are copied: values are imported as they are, without times in the future."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import select

from models.content.items.commands import ITEMS
from models.core.base import Id
from models.core.bundles import Row
from models.data.databases.shapes import CreateDatabase
from models.data.databases.store import create_database
from models.data.fields.commands import DATABASES
from models.data.records.bundle import RECORDS
from models.data.records.tables import record
from models.workspace.bundles import applying
from models.workspace.bundles.applying import copied_rows, copy_rows, insert_rows
from models.workspace.bundles.references import plan_ids
from models.workspace.bundles.registry import KINDS
from models.workspace.bundles.rules import BundleError
from runtime.database import UnitOfWork
from tests.support.bundles import line, target_of
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
        await copy_rows(work, RECORDS, await copied_rows(RECORDS, [row], work.now))
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


def test_nothing_is_asked_of_tables_before_rows_are_copied() -> None:
    for kind in KINDS:
        if kind.copied:
            assert (kind.parent, kind.store) == (None, None)
            assert not kind.unique_key
            assert not kind.hides


async def test_lines_are_formed_while_a_chunk_is_read(
    space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    formed: list[int] = []
    form_lines = applying._lines

    def form(rows: Sequence[Row], *others: Any) -> bytes:
        formed.append(len(rows))
        return form_lines(rows, *others)

    monkeypatch.setattr(applying, "_lines", form)
    target, database = target_of(space), str(uuid4())
    values = {"databaseId": database, "title": "One", "data": {}, "archived": False}
    moments = {"createdAt": LONG_AGO, "updatedAt": LONG_AGO}
    lines = [line("record", id=str(uuid4()), **values, **moments) for _ in range(3)]
    async with space.database.transaction() as work:
        made = await create_database(work, space.actor, CreateDatabase(label="Goods"))
        await plan_ids(work, target, "database", {database: str(made.id)})
        await applying.plan_chunk(work, target, [RECORDS], lines)

        chunk = await applying.read_chunk(work, target, [RECORDS], lines)
        assert formed == [3]
        findings = await applying.apply_chunk(work, target, [RECORDS], chunk)

    assert formed == [3]
    assert (findings.rows["record"], findings.errors) == (3, {})
