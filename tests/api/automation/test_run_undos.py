"""Undoing a run over HTTP: what goes back, what does not and why, and undoing the undo."""

from typing import Any

import pytest

from tests.support import related
from tests.support.client import Client
from tests.support.spaces import Space
from tests.support.undos import (
    UndoneAutomation,
    automation_to_undo,
    created,
    deleted,
    updated,
)
from tests.support.written_runs import node

Json = dict[str, Any]


@pytest.fixture
async def automation(client: Client, space: Space) -> UndoneAutomation:
    return await automation_to_undo(client, space)


@pytest.fixture
async def tasks(client: Client, space: Space) -> str:
    return await related.make_database(
        client,
        space,
        "Tasks",
        {"label": "State", "kind": "text"},
        {"label": "Points", "kind": "number"},
    )


async def test_what_a_run_wrote_goes_back(
    client: Client, automation: UndoneAutomation, tasks: str
) -> None:
    changed = await related.add(client, tasks, "one", data={"state": "open", "points": 1})
    removed = await related.add(client, tasks, "two")
    run = await automation.run(
        updated(changed, data={"state": "closed", "points": None}),
        updated(changed, title="uno"),
        deleted(removed),
        nodes=[node("mail", 1, node_kind="send_email"), node("call", 2, node_kind="http_request")],
    )
    (new,) = await automation.write(run, created(tasks, title="three"))
    preview = await automation.undo(run, preview=True)
    assert (await related.get(client, changed))["title"] == "uno", "a preview writes nothing"
    undo = await automation.undo(run)
    for one in (preview, undo):
        assert (one["records"], one["reverted"], one["conflictCount"]) == (3, 3, 0)
        assert [entry["nodeId"] for entry in one["outside"]] == ["call", "mail"]
        by_id = {entry["recordId"]: entry for entry in one["revertedRecords"]}
        assert by_id[changed]["before"] == {"title": "uno", "state": "closed"}
        assert by_id[changed]["after"] == {"title": "one", "state": "open", "points": 1}
        assert by_id[removed]["changes"] == ["restored"]
        assert by_id[new]["changes"] == ["deleted"]
    assert (preview["status"], undo["status"]) == ("preview", "completed")
    record = await related.get(client, changed)
    assert (record["title"], record["data"]["state"], record["data"]["points"]) == (
        "one",
        "open",
        1,
    )
    assert (await related.get(client, removed))["title"] == "two"
    assert (await client.get(f"/v1/records/{new}")).status_code == 404
