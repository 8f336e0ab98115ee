"""Exports and indexes through the whole engine: asked for in a transaction, done by the workers."""

from typing import Any

import pytest

from models.core.base import Id
from models.data.fields.queries import load_schema
from models.data.record_exports.exports import accept_export, export_detail
from models.data.record_exports.shapes import CreateExport
from models.data.records import side_index
from models.data.records.commands import create_record
from models.data.records.queries import ask_records
from models.data.records.shapes import CreateRecord, RecordQuery
from runtime.ids import new_id
from tests.support.engine import KEYS, Engine
from tests.support.patience import eventually


async def fill(engine: Engine, table: Id, count: int) -> None:
    async with engine.database.transaction() as work:
        for number in range(count):
            body = CreateRecord.model_validate(
                {"title": f"R{number}", "data": {"code": "c", "price": number}}
            )
            await create_record(work, engine.actor, table, body)


async def test_an_export_is_written(engine: Engine, table: Id) -> None:
    await fill(engine, table, 3)
    export_id = new_id()
    async with engine.database.transaction() as work:
        body = CreateExport.model_validate({"format": "xlsx"})
        await accept_export(work, engine.actor, table, export_id, body)

    async def detail() -> Any:
        async with engine.database.reading() as work:
            return await export_detail(work, engine.actor, export_id, KEYS)

    async def written() -> bool:
        return (await detail()).status == "succeeded"

    await eventually(written, what="the export")
    shown = await detail()
    assert shown.record_count == 3
    assert shown.file is not None


async def test_an_index_is_built(
    engine: Engine, table: Id, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(side_index, "LARGE", 2)
    await fill(engine, table, 3)
    body = RecordQuery.model_validate({"sorts": [{"field": "price"}]})
    async with engine.database.transaction() as work:
        await ask_records(work, engine.actor, table, body, KEYS)

    async def built() -> bool:
        async with engine.database.reading() as work:
            schema = await load_schema(work, engine.actor.workspace_id, table)
        return schema.fields["price"].index_ready

    await eventually(built, what="the index")
