"""Undoing a run over HTTP: what goes back, what does not and why, and undoing the undo."""

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from fastapi import FastAPI
from sqlalchemy import select, update

from models.automation.automation_runs.calls import called_run_id
from models.content.items.joins import item
from models.core.access.rules import Role, Scope
from models.data.records.commands import purge_records
from models.messages.events.store import trigger_event
from runtime.ids import new_id
from tests.support import related
from tests.support.automations import publish, read, refusal
from tests.support.client import Client, Contract
from tests.support.spaces import Space
from tests.support.undos import UndoneAutomation, automation_to_undo, created, deleted, updated
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


async def test_a_run_is_undone(client: Client, automation: UndoneAutomation, tasks: str) -> None:
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


def conflicts(undo: Json) -> dict[tuple[str | None, str | None], str]:
    """The reasons by record and field."""
    return {(one.get("recordId"), one.get("fieldKey")): one["reason"] for one in undo["conflicts"]}


async def test_a_field_that_was_changed_since_is_a_conflict_and_the_others_are_reverted(
    client: Client, automation: UndoneAutomation, tasks: str, space: Space
) -> None:
    record = await related.add(client, tasks, "one", data={"state": "open", "points": 1})
    run = await automation.run(updated(record, title="uno", data={"state": "closed", "points": 2}))
    await related.change(client, record, data={"state": "mine"})
    undo = await automation.undo(run)
    assert conflicts(undo) == {(record, "state"): "changed_since"}
    (conflict,) = undo["conflicts"]
    assert (conflict["changedByUserId"], conflict["title"]) == (str(space.user_id), "uno")
    assert (await related.get(client, record))["data"] == {
        "title": "one",
        "state": "mine",
        "points": 1,
    }


async def test_a_value_that_someone_wrote_again_stays(
    client: Client, automation: UndoneAutomation, tasks: str
) -> None:
    record = await related.add(client, tasks, "one", data={"state": "open"})
    run = await automation.run(updated(record, data={"state": "closed"}))
    await related.change(client, record, data={"state": "mine"})
    await related.change(client, record, data={"state": "closed"})
    assert conflicts(await automation.undo(run)) == {(record, "state"): "changed_since"}


async def test_a_run_that_wrote_around_another_gives_back_what_was_between(
    client: Client, automation: UndoneAutomation, tasks: str
) -> None:
    record = await related.add(client, tasks, "one", data={"state": "a"})
    run = await automation.run(updated(record, data={"state": "b"}))
    await related.change(client, record, data={"state": "c"})
    await automation.write(run, updated(record, data={"state": "d"}))
    await automation.undo(run)
    assert (await related.get(client, record))["data"]["state"] == "c"


async def test_records_that_others_work_on_are_conflicts(
    client: Client, automation: UndoneAutomation, tasks: str
) -> None:
    record, removed = await related.add(client, tasks, "one"), await related.add(client, tasks, "2")
    run = await automation.run(updated(record, title="uno"), updated(removed, title="dos"))
    new, quiet = await automation.write(run, created(tasks), created(tasks))
    await related.change(client, new, title="mine now")
    await client.delete(f"/v1/records/{removed}")
    undo = await automation.undo(run)
    assert conflicts(undo) == {(new, None): "changed_since", (removed, None): "in_trash"}
    assert undo["reverted"] == 2
    assert (await related.get(client, new))["title"] == "mine now"
    assert (await client.get(f"/v1/records/{quiet}")).status_code == 404


async def test_a_field_that_was_deleted_is_a_conflict(
    client: Client, automation: UndoneAutomation, tasks: str, space: Space
) -> None:
    kept = await related.add_field(client, tasks, "Kept", "text")
    record = await related.add(client, tasks, "one", data={"state": "a", "points": 1, "kept": "x"})
    run = await automation.run(updated(record, data={"state": "b", "points": 2, "kept": "y"}))
    fields = {
        field["key"]: field["id"]
        for field in (await client.get(f"{space.path}/databases/{tasks}")).json()["data"]["fields"]
    }
    removal = await client.delete(f"/v1/databases/{tasks}/fields/{fields['state']}")
    assert removal.status_code == 200, removal.text
    undo = await automation.undo(run)
    assert conflicts(undo) == {(record, "state"): "field_deleted"}
    assert (await related.get(client, record))["data"][kept["key"]] == "x"


async def test_values_too_long_to_keep_are_conflicts(
    client: Client, automation: UndoneAutomation, tasks: str
) -> None:
    long = await related.add_field(client, tasks, "Text", "long_text")
    record = await related.add(client, tasks, "one", data={long["key"]: "x" * 20_000})
    run = await automation.run(updated(record, title="uno", data={long["key"]: "y"}))
    undo = await automation.undo(run)
    assert conflicts(undo) == {(record, long["key"]): "not_kept"}
    assert (await related.get(client, record))["title"] == "one"


async def test_an_earlier_value_that_is_no_longer_valid_is_refused_alone(
    client: Client, automation: UndoneAutomation, tasks: str
) -> None:
    options = [{"key": key, "name": key} for key in ("low", "high")]
    level = await related.add_field(client, tasks, "Level", "select", options=options)
    records = [await related.add(client, tasks, "one", data={"level": "low"}) for _ in range(5)]
    run = await automation.run(
        *(updated(record, title="uno", data={"level": "high"}) for record in records)
    )
    kept = [one for one in level["options"] if one["key"] == "high"]
    settings = {"options": kept, "settings": {"allowCreate": False}}
    changed = await client.patch(f"/v1/databases/{tasks}/fields/{level['id']}", json=settings)
    assert changed.status_code == 200, changed.text
    undo = await automation.undo(run)
    assert conflicts(undo) == {(record, "level"): "refused" for record in records}
    assert undo["reverted"] == 5
    assert [(await related.get(client, one))["title"] for one in records] == ["one"] * 5


async def test_links_are_reverted_with_the_records_they_lead_to(
    client: Client, space: Space, automation: UndoneAutomation, tasks: str
) -> None:
    people = await related.make_database(client, space, "People")
    who = (await related.relate(client, tasks, people, "Who"))["key"]
    ann, bob = await related.add(client, people, "Ann"), await related.add(client, people, "Bob")
    task = await related.add(client, tasks, "one", relations={who: [bob, ann]})
    run = await automation.run(updated(task, relations={who: [ann]}), deleted(bob))
    (cleo,) = await automation.write(run, created(people, title="Cleo"))
    await automation.write(run, updated(task, relations={who: [cleo]}))
    undo = await automation.undo(run)
    assert conflicts(undo) == {}
    assert await related.linked(client, task, who) == [bob, ann]
    assert (await client.get(f"/v1/records/{cleo}")).status_code == 404


async def test_an_undo_is_undone_and_the_run_undone_again(
    client: Client, automation: UndoneAutomation, tasks: str
) -> None:
    changed, removed = await related.add(client, tasks, "1"), await related.add(client, tasks, "2")
    run = await automation.run(updated(changed, title="uno"), deleted(removed))
    (new,) = await automation.write(run, created(tasks, title="3"))

    async def state() -> list[str | None]:
        answers = [await client.get(f"/v1/records/{one}") for one in (changed, removed, new)]
        return [one.json()["data"]["title"] if one.status_code == 200 else None for one in answers]

    written, before = ["uno", None, "3"], ["1", "2", None]
    assert await state() == written
    undo = await automation.undo(run)
    assert await state() == before
    again = await automation.undo(run)
    assert (again["reverted"], again["conflictCount"]) == (0, 0)
    redo = await automation.undo(run, undoId=undo["id"])
    assert (redo["undoes"], redo["reverted"], redo["conflictCount"]) == (undo["id"], 3, 0)
    assert await state() == written
    await automation.undo(run, undoId=redo["id"])
    assert await state() == before
    await automation.undo(run, undoId=undo["id"])
    last = await automation.undo(run)
    assert (last["reverted"], last["conflictCount"]) == (3, 0)
    assert await state() == before
    listed = read(await client.get(f"{automation.path(run)}/undos"))["runUndos"]
    assert listed[0]["id"] == last["id"]
    assert len(listed) == 6
    shown = read(await client.get(f"{automation.path(run)}/undos/{undo['id']}"))
    assert shown["reverted"] == 3


async def test_the_history_of_a_record_names_the_undo(
    client: Client, automation: UndoneAutomation, tasks: str, space: Space
) -> None:
    record = await related.add(client, tasks, "one")
    run = await automation.run(updated(record, title="uno"))
    undo = await automation.undo(run)
    history = read(await client.get(f"/v1/records/{record}/history"))["changes"]
    assert [(one.get("runId"), one.get("undoId")) for one in history] == [
        (None, undo["id"]),
        (run, None),
        (None, None),
    ]
    assert history[0]["actorUserId"] == str(space.user_id)


async def hide(space: Space, automation_id: UUID) -> None:
    """Close the item of an automation to all but managers."""
    async with space.database.transaction() as work:
        mine = item.c.workspace_id == space.id, item.c.target_id == automation_id
        await work.execute(update(item).where(*mine).values(access_mode="restricted"))


async def test_an_undo_and_the_history_of_a_record_name_the_nodes_that_wrote(
    client: Client, automation: UndoneAutomation, tasks: str, space: Space
) -> None:
    record = await related.add(client, tasks, "one", data={"points": 1})
    run = await automation.run()
    await automation.write(run, updated(record, title="uno"), node_id="rename")
    scored = updated(record, data={"points": 2}), created(tasks, title="two")
    _, new = await automation.write(run, *scored, node_id="score")
    for undo in (await automation.undo(run, preview=True), await automation.undo(run)):
        writers = [(one["nodeId"], one["records"], one["fieldKeys"]) for one in undo["writers"]]
        assert writers == [("rename", 1, ["title"]), ("score", 2, ["points", "title"])]
        named = {one["automationId"] for one in undo["writers"]}
        assert named == {str(automation.version.automation_id)}
        nodes = {one["recordId"]: one["nodeIds"] for one in undo["revertedRecords"]}
        assert nodes == {record: ["rename", "score"], new: ["score"]}

    async def history(reader: Client) -> list[tuple[bool, str | None]]:
        changes = read(await reader.get(f"/v1/records/{record}/history"))["changes"]
        return [("runId" in one, one.get("nodeId")) for one in changes]

    _, token = await space.member(Role.EDITOR)
    editor = client.with_token(token)
    shown = [(False, None), (True, "score"), (True, "rename"), (False, None)]
    assert await history(client) == await history(editor) == shown
    await hide(space, automation.version.automation_id)
    assert await history(client) == shown
    assert await history(editor) == [(ran, None) for ran, _ in shown]


async def test_nodes_of_a_called_automation_that_is_hidden_are_counted_without_a_name(
    client: Client, automation: UndoneAutomation, tasks: str, space: Space
) -> None:
    record = await related.add(client, tasks, "one")
    other = await automation_to_undo(client, space)
    run = await automation.run()
    called = await other.run(parent_run_id=UUID(run), chain=[UUID(run)])
    await automation.write(run, updated(record, title="uno"), node_id="own")
    await other.write(called, updated(record, data={"points": 3}), node_id="secret_node")
    await hide(space, other.version.automation_id)
    _, token = await space.member(Role.EDITOR)
    editor = client.with_token(token)
    answer = await editor.post(f"{automation.path(run)}/undo", json={"preview": True})
    undo = read(answer)
    assert "secret_node" not in answer.text
    hidden = {"records": 1, "fieldKeys": ["points"]}
    assert [one for one in undo["writers"] if "nodeId" not in one] == [hidden]
    assert undo["revertedRecords"][0]["nodeIds"] == ["own"]


async def test_runs_that_the_run_called_are_undone_with_it(
    client: Client, automation: UndoneAutomation, tasks: str
) -> None:
    record = await related.add(client, tasks, "one", data={"state": "open"})
    run = await automation.run(updated(record, title="uno"))
    child = await automation.run(
        updated(record, data={"state": "closed"}), parent_run_id=UUID(run), chain=[UUID(run)]
    )
    call = [node("call", 1, node_kind="call_automation")]
    caller = await automation.run(nodes=call, id=new_id())
    apart = await automation.run(
        updated(record, data={"points": 3}), id=called_run_id(UUID(caller), "call", "")
    )
    undo = await automation.undo(run)
    assert (undo["runs"], undo["reverted"], undo["conflictCount"]) == (2, 1, 0)
    assert (await automation.undo(caller))["runs"] == 2
    assert (await related.get(client, record))["data"] == {"title": "one", "state": "open"}
    assert child != apart


async def test_an_open_run_is_refused(
    client: Client, automation: UndoneAutomation, tasks: str
) -> None:
    run = await automation.run(created(tasks), status="running", completed_at=None)
    refused = await client.post(f"{automation.path(run)}/undo", json={})
    assert refusal(refused) == (409, "run_error")
    parent = await automation.run()
    await automation.run(status="waiting", completed_at=None, parent_run_id=UUID(parent))
    refused = await client.post(f"{automation.path(parent)}/undo", json={})
    assert "called is still open" in refused.json()["message"]


async def test_a_key_that_may_not_write_records_undoes_nothing(
    app: FastAPI, contract: Contract, automation: UndoneAutomation, tasks: str, space: Space
) -> None:
    run = await automation.run(created(tasks))
    key = await space.key([Scope.AUTOMATIONS_READ, Scope.AUTOMATIONS_WRITE])
    async with Client(app, contract, key) as client:
        refused = await client.post(f"{automation.path(run)}/undo", json={})
    assert refused.status_code == 403


async def test_hidden_records_are_counted_without_a_name(
    client: Client,
    app: FastAPI,
    contract: Contract,
    automation: UndoneAutomation,
    tasks: str,
    space: Space,
) -> None:
    hidden = await related.make_database(client, space, "Hidden")
    item_id = read(await client.get(f"{space.path}/databases/{hidden}"))["itemId"]
    secret = await related.add(client, hidden, "secret")
    record = await related.add(client, tasks, "one")
    run = await automation.run(updated(secret, title="told"), updated(record, title="uno"))
    restricted = await client.patch(f"/v1/items/{item_id}", json={"accessMode": "restricted"})
    assert restricted.status_code == 200, restricted.text
    _, token = await space.member(Role.EDITOR)
    async with Client(app, contract, token) as editor:
        answer = await editor.post(f"{automation.path(run)}/undo", json={"preview": True})
        undo = read(answer)
        assert (undo["reverted"], undo["conflictCount"]) == (1, 1)
        (conflict,) = undo["conflicts"]
        assert conflict.keys() == {"reason", "message"}
        assert conflict["reason"] == "not_visible"
        assert secret not in answer.text
        assert "told" not in answer.text
    done = await automation.undo(run)
    assert done["reverted"] == 2
    async with Client(app, contract, token) as editor:
        answer = await editor.get(f"{automation.path(run)}/undos/{done['id']}")
        assert secret not in answer.text


async def test_two_undos_at_once_revert_once(
    client: Client, automation: UndoneAutomation, tasks: str
) -> None:
    records = [await related.add(client, tasks, "one") for _ in range(5)]
    run = await automation.run(*(updated(record, title="uno") for record in records))
    undos = await asyncio.gather(*(automation.undo(run) for _ in range(3)))
    assert sorted(undo["reverted"] for undo in undos) == [0, 0, 5]
    assert {undo["conflictCount"] for undo in undos} == {0}
    history = read(await client.get(f"/v1/records/{records[0]}/history"))["changes"]
    assert len(history) == 3


async def test_triggers_hear_of_an_undo_as_of_a_person_in_the_chain_of_the_run(
    client: Client, automation: UndoneAutomation, tasks: str, space: Space
) -> None:
    config = {"kind": "record_updated", "databaseId": tasks}
    await publish(client, space, triggerConfig=config)
    record = await related.add(client, tasks, "one")
    run = await automation.run(updated(record, title="uno"))
    await automation.undo(run)
    async with space.database.transaction() as work:
        events = await work.rows(
            select(trigger_event)
            .where(trigger_event.c.workspace_id == space.id)
            .order_by(trigger_event.c.id.desc())
        )
    last = events[0]
    assert last.chain == [UUID(run)]
    assert last.payload["actor"]["userId"] == str(space.user_id)
    assert last.payload["record"]["title"] == "one"


async def test_a_record_that_was_deleted_for_good_is_a_conflict(
    client: Client, automation: UndoneAutomation, tasks: str, space: Space
) -> None:
    record = await related.add(client, tasks, "one")
    output = {"record": {"id": str(record)}}
    run = await automation.run(
        updated(record, title="uno"),
        nodes=[node("write", 1, node_kind="update_record", output=output)],
    )
    await client.delete(f"/v1/records/{record}")
    async with space.database.transaction() as work:
        await purge_records(work, work.now + timedelta(days=1))
    assert conflicts(await automation.undo(run)) == {(record, None): "deleted"}


async def test_an_archived_record_is_reverted(
    client: Client, automation: UndoneAutomation, tasks: str
) -> None:
    archived, shown = [await related.add(client, tasks, "one") for _ in range(2)]
    await related.change(client, shown, archived=True)
    run = await automation.run(updated(archived, archived=True), updated(shown, archived=False))
    undo = await automation.undo(run)
    assert undo["reverted"] == 2
    assert (await related.get(client, archived))["archived"] is False
    assert (await related.get(client, shown))["archived"] is True
    await automation.undo(run, undoId=undo["id"])
    assert (await related.get(client, archived))["archived"] is True
