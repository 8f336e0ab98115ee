"""`workspace replay RUN --node NODE`: work that ended, executed once more, of which nothing is kept."""

import hashlib
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from cli.replay.errors import HistoryUnavailableError
from cli.replay.once import Once, Request, execute_once
from models.core.base import Id
from runtime.database import Database
from runtime.settings import Settings
from tests.support import actions
from tests.support.actions import make, step
from tests.support.endpoint import Serve, reply
from tests.support.engine import Engine, graph, node

Json = dict[str, Any]
OURS = {"temporal_address": "127.0.0.1:1"}


async def digest(database: Database) -> str:
    """A digest of every row of every table."""
    found = hashlib.sha256()
    async with database.snapshot() as work:
        tables = await work.rows(
            text("SELECT format('%I', tablename) AS name FROM pg_tables"
                 " WHERE schemaname = 'public' ORDER BY 1")
        )  # fmt: skip
        for table in tables:
            rows = f"SELECT md5(string_agg(t::text, '|' ORDER BY t::text)) FROM {table.name} t"  # noqa: S608
            found.update(f"{table.name} {await work.scalar(text(rows))}".encode())
    return found.hexdigest()


@pytest.fixture
def once(engine: Engine, settings: Settings) -> Any:
    """Executes once more without a Temporal, and sees that nothing was kept."""
    known = settings.model_copy(update=OURS)

    async def execute(run_id: Id, node_id: str, **options: Any) -> Once:
        before = await digest(engine.database)
        try:
            return await execute_once(known, Request(run_id, node_id, **options))
        finally:
            assert await digest(engine.database) == before

    return execute


KINDS: dict[str, tuple[Json, Json]] = {
    "transform": ({"output": {"name": {"type": "trigger", "value": "name"}}}, {"name": "Ada"}),
    "condition": ({"expression": "trigger.name == 'Ada'"}, {"result": True}),
    "delay": ({"seconds": 0}, {}),
}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_node_ends_as_it_did(engine: Engine, once: Any, kind: str) -> None:
    config, output = KINDS[kind]
    run = await engine.run(graph(node("it", kind, **config)), {"name": "Ada"})
    assert run.status == "succeeded", run.error
    found = await once(run.id, "it")
    assert found.now.as_before(found.before), found
    assert (found.now.status, found.now.output) == ("succeeded", output)
