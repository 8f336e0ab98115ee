"""Legacy imports from the upload to the workspace that people see, and back."""

from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import select, text, update

from models.content.items.joins import item
from models.workspace.legacy_imports import rollbacks
from models.workspace.legacy_imports.executions import purge_legacy_imports
from models.workspace.legacy_imports.queries import legacy_import_run
from runtime.database import Database
from tests.support.bundles import bundle
from tests.support.engine import Engine
from tests.support.legacy_imports import (
    Administrator,
    folder,
    folders,
    left_of,
    owners,
    told,
    whole,
)
from tests.support.spaces import MakeSpace

pytestmark = pytest.mark.takes(seconds=30)


@pytest.mark.long
async def test_a_bundle_is_checked_reviewed_imported_and_seen(admin: Administrator) -> None:
    run = await admin.reviewed(whole({"Old": folders(7)}))
    assert run["status"] == "awaiting_review", told(run)
    assert (run["mode"], run["selectedWorkspaceCount"]) == ("dry_run", 1)
    assert run["sourceCounts"] == {"item": 7}
    assert (run["targetCounts"], run["warnings"], run["errors"]) == ({}, [], [])
    (entry,) = run["workspaces"]
    assert (entry["stage"], entry["lifecycleState"]) == ("ready", "pending")
    assert entry["counts"] == {"item": 7}

    run = await admin.decide(run["id"], "approve", note="Looks right.")
    assert (run["status"], run["approvalNote"]) == ("approved", "Looks right.")
    run = await admin.decide(run["id"], "start")
    assert (run["status"], run["mode"]) == ("importing", "apply")
    run = await admin.settled(run["id"])
    assert run["status"] == "completed", told(run)
    assert run["targetCounts"] == {"item": 7}
    (entry,) = run["workspaces"]
    assert (entry["stage"], entry["lifecycleState"], entry["attempt"]) == ("done", "live", 1)
    verification = entry["verification"]
    assert verification["outcome"] == "equal"
    assert verification["counts"]["item"] == {"source": 7, "imported": 7, "found": 7}
    assert verification["samples"]["item"]["equal"] == 7
    assert await owners(admin, entry) == [admin.space.user_id]


@pytest.mark.long
async def test_the_creator_of_a_run_is_notified_of_its_review_and_its_end(
    admin: Administrator,
) -> None:
    run = await admin.imported(whole({"Old": folders(1), "Older": folders(1)}))
    await admin.decide(run["id"], "rollback", reason="Not yet.")
    await admin.settled(run["id"])
    broken = await admin.reviewed(b"no archive")
    cancelled = await admin.reviewed(whole({"Old": folders(1)}))
    await admin.decide(cancelled["id"], "cancel")
    listed = await admin.client.get("/v1/notifications")
    notices = listed.json()["data"]["notifications"]
    assert {(one["kind"], one["workspaceId"]) for one in notices} == {
        ("legacy_import", str(admin.space.id))
    }
    assert [(one["runId"], one["data"]["status"]) for one in reversed(notices)] == [
        (run["id"], "awaiting_review"),
        (run["id"], "completed"),
        (run["id"], "rolled_back"),
        (broken["id"], "failed"),
        (cancelled["id"], "awaiting_review"),
    ]
    bodies = [one["body"] for one in reversed(notices)]
    assert bodies[:2] == ["Old, Older"] * 2
    assert bodies[3] == broken["errors"][0]


@pytest.mark.long
async def test_a_run_goes_with_what_was_kept_of_its_bundle(
    admin: Administrator, engine: Engine
) -> None:
    run = await admin.imported(whole({"Old": folders(2)}))
    (entry,) = run["workspaces"]
    async with engine.database.transaction() as work:
        moment = work.now_after(-100 * 24 * 3600)
        own = legacy_import_run.c.id == UUID(run["id"])
        await work.execute(update(legacy_import_run).where(own).values(completed_at=moment))
        before = work.now_after(-90 * 24 * 3600)
    assert await purge_legacy_imports(engine.database, engine.store, before) == 1
    assert await purge_legacy_imports(engine.database, engine.store, before) == 0
    gone = await admin.client.get(f"/v1/admin/legacy-imports/{run['id']}")
    assert gone.status_code == 404
    with pytest.raises(FileNotFoundError):
        await engine.store.size(run["bundleObjectKey"])
    with pytest.raises(FileNotFoundError):
        await engine.store.size(f"unpacked-bundles/{run['id']}/contents")
    assert set(await left_of(admin, entry)) >= {"item", "workspace"}


@pytest.mark.long
async def test_a_blocked_workspace_is_not_approved_until_it_is_left_out(
    admin: Administrator,
) -> None:
    own, first = folder("Twice")
    bad = [first, folder("Again", id=own)[1]]
    run = await admin.reviewed(whole({"Good": folders(2), "Bad": bad}))
    stages = {one["sourceName"]: one["stage"] for one in run["workspaces"]}
    assert stages == {"Good": "ready", "Bad": "blocked"}
    assert [one for one in run["errors"] if one.startswith("Bad: item: duplicate id.")]
    refused = await admin.decide(run["id"], "approve", 409)
    assert "Bad is blocked" in refused["message"]
    run = await admin.change(run, 1, selected=False)
    assert (run["status"], run["selectedWorkspaceCount"]) == ("awaiting_review", 1)
    assert run["errors"] == []
    await admin.decide(run["id"], "approve")
    await admin.decide(run["id"], "start")
    run = await admin.settled(run["id"])
    assert run["status"] == "completed", told(run)
    assert [one["stage"] for one in run["workspaces"]] == ["done", "skipped"]
    assert run["targetCounts"] == {"item": 2}


async def test_nothing_selected_is_not_approved(admin: Administrator) -> None:
    run = await admin.reviewed(whole({"Old": folders(1)}))
    await admin.change(run, 0, selected=False)
    assert "No workspace" in (await admin.decide(run["id"], "approve", 409))["message"]
    ids = [run["workspaces"][0]["id"]]
    run = await admin.decide(run["id"], "approve", selectedWorkspaceIds=ids)
    assert (run["status"], run["selectedWorkspaceCount"]) == ("approved", 1)
    await admin.decide(run["id"], "approve", 409)


@pytest.mark.long
async def test_a_workspace_that_is_there_is_filled_and_emptied_again(
    admin: Administrator, workspace: MakeSpace
) -> None:
    there = await workspace()
    run = await admin.reviewed(whole({"Old": folders(3)}))
    unknown = await admin.change(run, 0, 404, targetWorkspaceId=str(uuid4()))
    assert unknown["error"] == "not_found"
    run = await admin.change(run, 0, targetWorkspaceId=str(there.id))
    assert run["status"] == "dry_running"
    run = await admin.settled(run["id"])
    assert run["workspaces"][0]["targetWorkspaceId"] == str(there.id)
    await admin.decide(run["id"], "approve")
    await admin.decide(run["id"], "start")
    run = await admin.settled(run["id"])
    assert run["status"] == "completed", told(run)
    owner = admin.client.with_token(there.token)
    (notice,) = (await owner.get("/v1/notifications")).json()["data"]["notifications"]
    assert (notice["kind"], notice["title"]) == ("legacy_import", "“Old” was imported")
    told_of = {"legacyImportRunId": run["id"], "status": "completed"}
    assert notice["data"] == {**told_of, "workspaceId": str(there.id)}
    assert notice["pageUrl"].endswith(f"/workspaces/{there.id}")
    assert len((await owner.get("/v1/items")).json()["data"]["items"]) == 3
    await admin.decide(run["id"], "rollback", reason="Not yet.")
    run = await admin.settled(run["id"])
    assert run["status"] == "rolled_back", told(run)
    assert (await owner.get("/v1/items")).json()["data"]["items"] == []


@pytest.mark.long
async def test_changed_rows_are_kept_and_removed_by_force(
    admin: Administrator, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A kind is many batches, and is gone through until nothing in it can go.
    monkeypatch.setattr(rollbacks, "_BATCH", 2)
    run = await admin.imported(whole({"Old": folders(5)}))
    (entry,) = run["workspaces"]
    async with database.transaction() as work:
        changed = text(
            "UPDATE item SET title = 'Mine', updated_at = now() WHERE workspace_id = :id"
            " AND title = 'Folder 2'"
        )
        await work.execute(changed, {"id": entry["targetWorkspaceId"]})
    await admin.decide(run["id"], "rollback", reason="Not yet.")
    run = await admin.settled(run["id"])
    (entry,) = run["workspaces"]
    assert (run["status"], entry["rollbackState"]) == ("rolled_back", "partial"), told(run)
    assert any(one.startswith("Kept") for one in entry["warnings"])
    async with database.reading() as work:
        own = item.c.workspace_id == UUID(entry["targetWorkspaceId"])
        rows = await work.rows(select(item.c.title).where(own).order_by(item.c.title))
    assert [row.title for row in rows] == ["Folder 0", "Folder 1", "Mine"]
    await admin.decide(run["id"], "rollback", 409, reason="Again.")
    await admin.decide(run["id"], "rollback", reason="All of it.", force=True)
    run = await admin.settled(run["id"])
    (entry,) = run["workspaces"]
    assert (run["status"], entry["rollbackState"]) == ("rolled_back", "completed"), told(run)
    assert await left_of(admin, entry) == {}
    await admin.decide(run["id"], "rollback", 409, reason="Once more.")


@pytest.mark.long
async def test_a_bundle_that_changed_after_its_approval_is_not_imported(
    admin: Administrator, engine: Engine
) -> None:
    run = await admin.reviewed(whole({"Old": folders(1)}))
    await admin.decide(run["id"], "approve")

    async def other() -> Any:
        yield whole({"Other": folders(1)})

    await engine.store.delete(run["bundleObjectKey"])
    await engine.store.put(run["bundleObjectKey"], other())
    await admin.decide(run["id"], "start")
    run = await admin.settled(run["id"])
    assert run["status"] == "failed"
    assert "has changed since it was approved" in run["errors"][0]
    assert run["targetCounts"] == {}


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"no archive", "must be a zip or tar.zst"),
        (bundle({"workspaces/../x": b""}), "name"),
        (bundle({}, files=[{"path": "a.ndjson", "sha256": "0" * 64, "bytes": 1}]), "lacks"),
        (whole({}), "no workspace"),
        (whole({"Old": folders(1)}, formatVersion=2), "formatVersion"),
    ],
)
async def test_a_hostile_bundle_fails_and_says_why(
    admin: Administrator, content: bytes, error: str
) -> None:
    run = await admin.reviewed(content)
    assert run["status"] == "failed"
    assert error in run["errors"][0], told(run)
    assert run["workspaces"] == []
    assert (
        "nothing to roll back"
        in (await admin.decide(run["id"], "rollback", 409, reason="Why not"))["message"]
    )


async def test_a_bundle_that_lies_about_its_counts_is_blocked(admin: Administrator) -> None:
    own = str(uuid4())
    files = {f"workspaces/{own}/items.ndjson": folder("One")[1]}
    workspaces = [{"id": own, "name": "Old", "counts": {"item": 5}}]
    run = await admin.reviewed(bundle(files, workspaces=workspaces))
    assert run["workspaces"][0]["stage"] == "blocked"
    assert "The manifest lists 5 item, but the bundle has 1." in run["workspaces"][0]["errors"]


async def test_an_object_that_is_not_there_fails_the_run(admin: Administrator) -> None:
    body = {"bundleObjectKey": "bundles/none.zip", "bundleChecksum": "0" * 64}
    answer = await admin.client.post("/v1/admin/legacy-imports", json=body)
    assert answer.status_code == 201
    run = await admin.settled(answer.json()["data"]["id"])
    assert run["status"] == "failed"
    assert "Object bundles/none.zip not found" in run["errors"][0]
