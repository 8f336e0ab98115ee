"""Change sets, applied by the job that production workers execute."""

import asyncio
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import delete, select, update
from temporalio.testing import ActivityEnvironment

from activities.maintenance.sweeps import Expired, RetentionActivities
from models.core.access.rules import Principal, PrincipalType, Role, Scope
from models.people.workspaces import workspace_member
from models.workspace.changes.commands import accept_application
from models.workspace.changes.queries import change_set
from models.workspace.changes.shapes import ApplyChanges
from runtime.ids import new_id
from runtime.object_store import ObjectStore
from tests.contract.watching import checksum
from tests.support.client import Client
from tests.support.engine import PERIODS, Engine, graph, node
from tests.support.items import children, make, read, refused, titles
from tests.support.patience import eventually
from tests.support.spaces import MakeSpace, Space

pytestmark = [pytest.mark.usefixtures("engine"), pytest.mark.takes(seconds=20)]

Json = dict[str, Any]


def page(title: str, **more: Any) -> Json:
    return {"kind": "create_item", "input": {"kind": "page", "title": title, **more}}


async def propose(client: Client, space: Space, *operations: Json) -> Json:
    body = {"operations": list(operations)}
    made: Json = read(await client.post(f"{space.path}/changes", json=body), 201)
    return made


async def apply(client: Client, space: Space, change: Json, **body: Any) -> Json:
    path = f"{space.path}/ai/runs/{change['id']}/apply"
    result: Json = read(await client.post(path, json=body))
    return result


def _session(user_id: UUID) -> Principal:
    return Principal(type=PrincipalType.SESSION, id=user_id, user_id=user_id)


def statuses(result: Json) -> list[str]:
    return [one["status"] for one in result["results"]]


def counts(result: Json) -> tuple[int, int, int]:
    return result["appliedCount"], result["skippedCount"], result["failedCount"]


async def test_operations_build_on_each_other(client: Client, space: Space, engine: Engine) -> None:
    assert engine.database is space.database
    change = await propose(
        client,
        space,
        {"kind": "create_item", "ref": "home", "input": {"kind": "folder", "title": "Home"}},
        {
            "kind": "create_database",
            "ref": "leads",
            "input": {"label": "Leads", "parentItemId": {"ref": "home"}},
        },
        {
            "kind": "create_field",
            "input": {"databaseId": {"ref": "leads"}, "label": "City", "kind": "text"},
        },
        {
            "kind": "create_records",
            "input": {
                "databaseId": {"ref": "leads"},
                "records": [{"ref": "acme", "title": "Acme"}, {"title": "Other"}],
            },
        },
        {
            "kind": "update_record",
            "input": {"recordId": {"ref": "acme"}, "data": {"city": "Bern"}},
        },
    )
    assert (change["status"], change["source"]) == ("planned", "hand")
    assert {one["stake"] for one in change["operations"]} == {"never_ask"}
    result = await apply(client, space, change)
    assert (result["runId"], result["status"]) == (change["id"], "applied")
    assert counts(result) == (5, 0, 0)
    (home,) = await children(client)
    (database,) = await children(client, home)
    path = f"/v1/databases/{database['targetId']}/records"
    records = read(await client.get(path))["records"]
    assert {one["title"]: one["data"].get("city") for one in records} == {
        "Acme": "Bern",
        "Other": None,
    }
    assert result["results"][1]["subjectId"] == database["targetId"]


async def test_nothing_is_saved_that_calls_a_private_host(client: Client, space: Space) -> None:
    request = {"kind": "http_request", "url": "http://10.0.0.1/"}
    calls = graph(node("call", "http_request", url="http://10.0.0.1/"))
    change = await propose(
        client,
        space,
        {"kind": "create_automation", "ref": "calls", "input": {"label": "Call", "graph": calls}},
        {"kind": "publish_automation", "input": {"automationId": {"ref": "calls"}}},
        {
            "kind": "create_action",
            "input": {"label": "Call", "kind": "http_request", "config": request},
        },
    )
    result = await apply(client, space, change, approveAll=True, approvedIndexes=[1])
    assert statuses(result) == ["applied", "failed", "failed"]
    assert all("private address" in one["error"] for one in result["results"][1:])


@pytest.mark.long
async def test_destructive_operations_are_approved_first(client: Client, space: Space) -> None:
    old = (await make(client, "page", "Old"))["item"]
    change = await propose(
        client,
        space,
        page("New"),
        {"kind": "update_item", "input": {"itemId": old["id"], "title": "Renamed"}},
        {"kind": "delete_item", "input": {"itemId": old["id"]}},
    )
    before = await checksum(space.database, str(space.id))
    tried = await apply(client, space, change, approveAll=True, approvedIndexes=[2], dryRun=True)
    assert (tried["status"], statuses(tried)) == ("planned", ["pending"] * 3)
    tried = await apply(client, space, change, approveAll=True, approvedIndexes=[], dryRun=True)
    assert (tried["status"], statuses(tried)) == ("planned", ["pending", "pending", "skipped"])
    assert await checksum(space.database, str(space.id)) == before

    first = await apply(client, space, change)
    assert (first["status"], statuses(first)) == (
        "awaiting_approval",
        ["applied", "skipped", "skipped"],
    )
    assert [one["needsApproval"] for one in first["results"]] == [False, True, True]
    assert await titles(client) == ["Old", "New"]

    second = await apply(client, space, change, approveAll=True)
    assert (second["status"], counts(second)) == ("awaiting_approval", (2, 1, 0))
    assert await titles(client) == ["Renamed", "New"]

    third = await apply(client, space, change, approvedIndexes=[2, 2, 0])
    assert (third["status"], counts(third)) == ("applied", (3, 0, 0))
    assert await titles(client) == ["New"]
    shown = read(await client.get(f"{space.path}/changes/{change['id']}"))
    assert (shown["status"], shown["appliedCount"]) == ("applied", 3)


async def test_a_failed_operation_leaves_nothing_and_stops_its_dependents(
    client: Client, space: Space
) -> None:
    wrong = {"label": "X", "parentItemId": str(uuid4())}
    change = await propose(
        client,
        space,
        {"kind": "create_database", "ref": "gone", "input": wrong},
        {"kind": "create_record", "input": {"databaseId": {"ref": "gone"}, "title": "One"}},
        page("Kept"),
    )
    tried = await apply(client, space, change, dryRun=True)
    assert statuses(tried) == ["failed", "failed", "pending"]
    result = await apply(client, space, change)
    assert (result["status"], counts(result)) == ("partially_applied", (1, 0, 2))
    assert result["results"][0]["error"].startswith("The item does not exist")
    assert await titles(client) == ["Kept"]


async def test_fifty_at_once_apply_it_once(client: Client, space: Space) -> None:
    change = await propose(client, space, *(page(f"Page {place}") for place in range(5)))
    path = f"{space.path}/changes/{change['id']}/apply"
    answers = await asyncio.gather(*(client.post(path, json={}) for _ in range(50)))
    codes = Counter(answer.status_code for answer in answers)
    assert codes == {200: 1, 409: 49}
    errors = {answer.json()["error"] for answer in answers if answer.status_code == 409}
    assert errors <= {"in_progress", "conflict"}
    assert sorted(await titles(client)) == [f"Page {place}" for place in range(5)]


async def test_the_one_who_applies_has_their_own_rights(client: Client, space: Space) -> None:
    database = (await make(client, "database", "Goods"))["target"]
    record = {"databaseId": database["id"], "title": "Tea"}
    folder = {"kind": "create_item", "input": {"kind": "folder", "title": "Folder"}}
    change = await propose(client, space, folder, {"kind": "create_record", "input": record})
    needed = [Scope.WORKSPACE_CHANGES_APPLY, Scope.RESOURCES_WRITE]
    limited = client.with_token(await space.key(needed))
    path = f"{space.path}/changes/{change['id']}/apply"
    result = read(await limited.post(path, json={}))
    assert statuses(result) == ["applied", "failed"]
    assert result["results"][1]["error"] == "The credential lacks the scope records:write."


async def test_a_change_set_is_seen_by_its_author_and_those_who_manage(
    client: Client, space: Space, workspace: MakeSpace
) -> None:
    _, token = await space.member(Role.EDITOR)
    author = client.with_token(token)
    change = await propose(author, space, page("Page"))
    path = f"{space.path}/changes/{change['id']}"
    assert read(await client.get(path))["id"] == change["id"]
    assert refused(await author.post(f"{path}/apply", json={})) == (403, "denied")
    _, other = await space.member(Role.EDITOR)
    assert refused(await client.with_token(other).get(path)) == (404, "not_found")
    assert read(await client.with_token(other).get(f"{space.path}/changes"))["changes"] == []
    foreign = await workspace()
    elsewhere = f"{foreign.path}/changes/{change['id']}"
    stranger = client.with_token(foreign.token)
    assert refused(await stranger.get(elsewhere)) == (404, "not_found")
    assert refused(await stranger.post(f"{elsewhere}/apply", json={})) == (404, "not_found")


async def test_an_application_that_cannot_continue_lets_the_rest_wait_again(
    client: Client, space: Space
) -> None:
    change = await propose(client, space, page("Page"), page("Other"))
    user_id, _ = await space.member(Role.ADMIN)
    async with space.database.transaction() as work:
        leaving = replace(space.actor, principal=_session(user_id))
        body = ApplyChanges.model_validate({})
        await accept_application(work, leaving, UUID(change["id"]), new_id(), body)
        gone = (
            workspace_member.c.workspace_id == space.id,
            workspace_member.c.user_id == user_id,
        )
        await work.execute(delete(workspace_member).where(*gone))
    path = f"{space.path}/changes/{change['id']}"

    async def waits_again() -> bool:
        return bool(read(await client.get(path))["status"] == "awaiting_approval")

    await eventually(waits_again, "a change set that may be applied again")
    shown = read(await client.get(path))
    assert (statuses(shown), await titles(client)) == (["pending", "pending"], [])
    assert (await apply(client, space, change))["status"] == "applied"
    assert await titles(client) == ["Page", "Other"]


@pytest.mark.long
async def test_two_hundred_operations_are_tried_in_one_request(
    client: Client, space: Space
) -> None:
    given = [page(f"Page {place}") for place in range(200)]
    change = await propose(client, space, *given)
    tried = await apply(client, space, change, dryRun=True)
    assert (tried["status"], set(statuses(tried))) == ("planned", {"pending"})
    assert (len(tried["results"]), await titles(client)) == (200, [])


async def test_a_closed_change_set_stays_closed(client: Client, space: Space) -> None:
    change = await propose(client, space, page("Page"))
    run = f"{space.path}/ai/runs/{change['id']}"
    rejected = read(await client.post(f"{run}/reject", json={"reason": "No."}))
    assert (rejected["status"], rejected["rejectedReason"]) == ("rejected", "No.")
    assert refused(await client.post(f"{run}/apply", json={})) == (409, "conflict")
    assert refused(await client.post(f"{run}/reject", json={})) == (409, "conflict")
    assert await titles(client) == []


async def test_an_old_change_set_expires(client: Client, space: Space) -> None:
    change = await propose(client, space, page("Page"))
    run = f"{space.path}/ai/runs/{change['id']}"
    async with space.database.transaction() as work:
        old = {"expires_at": work.now - timedelta(seconds=1)}
        await work.execute(update(change_set).where(change_set.c.id == change["id"]).values(old))
    assert read(await client.get(run))["status"] == "expired"
    assert refused(await client.post(f"{run}/apply", json={})) == (409, "conflict")
    async with space.database.transaction() as work:
        stored = select(change_set.c.status).where(change_set.c.id == change["id"])
        assert await work.scalar(stored) == "planned"
    sweep = RetentionActivities(space.database, ObjectStore("memory://"), PERIODS)
    while await ActivityEnvironment().run(sweep.purge, Expired.JOBS):
        pass
    async with space.database.reading() as work:
        assert await work.scalar(stored) == "expired"
    assert read(await client.get(run))["status"] == "expired"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"instruction": "Add a page", "operations": [page("Page")]},
        {"instruction": "no"},
        {"operations": []},
        {"operations": [page("Page")] * 201},
        {"operations": [{"kind": "drop_table", "input": {}}]},
        {"operations": [{"kind": "create_item", "input": {"kind": "page"}}]},
        {"operations": [page("Page", parentItemId={"ref": "later"})]},
        {"operations": [{"kind": "create_item"}]},
    ],
)
async def test_bad_runs_are_refused(client: Client, space: Space, body: Json) -> None:
    answer = await client.post(f"{space.path}/ai/runs", json=body)
    assert refused(answer) == (400, "validation_error")


async def test_bad_approvals_are_refused(client: Client, space: Space) -> None:
    change = await propose(client, space, page("Page"))
    path = f"{space.path}/changes/{change['id']}/apply"
    for body in ({"approvedIndexes": [1]}, {"approvedIndexes": [-1]}, {"approveAll": "yes"}):
        assert refused(await client.post(path, json=body)) == (400, "validation_error")
    unknown = f"{space.path}/changes/{uuid4()}/apply"
    assert refused(await client.post(unknown, json={})) == (404, "not_found")


async def test_an_instruction_is_planned_and_applied(client: Client, space: Space) -> None:
    body = {"instruction": "Add a database for suppliers"}
    run = read(await client.post(f"{space.path}/ai/runs", json=body), 201)
    assert (run["source"], run["instruction"]) == ("rules", body["instruction"])
    assert await titles(client) == []
    assert (await apply(client, space, run))["status"] == "applied"
    assert await titles(client) == ["Suppliers"]
    assert [one["id"] for one in read(await client.get(f"{space.path}/ai/runs"))["runs"]] == [
        run["id"]
    ]
