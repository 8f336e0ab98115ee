"""What the database refuses for good ends its work at once, with a reason (ADR 0066)."""

from typing import Any

import pytest
from sqlalchemy import text
from temporalio.client import WorkflowExecutionStatus

from activities.automation_runs.runs import RunCache
from activities.jobs.data_sources import SourcePreviews
from runtime.database import Database
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.client import Client
from tests.support.engine import Engine, graph, node
from tests.support.patience import found_when
from tests.support.spaces import Space

pytestmark = pytest.mark.takes(seconds=20)


async def refuse(database: Database) -> None:
    async with database.transaction() as work:
        await work.execute(text('SELECT \'{"a": "\\u0000"}\'::jsonb'))


async def test_a_job_fails_at_its_first_attempt(
    client: Client, space: Space, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = 0

    async def read(*_: Any) -> Any:
        nonlocal attempts
        attempts += 1
        await refuse(engine.database)

    monkeypatch.setattr(SourcePreviews, "_read", read)
    config = {"url": "https://example.com/"}
    answer = await client.post(
        f"{space.path}/data-sources/preview", json={"kind": "http_csv", "config": config}
    )
    assert (answer.status_code, attempts) == (400, 1), answer.text
    assert "rejected a value" in answer.json()["message"]


async def test_a_run_whose_transaction_never_succeeds_is_not_repeated_for_ever(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def load(*_: Any) -> Any:
        await refuse(engine.database)

    automation = await engine.publish(graph(node("a", "delay", seconds=0)))
    monkeypatch.setattr(RunCache, "open", load)
    run_id = await engine.start(automation.id)
    handle = engine.client.get_workflow_handle(WorkflowKind.AUTOMATION_RUN.workflow_id(run_id))

    async def status() -> Any:
        try:
            return (await handle.describe()).status
        except Exception:  # noqa: BLE001  # it is not started yet
            return None

    failed = WorkflowExecutionStatus.FAILED
    assert await found_when(status, lambda one: one is failed) is failed
