"""Objects that work left in the store when it ended without its worker."""

from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from fastapi import FastAPI
from sqlalchemy import delete, update

from activities.maintenance.sweeps import sweep_orphans
from models.messages.jobs.store import job
from models.sources.data_source_runs.tables import data_source_run
from models.workspace.legacy_imports.queries import legacy_import_run
from runtime.clock import utc_now
from runtime.object_store import ObjectStore
from tests.support.client import Client
from tests.support.legacy_imports import administrator
from tests.support.spaces import Space


@pytest.fixture
def store(app: FastAPI) -> ObjectStore:
    """The store the application uses."""
    found: ObjectStore = app.state.services.store
    return found


async def _left(store: ObjectStore, *keys: str) -> None:
    async def once() -> AsyncIterator[bytes]:
        yield b"left"

    for key in keys:
        await store.put(key, once())


async def _swept(space: Space, store: ObjectStore, *keys: str) -> set[str]:
    """The keys among these that the sweep of the day after tomorrow removes."""
    assert await sweep_orphans(space.database, store, utc_now()) == 0
    await sweep_orphans(space.database, store, utc_now() + timedelta(days=2))
    removed = set()
    for key in keys:
        try:
            await store.size(key)
        except FileNotFoundError:
            removed.add(key)
    return removed


async def _run(client: Client, space: Space, name: str) -> str:
    """A run that waits for its worker."""
    config = {"url": "https://example.com/rows.json"}
    body = {"label": name, "kind": "http_json", "config": config}
    made = await client.post(f"{space.path}/data-sources", json=body)
    assert made.is_success, made.text
    path = f"{space.path}/data-sources/{made.json()['data']['id']}/refresh"
    accepted = await client.post(path, json={})
    assert accepted.is_success, accepted.text
    run_id: str = accepted.json()["data"]["id"]
    return run_id


@pytest.mark.parametrize("status", ["failed", "cancelled"])
async def test_pages_of_ended_and_missing_runs_go(
    client: Client, space: Space, store: ObjectStore, status: str
) -> None:
    ended, waiting = await _run(client, space, "a"), await _run(client, space, "b")
    async with space.database.transaction() as work:
        changed = update(data_source_run).where(data_source_run.c.id == UUID(ended))
        await work.execute(changed.values(status=status, completed_at=work.now))
    pages = {
        which: [f"data-source-runs/{space.id}/{run_id}/{page}" for page in range(3)]
        for which, run_id in {"ended": ended, "waiting": waiting, "missing": uuid4()}.items()
    }
    odd = "data-source-runs/others"
    everything = [*(key for keys in pages.values() for key in keys), odd]
    await _left(store, *everything)
    assert await _swept(space, store, *everything) == {*pages["ended"], *pages["missing"]}


async def test_parts_of_ended_and_missing_exports_go(
    client: Client, space: Space, store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.routers.data.records.EXPORT_WAIT_SECONDS", 0)
    made = await client.post(f"{space.path}/databases", json={"label": "x", "fields": []})
    where = f"/v1/databases/{made.json()['data']['id']}/export"
    ended, waiting = [
        (await client.post(where, json={"format": "csv"})).json()["data"]["id"] for _ in range(2)
    ]
    async with space.database.transaction() as work:
        changed = update(job).where(job.c.id == UUID(ended))
        await work.execute(changed.values(status="failed", completed_at=work.now))
    keys = [f"exports/{space.id}/{each}/0" for each in (ended, waiting, uuid4())]
    await _left(store, *keys)
    assert await _swept(space, store, *keys) == {keys[0], keys[2]}


async def test_bundles_of_missing_imports_and_probes_go(
    client: Client, space: Space, store: ObjectStore
) -> None:
    admin = await administrator(client, space)
    sent = await admin.client.post(
        "/v1/admin/legacy-imports", files={"file": ("old.zip", b"bytes", "application/zip")}
    )
    run = sent.json()["data"]
    bundle, unpacked = run["bundleObjectKey"], f"unpacked-bundles/{run['id']}/0/0"
    missing = [f"legacy-imports/{uuid4()}", f"unpacked-bundles/{uuid4()}/contents", "probe/1"]
    await _left(store, unpacked, *missing)
    assert await _swept(space, store, bundle, unpacked, *missing) == {*missing}
    async with space.database.transaction() as work:
        await work.execute(delete(legacy_import_run).where(legacy_import_run.c.id == run["id"]))
    assert await _swept(space, store, bundle, unpacked) == {bundle, unpacked}
