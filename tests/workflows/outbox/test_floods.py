"""A flood of one workspace beside the work of another, through the whole engine."""

import base64

import pytest
from sqlalchemy import func, select

from models.core.base import Id
from models.data.record_exports.exports import accept_export
from models.data.record_exports.shapes import CreateExport
from models.messages.jobs.rules import OPEN_JOB
from models.messages.jobs.store import job
from models.sources.data_source_runs.imports import accept_import
from models.sources.data_source_runs.shapes import ImportSpreadsheet
from models.sources.data_source_runs.tables import data_source_run
from runtime.ids import new_id
from tests.support.engine import KEYS, Engine
from tests.support.patience import eventually
from tests.support.spaces import make_space

pytestmark = pytest.mark.long

FLOOD = 90


@pytest.mark.takes(seconds=20)
async def test_an_import_ends_while_a_flood_of_exports_waits(engine: Engine, table: Id) -> None:
    quiet = await make_space(engine.database, KEYS)
    content = base64.b64encode(b"title\nOne\n").decode()
    given = {"label": "One", "kind": "inline", "format": "csv", "content": content}
    async with engine.database.transaction() as work:
        export = CreateExport.model_validate({"format": "csv"})
        for _ in range(FLOOD):
            await accept_export(work, engine.actor, table, new_id(), export)
    async with engine.database.transaction() as work:
        body = ImportSpreadsheet.model_validate(given)
        run_id = await accept_import(work, quiet.actor, new_id(), body)

    async def ended() -> bool:
        async with engine.database.reading() as work:
            status = select(data_source_run.c.status).where(data_source_run.c.id == run_id)
            return bool(await work.scalar(status) == "succeeded")

    await eventually(ended)
    async with engine.database.reading() as reading:
        of_flood = select(func.count()).where(
            job.c.workspace_id == engine.actor.workspace_id, job.c.status.in_(OPEN_JOB)
        )
        left = await reading.scalar(of_flood)
    assert left > FLOOD / 10
