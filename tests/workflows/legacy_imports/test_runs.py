"""Legacy imports from the upload to the workspace that people see, and back (decisions C14)."""

import pytest

from tests.support.legacy_imports import Administrator, folders, told, whole

pytestmark = pytest.mark.takes(seconds=20)


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
    assert entry["verification"]["outcome"] == "equal"
    run = await admin.decide(run["id"], "rollback", reason="Not yet.")
    assert run["status"] == "rolling_back"
    run = await admin.settled(run["id"])
    assert run["status"] == "rolled_back", told(run)
