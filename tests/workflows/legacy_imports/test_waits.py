"""Runs that wait for weeks, whose signals are lost, or that are tried again."""

import asyncio
from typing import Any
from unittest.mock import patch

import pytest
from sqlalchemy import delete, select
from temporalio.client import Client as Temporal

from activities.maintenance.reconciler import Reconciler
from activities.maintenance.work_handlers import describe_execution
from cli.work_handlers.background import LegacyImports
from models.workspace.legacy_imports import commands
from models.workspace.legacy_imports.queries import ApproveLegacyImport, legacy_import_run
from runtime.errors import ConflictError
from runtime.temporal.outbox import outbox
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.engine import Engine
from tests.support.legacy_import_stories import accept, begin, small, until
from tests.support.patience import eventually
from workflows import policies

pytestmark = pytest.mark.takes(seconds=30)


@pytest.mark.long
async def test_a_run_waits_for_its_review_without_any_timeout(skipping_engine: Engine) -> None:
    """Where timers take no time, a wait that had one would be over at once."""
    engine = skipping_engine
    run_id = await accept(engine, await small(engine))
    await until(engine, run_id, "awaiting_review")
    workflow_id = WorkflowKind.LEGACY_IMPORT.workflow_id(run_id)
    await _sleeps(engine.client, workflow_id)
    described = await engine.client.get_workflow_handle(workflow_id).describe()
    config = described.raw_description.execution_config
    assert config.workflow_execution_timeout.ToSeconds() == 0
    events = (await engine.client.get_workflow_handle(workflow_id).fetch_history()).events
    assert not any(one.HasField("timer_started_event_attributes") for one in events)
    async with engine.database.transaction() as work:
        await commands.approve(work, engine.actor.principal, run_id, ApproveLegacyImport())
    async with engine.database.transaction() as work:
        await commands.start(work, run_id)
    await until(engine, run_id, "completed")


@pytest.mark.long
async def test_a_run_with_a_long_history_continues_as_another_execution(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policies, "LONG_HISTORY", 12)
    run_id = await begin(engine, await small(engine, 2))
    await until(engine, run_id, "completed")
    workflow_id = WorkflowKind.LEGACY_IMPORT.workflow_id(run_id)
    described = await engine.client.get_workflow_handle(workflow_id).describe()
    first = described.raw_description.workflow_execution_info.first_run_id
    assert first != described.run_id


@pytest.mark.long
async def test_a_signal_that_is_lost_is_made_up_for(engine: Engine) -> None:
    run_id = await accept(engine, await small(engine))
    await until(engine, run_id, "awaiting_review")
    await _sleeps(engine.client, WorkflowKind.LEGACY_IMPORT.workflow_id(run_id))
    async with engine.database.transaction() as work:
        await commands.approve(work, engine.actor.principal, run_id, ApproveLegacyImport())
        await commands.start(work, run_id)
        await work.execute(delete(outbox).where(outbox.c.subject_id == run_id))
    reconciler = Reconciler(engine.database, engine.client, [LegacyImports()])
    async with engine.database.reading() as work:
        (row,) = await work.rows(LegacyImports().rows().where(legacy_import_run.c.id == run_id))
    assert await reconciler.repair(LegacyImports(), row) == "restarted"
    await until(engine, run_id, "completed")


@pytest.mark.long
async def test_an_execution_that_is_gone_begins_anew_from_its_rows(engine: Engine) -> None:
    run_id = await accept(engine, await small(engine))
    await until(engine, run_id, "awaiting_review")
    handle = engine.client.get_workflow_handle(WorkflowKind.LEGACY_IMPORT.workflow_id(run_id))
    await handle.terminate()
    reconciler = Reconciler(engine.database, engine.client, [LegacyImports()])
    async with engine.database.reading() as work:
        (row,) = await work.rows(LegacyImports().rows().where(legacy_import_run.c.id == run_id))
    assert await reconciler.repair(LegacyImports(), row) == "closed"
    run = await until(engine, run_id, "failed")
    assert run.errors == ["Terminated in Temporal."]


@pytest.mark.long
async def test_a_workspace_that_failed_is_tried_again(engine: Engine) -> None:
    refused: list[Any] = []

    async def refuse(*_: Any) -> None:
        refused.append(1)
        raise ConflictError("Not today.")

    with patch("models.workspace.legacy_imports.stages.make_workspace", refuse):
        run_id = await begin(engine, await small(engine))
        run = await until(engine, run_id, "failed")
    (entry,) = run.workspaces
    assert (entry.stage, entry.last_error, entry.attempt) == ("failed", "Not today.", 1)
    assert refused == [1]
    async with engine.database.transaction() as work:
        await commands.retry_workspace(work, run_id, entry.id)
    run = await until(engine, run_id, "completed")
    (entry,) = run.workspaces
    assert (entry.stage, entry.last_error, entry.attempt) == ("done", None, 2)
    async with engine.database.reading() as reading:
        execution = await reading.scalar(
            select(legacy_import_run.c.execution).where(legacy_import_run.c.id == run_id)
        )
    assert execution == "retry/1"


async def _sleeps(client: Temporal, workflow_id: str) -> None:
    async def sleeps() -> bool:
        await asyncio.sleep(0)
        found = await describe_execution(client, workflow_id)
        return found is not None and found.sleeps and not found.busy

    await eventually(sleeps, what=f"the rest of {workflow_id}")
