"""Links as both sides show them: one row per link, for every kind of writer and concurrent ones."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from sqlalchemy import func, select

from models.content.items.joins import item, item_grant
from models.core.access.rules import Role
from models.core.base import Id
from models.data.records.commands import update_record
from models.data.records.shapes import UpdateRecord
from models.data.records.tables import record_link
from tests.support.client import Client
from tests.support.related import add, change, get, linked, make_database, relate
from tests.support.spaces import Space

Pair = tuple[str, str]


@pytest_asyncio.fixture
async def projects(client: Client, space: Space) -> str:
    return await make_database(client, space, "Projects")


@pytest_asyncio.fixture
async def tasks(client: Client, space: Space, projects: str) -> str:
    """Tasks, each of one project; a project shows its `tasks`."""
    made = await make_database(client, space, "Tasks")
    await relate(client, made, projects, "Project", cardinality="one", inverseLabel="Tasks")
    return made


async def stored_links(space: Space) -> int:
    async with space.database.transaction() as work:
        statement = select(func.count()).where(record_link.c.workspace_id == space.id)
        return int(await work.scalar(statement))


async def test_a_link_shows_on_both_sides(client: Client, projects: str, tasks: str) -> None:
    project = await add(client, projects, "House")
    task = await add(client, tasks, "Paint", relations={"project": [project]})
    assert (await get(client, task))["related"] == {
        "project": [{"id": project, "title": "House", "databaseId": projects}]
    }
    seen = await get(client, project)
    assert seen["relations"] == {"tasks": [task]}
    assert seen["related"] == {"tasks": [{"id": task, "title": "Paint", "databaseId": tasks}]}


async def test_a_list_is_written_from_the_other_side_too(
    client: Client, space: Space, projects: str, tasks: str
) -> None:
    one, two = [await add(client, tasks, title) for title in ("1", "2")]
    project = await add(client, projects, relations={"tasks": [two, one, two]})
    assert await linked(client, project, "tasks") == [two, one]
    assert await linked(client, one, "project") == [project]
    await change(client, project, relations={"tasks": [one]})
    assert await linked(client, two, "project") == []
    assert await stored_links(space) == 1


async def test_the_order_of_each_side_is_its_own(client: Client, projects: str, tasks: str) -> None:
    project = await add(client, projects)
    ids = [await add(client, tasks, relations={"project": [project]}) for _ in range(3)]
    assert await linked(client, project, "tasks") == ids
    await change(client, project, relations={"tasks": ids[::-1]})
    assert await linked(client, project, "tasks") == ids[::-1]
    newest = await add(client, tasks, relations={"project": [project]})
    assert await linked(client, project, "tasks") == [*ids[::-1], newest]


async def test_a_record_that_may_have_one_link_goes_over_to_the_new_one(
    client: Client, space: Space, projects: str, tasks: str
) -> None:
    first, second = [await add(client, projects) for _ in range(2)]
    task = await add(client, tasks, relations={"project": [first]})
    await change(client, task, relations={"project": [second]})
    assert await linked(client, first, "tasks") == []
    await change(client, first, relations={"tasks": [task]})
    assert await linked(client, task, "project") == [first]
    assert await linked(client, second, "tasks") == []
    assert await stored_links(space) == 1


async def test_null_empties_and_what_is_not_named_stays(
    client: Client, projects: str, tasks: str
) -> None:
    project = await add(client, projects)
    task = await add(client, tasks, relations={"project": [project]})
    assert (await change(client, task, title="new"))["relations"] == {"project": [project]}
    assert (await change(client, task, relations={"project": None}))["relations"] == {"project": []}


@pytest.mark.parametrize(
    ("relations", "path", "reason"),
    [
        ({"nothing": []}, "relations.nothing", "not the key"),
        ({"title": []}, "relations.title", "set it as data.title"),
        ({"project": "x"}, "relations.project", "list"),
        ({"project": ["x"]}, "relations.project", "list"),
        ({"project": [5]}, "relations.project", "list"),
        ({"project": [str(uuid4()), str(uuid4())]}, "relations.project", "one record at most"),
    ],
    ids=["unknown", "no-relation", "text", "no-id", "number", "two"],
)
async def test_a_wrong_list_is_refused_at_its_path(
    client: Client, tasks: str, relations: dict[str, Any], path: str, reason: str
) -> None:
    answer = await client.post(f"/v1/databases/{tasks}/records", json={"relations": relations})
    assert answer.status_code == 400
    (problem,) = answer.json()["details"]
    assert problem["path"].startswith(path)
    assert reason in problem["message"]


async def test_a_refused_link_does_not_reveal_whether_its_record_exists(
    client: Client, space: Space, foreign: Space, projects: str, tasks: str
) -> None:
    theirs = client.with_token(foreign.token)
    elsewhere = await add(theirs, await make_database(theirs, foreign, "Theirs"))
    other_database = await add(client, tasks)
    gone = await add(client, projects)
    assert (await client.delete(f"/v1/records/{gone}")).status_code == 200
    answers = []
    for target in (str(uuid4()), elsewhere, other_database, gone):
        body = {"relations": {"project": [target]}}
        answers.append(await client.post(f"/v1/databases/{tasks}/records", json=body))
    assert {answer.status_code for answer in answers} == {404}
    assert len({answer.content for answer in answers}) == 1
    assert await stored_links(space) == 0


async def test_a_symmetric_relation_is_the_same_from_both_ends(
    client: Client, space: Space
) -> None:
    people = await make_database(client, space, "People")
    await relate(client, people, people, "Friends", symmetric=True)
    ids = [await add(client, people, str(place)) for place in range(3)]
    await change(client, ids[1], relations={"friends": [ids[2], ids[0], ids[1]]})
    assert await linked(client, ids[0], "friends") == [ids[1]]
    assert await linked(client, ids[1], "friends") == [ids[2], ids[0], ids[1]]
    await change(client, ids[2], relations={"friends": []})
    assert await linked(client, ids[1], "friends") == [ids[0], ids[1]]
    assert await stored_links(space) == 2


async def test_a_tree_is_a_relation_of_a_database_to_itself(client: Client, space: Space) -> None:
    pages = await make_database(client, space, "Pages")
    await relate(client, pages, pages, "Parent", cardinality="one", inverseLabel="Children")
    root = await add(client, pages)
    twigs = [await add(client, pages, relations={"parent": [root]}) for _ in range(2)]
    assert await linked(client, root, "children") == twigs
    await change(client, twigs[0], relations={"children": [twigs[1]]})
    assert await linked(client, root, "children") == [twigs[0]]
    assert await linked(client, twigs[1], "parent") == [twigs[0]]


async def test_links_to_the_trash_are_hidden_and_come_back(
    client: Client, projects: str, tasks: str
) -> None:
    project = await add(client, projects)
    kept, gone = [await add(client, tasks, relations={"project": [project]}) for _ in range(2)]
    await client.delete(f"/v1/records/{gone}")
    assert await linked(client, project, "tasks") == [kept]
    await change(client, project, relations={"tasks": []})
    assert (await client.post(f"/v1/records/{gone}/restore")).status_code == 200
    assert await linked(client, project, "tasks") == [gone]


async def test_a_restricted_target_cannot_be_deleted_while_something_points_at_it(
    client: Client, space: Space, projects: str
) -> None:
    bills = await make_database(client, space, "Bills")
    await relate(client, bills, projects, "Billed to", onDelete="restrict")
    project, free = await add(client, projects), await add(client, projects)
    bill = await add(client, bills, relations={"billed_to": [project]})
    refused = await client.delete(f"/v1/records/{project}")
    assert refused.status_code == 409
    assert '"Billed to"' in refused.json()["message"]
    assert (await client.delete(f"/v1/records/{free}")).status_code == 200
    assert (await client.delete(f"/v1/records/{bill}")).status_code == 200
    assert (await client.delete(f"/v1/records/{project}")).status_code == 200


async def restrict(space: Space, database_id: str, granted_to: Any = None) -> None:
    """Close a database to all but managers, and to one member with a grant."""
    async with space.database.transaction() as work:
        row = await work.first(select(item.c.id).where(item.c.target_id == database_id))
        assert row is not None
        await work.execute(
            item.update().where(item.c.id == row.id).values(access_mode="restricted")
        )
        if granted_to is not None:
            await work.execute(
                item_grant.insert().values(
                    workspace_id=space.id, item_id=row.id, user_id=granted_to, level=4,
                    created_at=work.now, updated_at=work.now,
                )
            )  # fmt: skip


async def test_links_of_a_closed_database_are_neither_shown_nor_changed(
    client: Client, space: Space, projects: str, tasks: str
) -> None:
    project = await add(client, projects, "Secret")
    task = await add(client, tasks, relations={"project": [project]})
    await restrict(space, projects)
    _, token = await space.member(Role.EDITOR)
    member = client.with_token(token)
    seen = await get(member, task)
    assert seen["relations"] == {"project": []}
    assert seen["related"] == {"project": []}
    refused = [
        await member.patch(f"/v1/records/{task}", json={"relations": {"project": [target]}})
        for target in (project, str(uuid4()))
    ]
    assert [answer.status_code for answer in refused] == [404, 404]
    assert refused[0].content == refused[1].content
    await change(member, task, relations={"project": []})
    assert await linked(client, task, "project") == [project]


async def test_a_grant_opens_a_closed_database(
    client: Client, space: Space, projects: str, tasks: str
) -> None:
    project = await add(client, projects)
    task = await add(client, tasks, relations={"project": [project]})
    user_id, token = await space.member(Role.EDITOR)
    await restrict(space, projects, user_id)
    assert await linked(client.with_token(token), task, "project") == [project]


@pytest.mark.long
async def test_parallel_writers_leave_one_link_where_there_may_be_one(
    client: Client, space: Space, projects: str, tasks: str
) -> None:
    targets = [await add(client, projects) for _ in range(4)]
    task = await add(client, tasks)
    writes = [
        client.patch(f"/v1/records/{task}", json={"relations": {"project": [target]}})
        for target in targets
    ] + [
        client.patch(f"/v1/records/{target}", json={"relations": {"tasks": [task]}})
        for target in targets
    ]
    answers = await asyncio.gather(*writes)
    assert {answer.status_code for answer in answers} <= {200, 409, 503}
    assert 200 in {answer.status_code for answer in answers}
    (project,) = await linked(client, task, "project")
    shown = {target: await linked(client, target, "tasks") for target in targets}
    assert shown == {target: [task] if target == project else [] for target in targets}
    assert await stored_links(space) == 1


async def test_a_record_that_is_being_taken_is_waited_for(
    client: Client, space: Space, projects: str, tasks: str
) -> None:
    first = await add(client, projects)
    task = await add(client, tasks)
    async with space.database.transaction() as work:
        body = UpdateRecord.model_validate({"relations": {"tasks": [task]}})
        await update_record(work, space.actor, Id(first), body)
        taking = asyncio.create_task(add(client, projects, relations={"tasks": [task]}))
        await asyncio.sleep(0.3)
        assert not taking.done()
    second = await taking
    assert await linked(client, task, "project") == [second]
    assert await linked(client, first, "tasks") == []


async def test_parallel_links_to_one_record_are_all_kept(
    client: Client, projects: str, tasks: str
) -> None:
    project = await add(client, projects)
    made = await asyncio.gather(
        *(add(client, tasks, relations={"project": [project]}) for _ in range(8))
    )
    assert sorted(await linked(client, project, "tasks")) == sorted(made)


@pytest.mark.long
async def test_a_list_costs_the_same_statements_for_any_number_of_records(
    client: Client, projects: str, tasks: str, sent: list[Any]
) -> None:
    await relate(client, tasks, projects, "Second")
    await relate(client, tasks, tasks, "Next", symmetric=True)
    project = await add(client, projects)
    counts = []
    for more in (1, 29):
        for _ in range(more):
            await add(client, tasks, relations={"project": [project], "second": [project]})
        sent.clear()
        answer = await client.get(f"/v1/databases/{tasks}/records", params={"limit": 30})
        assert answer.status_code == 200
        counts.append(len(sent))
    assert len(answer.json()["data"]["records"]) == 30
    assert counts[0] == counts[1]


async def test_a_batch_costs_the_same_statements_for_any_number_of_records(
    client: Client, projects: str, tasks: str, sent: list[Any]
) -> None:
    project = await add(client, projects)
    counts = []
    for size in (2, 60):
        operations = [
            {"op": "create", "title": "x", "relations": {"project": [project]}} for _ in range(size)
        ]
        sent.clear()
        answer = await client.post(
            f"/v1/databases/{tasks}/records/batch", json={"operations": operations}
        )
        assert answer.status_code == 200, answer.text
        counts.append(len(sent))
    assert counts[0] == counts[1]
    assert len(await linked(client, project, "tasks")) == 62
