"""What administrators may decide about a legacy import run, and what is refused."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import insert, update

from models.core.base import Id
from models.workspace.legacy_imports.queries import legacy_import_run, legacy_import_workspace
from models.workspace.legacy_imports.rules import (
    AT_ONCE_CANCELLED,
    RELEASED_IN,
    RETRIED_IN,
    RUN_LIFECYCLE,
    TAKEN_BACK,
    WORKED_ON,
    LegacyImportStatus,
)
from tests.support.client import Client
from tests.support.legacy_imports import Administrator, administrator
from tests.support.lost_worker import lost_worker
from tests.support.spaces import Space

S = LegacyImportStatus
RUNS = "/v1/admin/legacy-imports"
ALLOWED = {
    "approve": {S.AWAITING_REVIEW},
    "start": {S.APPROVED},
    "dry-run": {S.AWAITING_REVIEW},
    "cancel": AT_ONCE_CANCELLED | TAKEN_BACK | RUN_LIFECYCLE.at_rest,
    "rollback": RUN_LIFECYCLE.at_rest,
    "release": RELEASED_IN,
    "workspaces/{}/retry": RETRIED_IN,
    "workspaces/{}": {S.AWAITING_REVIEW},
}
BODIES: dict[str, Any] = {"rollback": {"reason": "Not yet"}, "workspaces/{}": {"selected": True}}
ENTRIES: dict[str, dict[str, Any]] = {
    "release": {"stage": "done", "lifecycle_state": "hidden"},
    "workspaces/{}/retry": {"stage": "failed", "lifecycle_state": "hidden"},
}
"""What an operation needs a workspace to be."""


@pytest.fixture
async def admin(client: Client, space: Space) -> Administrator:
    return await administrator(client, space)


async def made(
    space: Space, status: LegacyImportStatus, stage: str = "ready", **changed: Any
) -> tuple[Id, Id]:
    """A run in a status, without a worker, and its one workspace."""
    run_id, entry_id = uuid4(), uuid4()
    async with space.database.transaction() as work:
        await work.execute(
            insert(legacy_import_run).values(
                id=run_id,
                bundle_object_key="bundles/one.zip",
                bundle_checksum="0" * 64,
                uploaded=False,
                status=status.value,
                mode="dry_run",
                created_by_user_id=space.user_id,
                created_at=work.now,
                updated_at=work.now,
                completed_at=work.now if status in RUN_LIFECYCLE.at_rest else None,
            )
        )
        entry = {
            "id": entry_id,
            "run_id": run_id,
            "position": 0,
            "source_workspace_id": str(uuid4()),
            "source_name": "Old",
            "creates": True,
            "selected": True,
            "stage": stage,
            "lifecycle_state": "live" if status in RUN_LIFECYCLE.at_rest else "pending",
            "rollback_state": "none",
            "created_at": work.now,
            "updated_at": work.now,
            **changed,
        }
        await work.execute(insert(legacy_import_workspace).values(entry))
    return run_id, entry_id


@pytest.mark.parametrize("what", ALLOWED)
async def test_a_move_that_the_table_lacks_is_a_conflict_that_names_the_status(
    admin: Administrator, what: str
) -> None:
    for status in LegacyImportStatus:
        run_id, entry_id = await made(admin.space, status, **ENTRIES.get(what, {}))
        before = await admin.get(str(run_id))
        method = "PATCH" if what == "workspaces/{}" else "POST"
        path = f"{RUNS}/{run_id}/{what.format(entry_id)}"
        answer = await admin.client.request(method, path, json=BODIES.get(what, {}))
        if status in ALLOWED[what]:
            assert answer.status_code == 200, (status, answer.text)
        else:
            assert answer.status_code == 409, (status, answer.text)
            assert f"is {status}," in answer.json()["message"]
            assert await admin.get(str(run_id)) == before


async def test_a_run_that_is_worked_on_says_since_when_it_lacks_a_worker(
    admin: Administrator,
) -> None:
    async with lost_worker(admin.space):
        for status in S:
            run_id, _ = await made(admin.space, status)
            shown = await admin.get(str(run_id))
            assert ("waitingForWorkerSince" in shown) == (status in WORKED_ON), status


async def test_a_cancel_of_a_finished_run_changes_nothing(admin: Administrator) -> None:
    for status in sorted(RUN_LIFECYCLE.at_rest):
        run_id, _ = await made(admin.space, status)
        before = await admin.get(str(run_id))
        assert await admin.decide(str(run_id), "cancel", reason="Too late") == before


async def test_only_a_failed_workspace_is_retried_five_times_in_all(admin: Administrator) -> None:
    for stage, attempt, status in (("done", 1, 409), ("failed", 5, 409), ("failed", 4, 200)):
        run_id, entry_id = await made(
            admin.space, S.FAILED, stage, attempt=attempt, lifecycle_state="hidden"
        )
        await admin.decide(str(run_id), f"workspaces/{entry_id}/retry", status)
    run = await admin.get(str(run_id))
    assert (run["status"], run["workspaces"][0]["attempt"]) == ("importing", 5)
    assert "completedAt" not in run
    assert run["temporalWorkflowId"] == f"legacy-import/{run_id}/retry/1"


async def test_a_run_that_ended_thirty_days_ago_is_not_rolled_back(admin: Administrator) -> None:
    run_id, _ = await made(admin.space, S.COMPLETED, "done")
    async with admin.space.database.transaction() as work:
        moment = work.now_after(-31 * 24 * 3600)
        await work.execute(
            update(legacy_import_run)
            .where(legacy_import_run.c.id == run_id)
            .values(completed_at=moment)
        )
    assert "30 days" in (await admin.decide(str(run_id), "rollback", 409, reason="x"))["message"]
    assert (await admin.get(str(run_id)))["workspaces"][0]["rollbackState"] == "expired"


async def test_rows_hidden_for_thirty_days_are_not_released_in_parts(
    admin: Administrator,
) -> None:
    run_id, _ = await made(admin.space, S.CANCELLED, **ENTRIES["release"])
    for days, status in ((31, 409), (29, 200)):
        async with admin.space.database.transaction() as work:
            await work.execute(
                update(legacy_import_run)
                .where(legacy_import_run.c.id == run_id)
                .values(started_at=work.now_after(-days * 24 * 3600))
            )
        answer = await admin.decide(str(run_id), "release", status)
        assert status == 200 or "removed after 30 days" in answer["message"]


@pytest.mark.long
async def test_of_approve_and_cancel_at_once_exactly_one_wins(admin: Administrator) -> None:
    """G25: a run is cancelled or approved; cancelling an approved one is a decision of its own."""
    firsts: set[bool] = set()
    for number in range(100):
        run_id, _ = await made(admin.space, S.AWAITING_REVIEW)
        calls = {
            "approve": admin.client.post(f"{RUNS}/{run_id}/approve", json={}),
            "cancel": admin.client.post(f"{RUNS}/{run_id}/cancel", json={}),
            "again": admin.client.post(f"{RUNS}/{run_id}/approve", json={}),
        }
        # Who asks first takes turns.
        order = [*calls][number % 3 :] + [*calls][: number % 3]
        answers = await asyncio.gather(*(calls[name] for name in order))
        told = dict(zip(order, answers, strict=True))
        approved, cancelled, again = (told[name] for name in calls)
        firsts.add("approvedAt" in cancelled.json()["data"])
        won = [one for one in (approved, again) if one.status_code == 200]
        assert cancelled.status_code == 200
        run = await admin.get(str(run_id))
        assert run["status"] == "cancelled"
        assert len(won) <= 1
        # Who approved was first, or was refused: no approval follows the cancel.
        assert ("approvedAt" in run) == bool(won)
        assert ("approvedAt" in cancelled.json()["data"]) == bool(won)
    assert firsts == {True, False}, "one of them was always first"


async def test_others_are_denied_and_unknown_ids_are_not_found(
    client: Client, space: Space
) -> None:
    run_id, entry_id = await made(space, S.AWAITING_REVIEW)
    calls = [
        ("GET", RUNS, None),
        ("POST", RUNS, {"bundleObjectKey": "a", "bundleChecksum": "0" * 64}),
        ("GET", f"{RUNS}/{run_id}", None),
        ("POST", f"{RUNS}/{run_id}/approve", {}),
        ("PATCH", f"{RUNS}/{run_id}/workspaces/{entry_id}", {"selected": True}),
    ]
    for method, path, body in calls:
        answer = await client.request(method, path, json=body)
        assert (answer.status_code, answer.json()["error"]) == (403, "denied"), path
    await administrator(client, space)
    for what in ("approve", "cancel", "start", "dry-run"):
        answer = await client.post(f"{RUNS}/{uuid4()}/{what}", json={})
        assert answer.status_code == 404
    other, _ = await made(space, S.AWAITING_REVIEW)
    answer = await client.patch(f"{RUNS}/{other}/workspaces/{entry_id}", json={"selected": True})
    assert answer.status_code == 404
    answer = await client.post(
        f"{RUNS}/{other}/approve", json={"selectedWorkspaceIds": [str(entry_id)]}
    )
    assert answer.status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"bundleObjectKey": "a"},
        {"bundleObjectKey": "../a", "bundleChecksum": "0" * 64},
        {"bundleObjectKey": "/a", "bundleChecksum": "0" * 64},
        {"bundleObjectKey": "a/../../b", "bundleChecksum": "0" * 64},
        {"bundleObjectKey": "a", "bundleChecksum": "0" * 63},
        {"bundleObjectKey": "a", "bundleChecksum": "0" * 64, "mode": "apply"},
        {"bundleObjectKey": "a", "bundleChecksum": "0" * 64, "status": "completed"},
    ],
)
async def test_a_bundle_is_named_as_the_store_names_it(admin: Administrator, body: Any) -> None:
    answer = await admin.client.post(RUNS, json=body)
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_error"), answer.text


async def test_an_upload_is_a_bundle_or_a_form_with_one(admin: Administrator) -> None:
    empty = await admin.client.post(RUNS, content=b"", headers={"Content-Type": "application/zip"})
    assert empty.status_code == 400
    sent = await admin.client.post(RUNS, files={"file": ("old.zip", b"bytes", "application/zip")})
    assert sent.status_code == 201
    run = sent.json()["data"]
    assert run["bundleObjectKey"].startswith("legacy-imports/")
    assert len(run["bundleChecksum"]) == 64
    listed = await admin.client.get(RUNS)
    assert listed.json()["data"]["legacyImports"][0]["id"] == run["id"]
