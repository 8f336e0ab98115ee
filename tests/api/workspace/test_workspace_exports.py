"""Workspace exports over HTTP: one open at a time, listed and cancelled."""

import asyncio

import pytest
from sqlalchemy import func, select
from sqlmodel import SQLModel

from models.core.base import Id
from models.messages.jobs import store
from models.messages.jobs.rules import JobStatus
from models.messages.jobs.store import Job, JobRow, close_job, hold_job, open_job
from runtime.database import UnitOfWork
from runtime.postgresql.schema import table_of
from runtime.temporal.outbox import Outbox
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.client import Client
from tests.support.spaces import Space


async def rows_of(space: Space, table: type[SQLModel]) -> int:
    rows = table_of(table)
    async with space.database.reading() as work:
        number = select(func.count()).where(rows.c.workspace_id == space.id)
        return int(await work.scalar(number.where(rows.c.workflow_kind == "workspace-export")))


async def test_an_open_export_answers_every_further_call(client: Client, space: Space) -> None:
    exports = f"{space.path}/workspace-exports"
    answers = await asyncio.gather(*(client.post(exports, json={}) for _ in range(6)))
    assert sorted(answer.status_code for answer in answers) == [200] * 5 + [202]
    assert len({answer.json()["data"]["id"] for answer in answers}) == 1
    assert await rows_of(space, Job) == await rows_of(space, Outbox) == 1


async def test_an_export_that_ends_while_another_is_asked_for_is_no_refusal(
    client: Client, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    exports = f"{space.path}/workspace-exports"
    first = (await client.post(exports, json={})).json()["data"]["id"]

    async def end_and_look(
        work: UnitOfWork, workspace_id: Id, workflow_kind: WorkflowKind
    ) -> JobRow | None:
        async with space.database.transaction() as other:
            await close_job(other, Id(first), JobStatus.FAILED)
        return await open_job(work, workspace_id, workflow_kind)

    monkeypatch.setattr(store, "open_job", end_and_look)
    second = await client.post(exports, json={})
    assert second.status_code == 202, second.text
    assert second.json()["data"]["id"] != first


async def test_exports_are_listed_newest_first(client: Client, space: Space) -> None:
    exports = f"{space.path}/workspace-exports"
    ids: list[str] = []
    for _ in range(3):
        ids.insert(0, (await client.post(exports, json={})).json()["data"]["id"])
        async with space.database.transaction() as work:
            await close_job(work, Id(ids[0]), JobStatus.FAILED)
    first = (await client.get(exports, params={"limit": 2})).json()["data"]
    rest = (await client.get(exports, params={"cursor": first["cursor"]})).json()["data"]
    shown = [*first["workspaceExports"], *rest["workspaceExports"]]
    assert [one["id"] for one in shown] == ids
    assert rest["cursor"] is None


async def test_an_export_that_waits_is_cancelled_at_once(client: Client, space: Space) -> None:
    exports = f"{space.path}/workspace-exports"
    made = (await client.post(exports, json={})).json()["data"]
    ended = (await client.post(f"{exports}/{made['id']}/cancel")).json()["data"]
    assert ended["status"] == "cancelled"
    assert ended["completedAt"]
    assert await rows_of(space, Outbox) == 0
    again = (await client.post(f"{exports}/{made['id']}/cancel")).json()["data"]
    assert again == ended
    assert (await client.post(exports, json={})).status_code == 202


async def test_an_export_that_runs_ends_when_its_parts_are_removed(
    client: Client, space: Space
) -> None:
    exports = f"{space.path}/workspace-exports"
    made = (await client.post(exports, json={})).json()["data"]
    async with space.database.transaction() as work:
        await hold_job(work, Id(made["id"]))
        await work.execute(table_of(Outbox).delete())
    shown = (await client.post(f"{exports}/{made['id']}/cancel")).json()["data"]
    assert shown["status"] == "running"
    async with space.database.reading() as work:
        intents = table_of(Outbox).c
        told = select(intents.intent).where(intents.subject_id == Id(made["id"]))
        assert await work.scalar(told) == "cancel"
