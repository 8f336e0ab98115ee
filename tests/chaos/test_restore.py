"""Backup and restore of a platform, by the commands of temporal/RUNBOOK.md as they stand there."""

import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.support.checkout import BACK_UP, RESTORE_POSTGRESQL, RESTORE_TEMPORAL, Checkout
from tests.support.engine import graph, node

pytestmark = [pytest.mark.crash, pytest.mark.takes(seconds=60)]

Json = dict[str, Any]


@pytest_asyncio.fixture
async def checkout(tmp_path: Path) -> AsyncIterator[Checkout]:
    checkout = Checkout(tmp_path)
    yield checkout
    await checkout.http.aclose()


@pytest.mark.long
async def test_a_platform_continues_whichever_backup_it_is_given(checkout: Checkout) -> None:
    async with checkout.up("workspace up"):
        known = checkout.connection
        database = await checkout.call("/databases", {"label": "Effects", "fields": []})
        automation = await _publish(checkout, database["id"])
        ended, waiting = [await _run(checkout, automation) for _ in range(2)]
        for run in (ended, waiting):
            await checkout.wait_for(run, "waiting")
        await checkout.sh(BACK_UP)
        _is_private(checkout.directory / "backup")
        await checkout.approve(ended)
        lost = await _run(checkout, automation)
        await checkout.wait_for(lost, "waiting")

    # An older PostgreSQL: it knows neither the end of one run nor the other run at all.
    async with checkout.up(RESTORE_POSTGRESQL):
        _is_the_same(checkout.connection, known)
        assert (await checkout.answer(lost)).status_code == 404
        await checkout.approve(ended)
        assert await _records(checkout, database["id"]) == ["done"]
        late = await _run(checkout, automation)
        await checkout.wait_for(late, "waiting")

    # An older Temporal: it knows the first run as open, and the last one not at all.
    async with checkout.up(RESTORE_TEMPORAL):
        _is_the_same(checkout.connection, known)
        await checkout.approve(late)
        assert (await checkout.call(ended))["status"] == "succeeded"
        assert await _records(checkout, database["id"]) == ["done", "done"]

    # PostgreSQL alone.
    await checkout.sh("rm -r .state")
    async with checkout.up(RESTORE_POSTGRESQL):
        _is_the_same(checkout.connection, known)
        for run in (ended, waiting):
            await checkout.approve(run)
        assert await _records(checkout, database["id"]) == ["done", "done"]


def _is_private(backup: Path) -> None:
    """No other account of the machine reads any of it."""
    modes = {one: stat.S_IMODE(one.stat().st_mode) for one in (backup, *backup.rglob("*"))}
    assert {one.name for one in modes} >= {"workspace.dump", "secrets.json", "temporal.db"}
    wrong = {
        one: oct(mode) for one, mode in modes.items() if mode != (0o700 if one.is_dir() else 0o600)
    }
    assert wrong == {}


def _is_the_same(connection: Json, known: Json) -> None:
    """A client continues with the answers from before."""
    for name in ("workspaceId", "apiKey"):
        assert connection[name] == known[name]


async def _publish(checkout: Checkout, database_id: str) -> str:
    content = graph(
        node("ask", "approval", role="owner", allowSelf=True),
        node("done", "create_record", databaseId=database_id, title="done"),
        edges=[("ask", "done", "approved")],
    )
    made = await checkout.call(
        "/automations", {"label": "Story", "enabled": True, "graph": content}
    )
    path = f"/automations/{made['id']}"
    await checkout.call(f"{path}/publish", {})
    return path


async def _run(checkout: Checkout, automation: str) -> str:
    run = await checkout.call(f"{automation}/run", {})
    return f"{automation}/runs/{run['id']}"


async def _records(checkout: Checkout, database_id: str) -> list[str]:
    records = (await checkout.call(f"/v1/databases/{database_id}/records"))["records"]
    return [one["title"] for one in records]
