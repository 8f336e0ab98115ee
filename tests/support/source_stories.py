"""Stories of runs that bring rows in, to be recorded; see tests/support/record_histories.py."""

from collections.abc import Awaitable, Callable
from typing import Any

from models.core.base import Id
from models.data.records.upserts import hold_upserts
from models.sources.data_source_runs.acceptance import accept_refresh, cancel_run
from models.sources.data_source_runs.imports import accept_import
from models.sources.data_source_runs.queries import get_run
from models.sources.data_source_runs.rules import OPEN_RUN, Stage
from models.sources.data_source_runs.shapes import ImportSpreadsheet
from models.sources.data_source_runs.staging import find_run, unstage
from models.sources.data_sources.commands import create_data_source
from models.sources.data_sources.queries import CreateDataSource
from runtime.ids import new_id
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.endpoint import Endpoint, never, reply, serving
from tests.support.engine import Engine
from tests.support.goods import make_table
from tests.support.patience import eventually


async def imported(engine: Engine) -> str:
    """An import of two rows."""
    return await _import(engine, rows=[{"name": "a"}, {"name": "b"}])


async def refused(engine: Engine) -> str:
    """An import whose file cannot be read."""
    return await _import(engine, format="xlsx", content="bm8gd29ya2Jvb2s=")


async def _import(engine: Engine, **given: Any) -> str:
    body = ImportSpreadsheet.model_validate({"label": "Recorded", "kind": "inline", **given})
    async with engine.database.transaction() as work:
        run_id = await accept_import(work, engine.actor, new_id(), body)
    return WorkflowKind.SPREADSHEET_IMPORT.workflow_id(run_id)


async def refreshed(engine: Engine) -> str:
    """A refresh of two rows."""
    async with serving() as serve:
        endpoint = await serve(reply(200, [{"name": "a"}, {"name": "b"}]))
        source_id = await _source(engine, endpoint)
        run_id: Id = new_id()
        async with engine.database.transaction() as work:
            await accept_refresh(work, engine.actor, source_id, run_id)
        await _ended(engine, source_id, run_id)
    return WorkflowKind.DATA_SOURCE_REFRESH.workflow_id(run_id)


async def staged_again(engine: Engine) -> str:
    """An import whose staged rows are lost while it waits to apply them."""
    database_id = await make_table(engine)
    async with engine.database.transaction() as holder:
        await hold_upserts(holder, database_id)
        body = ImportSpreadsheet.model_validate(
            {
                "label": "Recorded",
                "kind": "inline",
                "rows": [{"code": "a"}, {"code": "b"}],
                "fields": [
                    {"sourcePath": "code", "fieldKey": "code", "label": "Code", "kind": "text"}
                ],
                "targetDatabaseId": str(database_id),
            }
        )
        async with engine.database.transaction() as work:
            run_id = await accept_import(work, engine.actor, new_id(), body)

        async def is_applied() -> bool:
            async with engine.database.snapshot() as work:
                return (await find_run(work, run_id)).progress.get("stage") == Stage.APPLY

        await eventually(is_applied)
        async with engine.database.transaction() as work:
            await unstage(work, run_id)
    return WorkflowKind.SPREADSHEET_IMPORT.workflow_id(run_id)


async def _source(engine: Engine, endpoint: Endpoint) -> Id:
    body = {"label": "Goods", "kind": "http_json", "config": {"url": endpoint.url}}
    async with engine.database.transaction() as work:
        wanted = CreateDataSource.model_validate(body)
        return (await create_data_source(work, engine.actor, wanted)).id


async def _ended(engine: Engine, source_id: Id, run_id: Id) -> None:
    async def over() -> bool:
        async with engine.database.transaction() as work:
            run = await get_run(work, engine.actor.workspace_id, source_id, run_id)
        return run.status not in OPEN_RUN

    await eventually(over, what=f"the end of run {run_id}")


async def cancelled(engine: Engine) -> str:
    """A refresh that the API cancels while its source does not answer."""
    async with serving() as serve:
        endpoint = await serve(never)
        source_id = await _source(engine, endpoint)
        run_id: Id = new_id()
        async with engine.database.transaction() as work:
            await accept_refresh(work, engine.actor, source_id, run_id)
        await endpoint.reached.wait()
        async with engine.database.transaction() as work:
            await cancel_run(work, engine.actor, source_id, run_id)
        await endpoint.left.wait()
    return WorkflowKind.DATA_SOURCE_REFRESH.workflow_id(run_id)


SOURCE_STORIES: dict[str, Callable[[Engine], Awaitable[str]]] = {
    "spreadsheet-import": imported,
    "spreadsheet-import-refused": refused,
    "spreadsheet-import-staged-again": staged_again,
    "data-source-refresh": refreshed,
    "data-source-refresh-cancelled": cancelled,
}
