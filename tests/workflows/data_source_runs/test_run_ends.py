"""Notifications of the end of a run: automations, people, and the log of the workspace."""

import base64
from typing import Any
from uuid import UUID

import pytest

from models.core.access.rules import Role
from tests.support.endpoint import never, reply
from tests.support.engine import graph
from tests.support.items import read
from tests.support.patience import eventually
from tests.support.sources import Source, goods
from tests.support.spaces import Space
from tests.support.triggers import Listening

Json = dict[str, Any]

APPLE = goods(("a", "Apple", 1))


async def listener(source: Source, **config: Any) -> tuple[Listening, Any]:
    """An automation that listens to the data source."""
    space = source.space
    heard = Listening(space.database, space.actor, UUID(source.target), space.keys)
    own = {"at_database": False, "dataSourceId": source.id}
    return heard, await heard.automation("data_source_finished", **own, **config)


async def action_of(source: Source) -> Any:
    """An action that refreshes the data source."""
    config = {"kind": "refresh_data_source", "dataSourceId": source.id}
    body = {"label": "Refresh", "kind": config["kind"], "config": config}
    return read(await source.client.post(f"{source.space.path}/actions", json=body), 201)


async def notices(source: Source, kind: str) -> list[Json]:
    """The owner's notifications of a kind, newest first."""
    found = read(await source.client.get(f"{source.space.path}/notifications"))["notifications"]
    return [one for one in found if one["kind"] == kind]


async def logged(space: Space, source: Source, run_id: str) -> list[str]:
    """What the log says of a run."""
    found = read(await source.client.get(f"{space.path}/events?limit=100"))["events"]
    mine = [one["data"] for one in found if one["type"] == "data_source.run"]
    return [one["status"] for one in mine if one["runId"] == run_id]


@pytest.mark.long
async def test_every_end_of_a_refresh_starts_those_who_listen(source: Any) -> None:
    goods_of = await source()
    heard, any_end = await listener(goods_of, on="any")
    _, failures = await listener(goods_of, on="failed")
    goods_of.answers(APPLE)
    succeeded = await goods_of.refresh()
    goods_of.answers(reply(401))
    failed = await goods_of.refresh()
    goods_of.answers(never)
    run = read(await goods_of.client.post(f"{goods_of.path}/refresh", json={}))

    async def begun() -> bool:
        return bool((await goods_of.run(run["id"]))["status"] == "running")

    await eventually(begun)
    cancelled = read(await goods_of.client.post(f"{goods_of.path}/runs/{run['id']}/cancel"))
    assert cancelled["errorKind"] == "cancelled"
    told = await heard.payloads(any_end)
    assert told == [{"run": one} for one in (succeeded, failed, cancelled)]
    assert await heard.payloads(failures) == [{"run": failed}]
    for one in (succeeded, failed, cancelled):
        ends = ["running", one["status"]]
        assert await logged(goods_of.space, goods_of, one["id"]) == ends
    [notice] = await notices(goods_of, "data_source_failed")
    assert (notice["runId"], notice["body"]) == (failed["id"], failed["error"])
    assert notice["data"] == {"dataSourceId": goods_of.id, "errorKind": "auth"}


@pytest.mark.long
async def test_an_automation_refreshes_in_the_name_of_who_made_the_source(source: Any) -> None:
    goods_of = await source()
    heard, after = await listener(goods_of)
    action = await action_of(goods_of)
    refreshing = graph({"id": "a", "kind": "action", "actionId": action["id"], "config": {}})
    first = await heard.automation("record_created", refreshing)
    goods_of.answers(APPLE)
    # The automation is not started by hand, but by a record.
    await heard.create("A record")
    await heard.quiet()
    [began] = await heard.runs(first)
    [run] = await heard.runs(after)
    shown = run.trigger_payload["run"]
    assert (shown["status"], shown["trigger"]) == ("succeeded", "automation"), shown
    assert shown["actorUserId"] == str(goods_of.space.user_id)
    assert run.chain == [began.id], "a loop of refreshes and automations comes to an end"
    assert shown["stats"]["rowsInserted"] == 1


@pytest.mark.long
async def test_refreshed_records_start_those_who_ask_for_them(source: Any) -> None:
    goods_of = await source(removalGuardPercent=100)
    space = goods_of.space
    heard = Listening(space.database, space.actor, UUID(goods_of.target), space.keys)
    kinds = ("record_created", "record_updated", "record_deleted")
    listening = {kind: await heard.automation(kind, includeSystemChanges=True) for kind in kinds}
    reserved = [await heard.automation(kind) for kind in kinds]

    async def told() -> dict[str, list[Json]]:
        return {kind: await heard.payloads(one) for kind, one in listening.items()}

    goods_of.answers(goods(("a", "Apple", 1), ("b", "Bread", 2)))
    await goods_of.refresh()
    first = await told()
    assert {kind: len(found) for kind, found in first.items()} == dict(
        zip(kinds, (2, 0, 0), strict=True)
    )
    records = await goods_of.records()
    apple = next(one for one in first["record_created"] if one["record"]["title"] == "Apple")
    assert (apple["record"]["data"], apple["before"]) == (records["a"]["data"], None)

    goods_of.answers(goods(("a", "Apricot", 3)))
    run = await goods_of.refresh()
    updated = (await told())["record_updated"]
    by_key = {one["record"]["data"]["code"]: one for one in updated}
    apricot, bread = by_key["a"], by_key["b"]
    assert (apricot["changedKeys"], apricot["before"]["title"]) == (["price", "title"], "Apple")
    assert apricot["before"]["data"] == apple["record"]["data"]
    assert apricot["before"]["updatedAt"] == apple["record"]["updatedAt"]
    assert (bread["before"]["archived"], bread["record"]["archived"]) == (False, True)
    user = str(space.user_id)
    assert apricot["actor"] == {"type": "system", "userId": user, "runId": run["id"]}

    reverted = await goods_of.client.post(f"{goods_of.path}/runs/{run['id']}/revert")
    assert reverted.status_code == 200, reverted.text
    back = [one["record"]["title"] for one in (await told())["record_updated"][2:]]
    assert sorted(back) == ["Apple", "Bread"]
    assert [await heard.count(one) for one in reserved] == [0, 0, 0]


@pytest.mark.long
async def test_runs_of_all_requesters_are_newest_first(source: Any) -> None:
    goods_of = await source()
    goods_of.answers(APPLE)
    action = await action_of(goods_of)
    path = f"{goods_of.space.path}/actions/{action['id']}/run"
    asked = [read(await goods_of.client.post(path, json={}))["result"]["runId"] for _ in range(3)]
    asked.append((await goods_of.refresh())["id"])
    listed = read(await goods_of.client.get(f"{goods_of.path}/runs"))
    assert [one["id"] for one in listed] == asked[::-1]
    assert read(await goods_of.client.get(goods_of.path))["latestRun"] == listed[0]
    revert = await goods_of.client.post(f"{goods_of.path}/runs/{asked[0]}/revert")
    assert revert.status_code == 409, "later runs have refreshed it"


async def test_an_import_notifies_who_asked_for_it(source: Any) -> None:
    goods_of = await source()
    space, client = goods_of.space, goods_of.client
    path = f"{space.path}/data-sources/import-spreadsheet"
    content = base64.b64encode(b"name,price\na,1\nb,2\n").decode()
    body = {"label": "Prices", "kind": "inline", "format": "csv", "content": content}
    made = read(await client.post(path, json=body))
    refused = await client.post(path, json={**body, "format": "xlsx"})
    assert refused.status_code == 400
    failed, done = await notices(goods_of, "import_finished")
    assert (done["title"], done["itemId"]) == ("“Prices” was imported", made["itemId"])
    assert done["data"] == {
        "importId": made["importId"],
        "status": "succeeded",
        "databaseId": made["databaseId"],
    }
    assert (failed["body"], failed["data"]["status"]) == (refused.json()["message"], "failed")
    assert await logged(space, goods_of, made["importId"]) == ["running", "succeeded"]
    _, token = await space.member(Role.ADMIN)
    other = read(await client.with_token(token).get(f"{space.path}/events"))["events"]
    assert not [one for one in other if one["type"] == "data_source.run"], "it is its maker's own"
