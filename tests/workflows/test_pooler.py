"""The platform behind a pooler in transaction mode, which gives each transaction any session."""

import asyncio
import base64
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio
from pydantic import SecretStr
from sqlalchemy import func, select
from temporalio.testing import WorkflowEnvironment

from api.app import create_app
from cli.doctor_checks import check_pooler
from runtime.configuration.resources import platform_database
from runtime.configuration.settings import Settings
from tests.support.bundles import exported
from tests.support.client import Client, Contract
from tests.support.endpoint import Serve
from tests.support.engine import KEYS, Engine, graph, node, running_engine
from tests.support.hooks import make_hook, send
from tests.support.legacy_import_stories import begin, until
from tests.support.pooler import SESSIONS, Pooler, pooler
from tests.support.postgres import migrated_database
from tests.support.sources import goods, make_source
from tests.support.spaces import Space, make_space

pytestmark = [pytest.mark.takes(seconds=20), pytest.mark.long]

RUNS = 10 * SESSIONS
SHEET_ROWS = 1_500
STEPS = graph(
    node("one", "transform", output={"n": 1}),
    node("two", "transform", output={"n": 2}),
    edges=[("one", "two")],
)


@dataclass(frozen=True, slots=True)
class Pooled:
    """Workers and an API whose transactions go through a pooler."""

    pooler: Pooler
    engine: Engine
    space: Space
    client: Client
    settings: Settings


@pytest_asyncio.fixture(scope="module")
async def pooled(
    temporal: WorkflowEnvironment, settings: Settings, contract: Contract
) -> AsyncIterator[Pooled]:
    with migrated_database("pooled") as url:
        async with pooler(url) as one:
            places = {
                "database_url": SecretStr(url),
                "database_pooler_url": SecretStr(one.url),
            }
            own = settings.model_copy(update=places)
            database, app = platform_database(own, "pooled"), create_app(own)
            space = await make_space(database, KEYS)
            async with (
                running_engine(
                    database, url, temporal.client, store=settings.object_store
                ) as engine,
                app.router.lifespan_context(app),
                Client(app, contract, space.token) as client,
            ):
                yield Pooled(one, engine, space, client, own)
            await database.close()


async def test_requests_wait_for_their_runs(pooled: Pooled) -> None:
    hook = await make_hook(pooled.client, pooled.space, graph=STEPS, respond="wait")
    answers = await asyncio.gather(*(send(pooled.client, hook) for _ in range(RUNS)))
    assert {answer.status_code for answer in answers} == {200}


async def test_rows_are_imported_and_changed(pooled: Pooled, serve: Serve) -> None:
    source = await make_source(pooled.client, pooled.space, serve)
    source.answers(goods(("a", "One", 1), ("b", "Two", 2)))
    assert (await source.refresh())["status"] == "succeeded"
    source.answers(goods(("a", "One", 3), ("b", "Two", 2), ("c", "Three", None)))
    assert (await source.refresh())["status"] == "succeeded"
    assert (await source.records())["a"]["data"]["price"] == 3


async def test_a_sheet_and_the_bundle_of_its_workspace_are_imported(pooled: Pooled) -> None:
    path, engine = pooled.space.path, pooled.engine
    rows = "name,price\n" + "".join(f"Tea {n},{n}\n" for n in range(SHEET_ROWS))
    sheet = {"label": "Goods", "kind": "inline", "format": "csv", "fields": [],
             "content": base64.b64encode(rows.encode()).decode()}  # fmt: skip
    answer = await pooled.client.post(f"{path}/data-sources/import-spreadsheet", json=sheet)
    assert answer.json()["data"]["recordCount"] == SHEET_ROWS, answer.text
    run_id = await begin(engine, await exported(pooled.space, engine.store, page=500))
    (entry,) = (await until(engine, run_id, "completed", "failed")).workspaces
    assert entry.stage == "done"
    assert entry.counts["record"] >= SHEET_ROWS


async def test_a_loop_runs_to_its_end(pooled: Pooled) -> None:
    loop = graph(
        node("loop", "for_each", items=list(range(RUNS)), parallelism=SESSIONS),
        node("body", "transform", output={}),
        edges=[("loop", "body", "item")],
    )
    run = await pooled.engine.run(loop)
    assert (run.status, len(run.node_runs)) == ("succeeded", RUNS + 1)


async def test_runs_complete_when_the_pooler_dies(pooled: Pooled) -> None:
    engine = pooled.engine
    calm = graph(node("rest", "delay", seconds=1), node("end", "transform", output={}),
                 edges=[("rest", "end")])  # fmt: skip
    automation = await engine.publish(calm)
    runs = [await engine.start(automation.id) for _ in range(RUNS)]
    pooled.pooler.kill()
    await asyncio.sleep(1)
    await pooled.pooler.start()
    ended = [await engine.ended(automation.id, run) for run in runs]
    assert {run.status for run in ended} == {"succeeded"}
    assert {len(run.node_runs) for run in ended} == {2}


async def test_sessions_share_few_and_keep_the_time_zone(pooled: Pooled) -> None:
    async def asked(_: int) -> tuple[str, int]:
        async with pooled.engine.database.transaction() as work:
            zone = await work.scalar(select(func.current_setting("TimeZone")))
            return str(zone), int(await work.scalar(select(func.pg_backend_pid())))

    answers = await asyncio.gather(*map(asked, range(RUNS)))
    assert {zone for zone, _ in answers} == {"UTC"}
    assert len({pid for _, pid in answers}) <= SESSIONS


async def test_the_doctor_looks_for_limits_in_the_pooler(pooled: Pooled) -> None:
    assert (await check_pooler(pooled.settings)).remedy is None
    without = pooled.settings.model_copy(
        update={"database_pooler_url": pooled.settings.database_url}
    )
    assert "connect_query" in str((await check_pooler(without)).remedy)
