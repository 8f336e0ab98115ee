"""Credentials in change sets: they do what they are for, and are seen nowhere else."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select, text, update

from models.automation.actions.store import action
from models.sources.data_sources.tables import data_source
from models.workspace.changes.commands import expire_changes
from models.workspace.changes.queries import change_set
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.client import Client
from tests.support.engine import Engine
from tests.support.items import read, refused
from tests.support.spaces import Space

pytestmark = [pytest.mark.usefixtures("engine"), pytest.mark.takes(seconds=15)]

Json = dict[str, Any]

CANARY = "canary-8d15"
URL = "https://example.test/rows"
NAMED = {"type": "secret", "value": "shop_token"}


def data_source_item(value: Any = f"Bearer {CANARY}") -> Json:
    config = {"url": URL, "headers": {"Authorization": value, "Accept": "text/csv"}}
    given = {"kind": "http_json", "config": config}
    return {
        "kind": "create_item",
        "input": {"kind": "data_source", "title": "Rows", "config": given},
    }


def calling(auth: Json) -> Json:
    return {
        "kind": "create_action",
        "input": {"label": "Call", "kind": "http_request", "config": {"url": URL, "auth": auth}},
    }


async def propose(client: Client, space: Space, *operations: Json) -> Any:
    return await client.post(f"{space.path}/changes", json={"operations": list(operations)})


async def kept(space: Space, change: Json) -> str:
    """Every row that the workspace has of changes and their jobs, as text."""
    async with space.database.transaction() as work:
        rows = [
            await work.scalar(
                text(f"SELECT json_agg(one)::text FROM {table} AS one WHERE workspace_id = :id"),  # noqa: S608  # tables of this test
                {"id": space.id},
            )
            for table in ("change_set", "job", "workspace_event")
        ]
    assert change["id"] in rows[0]
    return " ".join(map(str, rows))


async def sealed(space: Space, change: Json) -> bytes | None:
    async with space.database.transaction() as work:
        found: bytes | None = await work.scalar(
            select(change_set.c.sealed_credentials).where(change_set.c.id == change["id"])
        )
    return found


async def results(space: Space, change: Json) -> tuple[Json, list[Json], UUID]:
    """The config of the data source, those of the actions, and the job that made them."""
    async with space.database.transaction() as work:
        source = await work.scalar(
            select(data_source.c.config).where(data_source.c.workspace_id == space.id)
        )
        actions = await work.rows(select(action.c.config).where(action.c.workspace_id == space.id))
        job_id = await work.scalar(
            text("SELECT id FROM job WHERE subject_id = :id"), {"id": change["id"]}
        )
    return source, [row.config for row in actions], job_id


@pytest.mark.long
async def test_they_are_used_and_shown_nowhere(
    client: Client, space: Space, engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    made = await propose(
        client,
        space,
        data_source_item(),
        calling({"type": "basic", "username": "ada", "password": CANARY}),
        calling({"type": "bearer", "token": NAMED}),
    )
    change = read(made, 201)
    path = f"{space.path}/changes/{change['id']}"
    shown = [one["input"]["config"] for one in change["operations"]]
    assert shown[0]["config"]["headers"] == {"Authorization": "[redacted]", "Accept": "text/csv"}
    assert shown[1]["auth"] == {"type": "basic", "username": "ada", "password": "[redacted]"}
    assert shown[2]["auth"]["token"] == NAMED
    assert CANARY.encode() not in (await sealed(space, change) or b"") != b""

    tried = await client.post(f"{path}/apply", json={"approveAll": True, "dryRun": True})
    assert [one["status"] for one in read(tried)["results"]] == ["pending"] * 3
    applied = await client.post(f"{path}/apply", json={"approveAll": True})
    assert read(applied)["status"] == "applied", applied.text
    after = await client.get(path)
    answers = made.text + tried.text + applied.text + after.text
    assert CANARY not in answers + await kept(space, change) + caplog.text
    assert await sealed(space, change) is None

    source, configs, job_id = await results(space, change)
    assert source["headers"]["Authorization"] == f"Bearer {CANARY}"
    assert sorted(one["auth"]["type"] for one in configs) == ["basic", "bearer"]
    assert CANARY in str(configs)
    workflow_id = WorkflowKind.CHANGE_APPLICATION.workflow_id(job_id)
    history = await engine.client.get_workflow_handle(workflow_id).fetch_history()
    assert history.events
    assert CANARY not in history.to_json()


async def test_they_go_when_a_change_set_is_closed(client: Client, space: Space) -> None:
    rejected = read(await propose(client, space, data_source_item()), 201)
    late = read(await propose(client, space, data_source_item()), 201)
    assert await sealed(space, rejected)
    assert await sealed(space, late)
    read(await client.post(f"{space.path}/ai/runs/{rejected['id']}/reject", json={}))
    async with space.database.transaction() as work:
        old = {"expires_at": work.now - timedelta(seconds=1)}
        await work.execute(update(change_set).where(change_set.c.id == late["id"]).values(old))
    async with space.database.transaction() as work:
        assert await expire_changes(work) >= 1
    assert await sealed(space, rejected) is None
    assert await sealed(space, late) is None


async def test_a_redacted_value_is_refused(client: Client, space: Space) -> None:
    answer = await propose(client, space, data_source_item("[redacted]"))
    assert refused(answer) == (400, "validation_error")
    assert "operations.0.input.config.config.headers.Authorization" in answer.text
