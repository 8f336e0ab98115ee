"""What ran before a field was renamed: its undo, its history, its replay and its retry."""

from typing import Any
from uuid import UUID

import pytest

from models.automation.inbox.rules import EventOutcome, EventSource, Judgement, Received
from models.automation.inbox.store import keep
from runtime.ids import new_id
from tests.support.automations import publish, read
from tests.support.client import Client
from tests.support.spaces import Space
from tests.support.undos import automation_to_undo, created, updated

Json = dict[str, Any]


async def make_database(client: Client, space: Space) -> Json:
    body = {"label": "Orders", "fields": [{"label": "Price", "kind": "number"}]}
    made: Json = read(await client.post(f"{space.path}/databases", json=body), 201)
    return made


async def rename(client: Client, made: Json, label: str, key: str) -> None:
    path = f"/v1/databases/{made['id']}/fields"
    (found,) = (one for one in made["fields"] if one["label"] == label)
    read(await client.post(f"{path}/{found['id']}/rename", json={"key": key, "rewrite": True}))


async def data_of(client: Client, record_id: str) -> Json:
    data: Json = read(await client.get(f"/v1/records/{record_id}"))["data"]
    return data


@pytest.mark.parametrize("reused", [False, True])
async def test_a_run_is_undone_after_a_field_was_renamed(
    client: Client, space: Space, reused: bool
) -> None:
    """`reused` gives another field the key that the first one had."""
    made = await make_database(client, space)
    undoing = await automation_to_undo(client, space)
    path = f"/v1/databases/{made['id']}"
    body = {"data": {"price": 1}}
    record_id = read(await client.post(f"{path}/records", json=body), 201)["id"]
    first = await undoing.run(updated(record_id, data={"price": 5}))
    await rename(client, made, "Price", "cost")
    second = await undoing.run(updated(record_id, data={"cost": 9}))
    await rename(client, made, "Price", "amount")
    if reused:
        other = {"label": "New", "key": "price", "kind": "number"}
        read(await client.post(f"{path}/fields", json=other), 201)
    for run_id, value in ((second, 5), (first, 1)):
        undo = await undoing.undo(run_id)
        assert undo["conflicts"] == []
        (reverted,) = undo["revertedRecords"]
        assert reverted["after"] == {"amount": value}
        assert (await data_of(client, record_id))["amount"] == value
    history = read(await client.get(f"/v1/records/{record_id}/history"))["changes"]
    assert [one["after"].get("amount") for one in history] == [1, 5, 9, 5, 1]


async def test_a_creation_is_undone_unless_the_renamed_field_was_changed(
    client: Client, space: Space
) -> None:
    made = await make_database(client, space)
    undoing = await automation_to_undo(client, space)
    run_id = await undoing.run(created(made["id"], data={"price": 5}))
    (found,) = read(await client.get(f"/v1/databases/{made['id']}/records"))["records"]
    await rename(client, made, "Price", "cost")
    assert (await undoing.undo(run_id))["reverted"] == 1
    assert (await client.get(f"/v1/records/{found['id']}")).status_code == 404


NODE = {
    "id": "note",
    "kind": "transform",
    "config": {"output": {"price": {"type": "trigger", "value": "record.data.price"}}},
}


async def test_events_and_runs_are_run_again_by_the_new_key(client: Client, space: Space) -> None:
    made = await make_database(client, space)
    automation = await publish(
        client,
        space,
        triggerConfig={"kind": "record_updated", "databaseId": made["id"], "fieldKeys": ["price"]},
        graph={"nodes": [NODE]},
    )
    path = f"{space.path}/automations/{automation['id']}"
    record = {"id": str(new_id()), "databaseId": made["id"], "data": {"price": 7}}
    payload = {"record": record, "before": record, "changedKeys": ["price"]}
    run = read(await client.post(f"{path}/run", json={"triggerPayload": payload}))
    read(await client.post(f"{path}/runs/{run['id']}/cancel"))
    async with space.database.transaction() as work:
        source = EventSource.FORM
        event = Received(new_id(), space.id, source, UUID(made["id"]), payload)
        await keep(work, event, {UUID(automation["id"]): Judgement(EventOutcome.SKIPPED)})
    await rename(client, made, "Price", "cost")
    body = {"automationId": automation["id"]}
    events = f"{space.path}/trigger-events/{event.id}/replay"
    replayed = read(await client.post(events, json=body), 201)
    body = {"from": "start", "version": "published"}
    retried = read(await client.post(f"{path}/runs/{run['id']}/retry", json=body))
    for run_id in (replayed["runId"], retried["id"]):
        again = read(await client.get(f"{path}/runs/{run_id}"))["triggerPayload"]
        assert again["record"]["data"] == {"cost": 7}
        assert again["before"]["data"] == {"cost": 7}
        assert again["changedKeys"] == ["cost"]
