"""Legacy imports that are cancelled, and what was finished before."""

from collections.abc import Sequence
from unittest.mock import patch

import pytest

from models.workspace.legacy_imports.stages import Held, Sample, verify_counts
from runtime.database import UnitOfWork
from runtime.errors import UnavailableError
from tests.support.legacy_imports import Administrator, folders, left_of, owners, told, whole
from tests.support.patience import eventually

pytestmark = [pytest.mark.takes(seconds=30), pytest.mark.long]


async def test_a_cancel_rolls_back_unfinished_workspaces(admin: Administrator) -> None:
    run = await admin.reviewed(whole({"Old": folders(3)}))
    run = await admin.decide(run["id"], "cancel", reason="Wrong one.")
    assert (run["status"], run["cancellationReason"]) == ("cancelled", "Wrong one.")
    assert run["canceledByUserId"] == str(admin.space.user_id)
    assert await admin.decide(run["id"], "cancel") == run
    refused = await admin.decide(run["id"], "approve", 409)
    assert "is cancelled" in refused["message"]

    run = await admin.reviewed(whole({"Old": folders(3)}))
    await admin.decide(run["id"], "approve")
    await admin.decide(run["id"], "start")
    run = await admin.decide(run["id"], "cancel")
    assert run["status"] == "cancelling"
    run = await admin.settled(run["id"])
    assert run["status"] == "cancelled", told(run)
    (entry,) = run["workspaces"]
    assert entry["stage"] == "cancelled"
    if "targetWorkspaceId" in entry:
        assert await left_of(admin, entry) == {}


async def test_workspaces_finished_before_a_cancel_are_released(admin: Administrator) -> None:
    async def refuse(work: UnitOfWork, held: Held, samples: Sequence[Sample]) -> None:
        if held.entry.source_name == "Slow":
            raise UnavailableError("Later.")
        await verify_counts(work, held, samples)

    run = await admin.reviewed(whole({"Quick": folders(2), "Slow": folders(2)}))
    await admin.decide(run["id"], "release", 409)
    await admin.decide(run["id"], "approve")

    async def is_done() -> bool:
        return bool((await admin.get(run["id"]))["workspaces"][0]["stage"] == "done")

    with patch("activities.legacy_imports.stages.verify_counts", refuse):
        await admin.decide(run["id"], "start")
        await eventually(is_done, "the first workspace")
        await admin.decide(run["id"], "cancel")
        run = await admin.settled(run["id"])
    assert run["status"] == "cancelled", told(run)
    quick, slow = run["workspaces"]
    assert (quick["stage"], quick["lifecycleState"]) == ("done", "hidden")
    assert (slow["stage"], slow["lifecycleState"]) == ("cancelled", "removed")
    hidden = f"/v1/workspaces/{quick['targetWorkspaceId']}"
    assert (await admin.client.get(hidden)).status_code == 404

    run = await admin.decide(run["id"], "release")
    assert (run["status"], run["targetCounts"]) == ("cancelled", {"item": 2})
    assert [one["lifecycleState"] for one in run["workspaces"]] == ["live", "removed"]
    assert await owners(admin, quick) == [admin.space.user_id]
    again = await admin.decide(run["id"], "release", 409)
    assert "no finished hidden workspaces" in again["message"]

    await admin.decide(run["id"], "rollback", reason="Not yet.")
    assert (await admin.settled(run["id"]))["status"] == "rolled_back"
    assert await left_of(admin, quick) == {}
