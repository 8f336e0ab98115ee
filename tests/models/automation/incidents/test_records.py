"""Records that the failed runs of an incident were about, as far as the caller sees them."""

from typing import Any
from uuid import UUID

from sqlalchemy import insert, select, update

from models.automation.automation_runs import history
from models.automation.automation_runs.tables import node_run
from models.automation.incidents.grouping import list_incident_records
from models.automation.incidents.queries import IncidentRecordList
from models.automation.incidents.tables import incident_record
from models.content.items.joins import item
from models.core.access.rules import Actor, Role
from models.core.base import Id
from models.core.pagination import page_request
from models.data.databases.shapes import CreateDatabase
from models.data.databases.store import create_database
from models.data.fields.rows import DATABASE
from models.data.records.commands import create_record, delete_record
from models.data.records.shapes import CreateRecord
from runtime.ids import new_id
from tests.support.ageing import make_automation
from tests.support.alerts import actor_of
from tests.support.incidents import failed_run, grouped, incident_of
from tests.support.spaces import Space


async def make_records(space: Space, *titles: str) -> list[Id]:
    """Records of a new database."""
    async with space.database.transaction() as work:
        body = CreateDatabase.model_validate({"label": "Orders", "fields": []})
        database = await create_database(work, space.actor, body)
        return [
            (await create_record(work, space.actor, database.id, CreateRecord(title=title))).id
            for title in titles
        ]


def about(record_id: Any) -> dict[str, Any]:
    return {"trigger_payload": {"record": {"id": str(record_id)}}}


async def wrote(space: Space, run_id: Id, node: str, record_id: Any, **values: Any) -> None:
    """Let a node of a run have written a record."""
    own = {"workspace_id": space.id, "run_id": run_id, "scope_key": "", "attempt": 1}
    output = {"record": {"id": str(record_id)}}
    row = {"node_kind": "update_record", "status": "succeeded", "output": output, **values}
    async with space.database.transaction() as work:
        await work.execute(insert(node_run).values(**own, node_id=node, **row))


async def listed(space: Space, incident_id: Id, actor: Actor | None = None) -> IncidentRecordList:
    async with space.database.transaction() as work:
        page = page_request(space.keys, 100, None, "incident records")
        return await list_incident_records(work, actor or space.actor, incident_id, page)


async def test_records_of_the_payload_and_those_written_before(space: Space) -> None:
    version = await make_automation(space)
    first, second, third, untouched = await make_records(space, "A", "B", "C", "D")
    for record_id in (first, second, first):
        run_id = await failed_run(space, version, **about(record_id))
    await wrote(space, run_id, "write", third)
    await wrote(space, run_id, "read", untouched, node_kind="query_records")
    await wrote(space, run_id, "try", untouched, status="failed")
    await grouped(space.database)
    row = await incident_of(space.database, run_id)
    found = (await listed(space, row.id)).records
    assert {one.title: one.runs for one in found} == {"A": 2, "B": 1, "C": 1}
    assert {one.database_label for one in found} == {"Orders"}
    assert {one.last_run_id for one in found if one.title != "B"} == {run_id}


async def test_a_record_of_another_workspace_is_not_listed(space: Space, foreign: Space) -> None:
    version = await make_automation(space)
    (theirs,) = await make_records(foreign, "Theirs")
    mine, deleted = await make_records(space, "Mine", "Deleted")
    for record_id in (theirs, new_id(), "no id", "x" * 5_000, mine, deleted):
        run_id = await failed_run(space, version, **about(record_id))
    for payload in ({"record": "text"}, {"record": None}, {"record": [1]}, {"record": {"id": 7}}):
        await failed_run(space, version, trigger_payload=payload)
    await grouped(space.database)
    async with space.database.transaction() as work:
        await delete_record(work, space.actor, deleted)
    row = await incident_of(space.database, run_id)
    assert [one.title for one in (await listed(space, row.id)).records] == ["Mine"]
    assert (await listed(foreign, row.id)).records == []


async def test_records_of_a_database_that_is_closed_are_not_listed(space: Space) -> None:
    version = await make_automation(space)
    (record_id,) = await make_records(space, "Secret")
    run_id = await failed_run(space, version, **about(record_id))
    await grouped(space.database)
    row = await incident_of(space.database, run_id)
    user_id, _ = await space.member(Role.EDITOR)
    editor = await actor_of(space, user_id)
    assert len((await listed(space, row.id, editor)).records) == 1
    async with space.database.transaction() as work:
        its_item = select(DATABASE.item_id).where(DATABASE.workspace_id == space.id)
        closed = update(item).where(item.c.id.in_(its_item)).values(access_mode="restricted")
        await work.execute(closed)
    assert (await listed(space, row.id, editor)).records == []
    assert len((await listed(space, row.id)).records) == 1


async def test_a_run_that_wrote_very_many_is_remembered_by_some(
    space: Space, monkeypatch: Any
) -> None:
    monkeypatch.setattr(history, "MOST_RECORDS", 2)
    run_id = await failed_run(space, await make_automation(space))
    for number in range(4):
        await wrote(space, run_id, f"write {number}", UUID(int=number))
    await grouped(space.database)
    row = await incident_of(space.database, run_id)
    async with space.database.transaction() as work:
        kept = select(incident_record.c.record_id).where(incident_record.c.incident_id == row.id)
        assert len(await work.rows(kept)) == 2
