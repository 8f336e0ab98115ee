"""What becomes of records over HTTP: archived, deleted, restored, linked, changed at once."""

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
import pytest_asyncio
from sqlalchemy import insert, update

from models.content.files.queries import file
from models.core.access.rules import Role, Scope
from models.data.records.rows import CHANGES_WITH_CREATIONS
from models.data.records.rules.writes import TRASH
from models.data.records.tables import record
from runtime.ids import new_id
from tests.support.client import Client
from tests.support.spaces import Space

FIELDS = [{"label": f"Part {n}", "kind": "number"} for n in range(1, 51)]


async def make(client: Client, space: Space, *fields: dict[str, Any]) -> str:
    body = {"label": "Things", "fields": list(fields)}
    answer = await client.post(f"{space.path}/databases", json=body)
    assert answer.status_code == 201, answer.text
    return f"/v1/databases/{answer.json()['data']['id']}"


@pytest_asyncio.fixture
async def records(client: Client, space: Space) -> str:
    """The path of the records of a new database with fields `part_1` to `part_50`."""
    return f"{await make(client, space, *FIELDS)}/records"


async def create(client: Client, records: str, **body: Any) -> Any:
    answer = await client.post(records, json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()["data"]


async def act(client: Client, record_id: str, way: str) -> Any:
    answer = await client.post(f"/v1/records/{record_id}/{way}")
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


async def listed(client: Client, records: str, **body: Any) -> list[str]:
    answer = await client.post(f"{records}/query", json=body)
    return [one["id"] for one in answer.json()["data"]["records"]]


async def test_an_archived_record_is_shown_to_those_who_ask(client: Client, records: str) -> None:
    made = await create(client, records)
    archived = await act(client, made["id"], "archive")
    assert archived == {**made, "archived": True, "updatedAt": archived["updatedAt"]}
    assert archived["updatedAt"] > made["updatedAt"]
    assert await listed(client, records) == []
    assert await listed(client, records, includeArchived=True) == [made["id"]]
    assert (await client.get(f"/v1/records/{made['id']}")).json()["data"] == archived
    back = await act(client, made["id"], "restore")
    assert (back["archived"], await listed(client, records)) == (False, [made["id"]])


async def test_a_deleted_record_comes_back_as_it_was(client: Client, records: str) -> None:
    made = await create(client, records, title="A", data={"part_1": 1})
    answer = await client.delete(f"/v1/records/{made['id']}")
    assert (answer.status_code, answer.json()["data"]) == (200, made)
    assert await listed(client, records, includeArchived=True) == []
    path = f"/v1/records/{made['id']}"
    for method, where in (
        ("GET", path),
        ("PATCH", path),
        ("DELETE", path),
        ("POST", f"{path}/archive"),
        ("GET", f"{path}/comments"),
    ):
        body = {"title": "x"} if method == "PATCH" else None
        assert (await client.request(method, where, json=body)).status_code == 404
    back = await act(client, made["id"], "restore")
    assert back == {**made, "updatedAt": back["updatedAt"]}
    assert back["updatedAt"] > made["updatedAt"]
    assert await listed(client, records) == [made["id"]]


async def test_the_trash_is_kept_for_30_days(client: Client, space: Space, records: str) -> None:
    kept, lost = [(await create(client, records))["id"] for _ in range(2)]
    for record_id, age in ((kept, TRASH - timedelta(minutes=5)), (lost, TRASH)):
        await client.delete(f"/v1/records/{record_id}")
        async with space.database.transaction() as work:
            gone = update(record).where(record.c.id == UUID(record_id))
            await work.execute(gone.values(deleted_at=work.now - age))
    assert (await client.post(f"/v1/records/{kept}/restore")).status_code == 200
    found = await client.post(f"/v1/records/{lost}/restore")
    unknown = await client.post(f"/v1/records/{uuid4()}/restore")
    assert (found.status_code, found.content) == (404, unknown.content)
    operations = [{"op": "restore", "recordId": lost}]
    answer = await client.post(f"{records}/batch", json={"operations": operations})
    assert answer.status_code == 404


async def test_states_change_under_a_condition(client: Client, records: str) -> None:
    made = await create(client, records)
    path = f"/v1/records/{made['id']}"
    changed = (await client.patch(path, json={"title": "x"})).json()["data"]
    for stamp, status in ((made["updatedAt"], 409), (changed["updatedAt"], 200)):
        answer = await client.post(f"{path}/archive", headers={"If-Match": stamp})
        assert answer.status_code == status
    for stamp in (changed["updatedAt"], "x"):
        answer = await client.delete(path, headers={"If-Match": stamp})
        assert answer.status_code == (400 if stamp == "x" else 409)


async def test_editors_alone_change_the_states_of_records(
    client: Client, space: Space, foreign: Space, records: str
) -> None:
    made = await create(client, records)
    path = f"/v1/records/{made['id']}"
    _, viewer = await space.member(Role.VIEWER)
    unscoped = await space.key([scope for scope in Scope if scope != Scope.RECORDS_WRITE])
    other = client.with_token(foreign.token)
    for method, where in (
        ("POST", f"{path}/archive"),
        ("POST", f"{path}/restore"),
        ("DELETE", path),
    ):
        for token in (viewer, unscoped):
            assert (await client.with_token(token).request(method, where)).status_code == 403
        found = await other.request(method, where)
        unknown = await other.request(method, where.replace(made["id"], str(uuid4())))
        assert (found.status_code, found.content) == (404, unknown.content)
    await client.delete(path)
    assert (await client.with_token(viewer).post(f"{path}/restore")).status_code == 403
    assert (await other.post(f"{path}/restore")).content == unknown.content
    assert (await client.get(path)).status_code == 404


async def test_fifty_changes_at_once_lose_nothing(client: Client, records: str) -> None:
    made = await create(client, records)
    path = f"/v1/records/{made['id']}"

    async def patch(n: int) -> str:
        answer = await client.patch(path, json={"data": {f"part_{n}": n}})
        return str(answer.json()["data"]["updatedAt"])

    stamps = await asyncio.gather(*(patch(n) for n in range(1, 51)))
    read = (await client.get(path)).json()["data"]
    assert read["data"] == {"title": "", **{f"part_{n}": n for n in range(1, 51)}}
    assert len(set(stamps)) == 50
    query = {"limit": "100"}
    changes = (await client.get(f"{path}/history", params=query)).json()["data"]["changes"]
    replayed: dict[str, Any] = {}
    for change in reversed(changes):
        replayed.update(change["after"])
    assert (replayed, len(changes)) == (read["data"], 51)


async def test_one_of_many_conditional_changes_wins(client: Client, records: str) -> None:
    made = await create(client, records)
    path = f"/v1/records/{made['id']}"
    headers = {"If-Match": made["updatedAt"]}
    answers = await asyncio.gather(
        *(client.patch(path, json={"title": f"{n}"}, headers=headers) for n in range(10))
    )
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 9


async def test_records_are_linked_as_they_are_written(client: Client, space: Space) -> None:
    people = await make(client, space)
    tasks = await make(
        client,
        space,
        {
            "label": "Owner",
            "kind": "relation",
            "settings": {"databaseId": people.rpartition("/")[2], "cardinality": "one"},
        },
    )
    ann, bob = [(await create(client, f"{people}/records", title=name))["id"] for name in "AB"]
    for body, path in (
        ({"relations": {"owner": [ann, bob]}}, "relations.owner"),
        ({"relations": {"owner": "x"}}, "relations.owner"),
        ({"relations": {"owner": ["x"]}}, "relations.owner"),
        ({"relations": {"nobody": [ann]}}, "relations.nobody"),
        ({"data": {"owner": [ann]}}, "data.owner"),
    ):
        answer = await client.post(f"{tasks}/records", json=body)
        assert (answer.status_code, answer.json()["details"][0]["path"]) == (400, path)
    task = await create(client, f"{tasks}/records", relations={"owner": [ann]})
    assert task["relations"] == {"owner": [ann]}
    unknown = {"relations": {"owner": [str(uuid4())]}}
    elsewhere = {"relations": {"owner": [task["id"]]}}
    path = f"/v1/records/{task['id']}"
    answers = [await client.patch(path, json=body) for body in (unknown, elsewhere)]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].content == answers[1].content
    same = await client.patch(path, json={"relations": {"owner": [ann]}})
    assert same.json()["data"] == task
    moved = await client.patch(path, json={"relations": {"owner": [bob]}})
    assert moved.json()["data"]["relations"] == {"owner": [bob]}
    changes = (await client.get(f"{path}/history")).json()["data"]["changes"]
    assert [(one.get("before"), one["after"]) for one in changes] == [
        ({"owner": [ann]}, {"owner": [bob]}),
        (None, {"title": "", "owner": [ann]}),
    ]


async def test_a_record_that_is_needed_is_not_deleted(client: Client, space: Space) -> None:
    people = await make(client, space)
    relation = {"databaseId": people.rpartition("/")[2], "onDelete": "restrict"}
    tasks = await make(client, space, {"label": "Owner", "kind": "relation", "settings": relation})
    ann = await create(client, f"{people}/records", title="Ann")
    task = await create(client, f"{tasks}/records", relations={"owner": [ann["id"]]})
    assert (await client.delete(f"/v1/records/{ann['id']}")).status_code == 409
    operations = [{"op": "create", "title": "x"}, {"op": "delete", "recordId": ann["id"]}]
    answer = await client.post(f"{people}/records/batch", json={"operations": operations})
    assert answer.status_code == 409
    assert await listed(client, f"{people}/records") == [ann["id"]]
    await client.delete(f"/v1/records/{task['id']}")
    assert (await client.delete(f"/v1/records/{ann['id']}")).status_code == 200


@pytest.mark.long
@pytest.mark.parametrize("cardinality", ["one", "many"])
async def test_two_who_link_each_other_both_go_through(
    client: Client, space: Space, cardinality: str
) -> None:
    people = await make(client, space)
    settings = {
        "databaseId": people.rpartition("/")[2],
        "symmetric": True,
        "cardinality": cardinality,
    }
    spouse = {"label": "Spouse", "kind": "relation", "settings": settings}
    assert (await client.post(f"{people}/fields", json=spouse)).status_code == 201
    ids = [(await create(client, f"{people}/records"))["id"] for _ in range(6)]

    async def marry(one: int, other: int) -> int:
        body = {"relations": {"spouse": [ids[other]]}}
        return (await client.patch(f"/v1/records/{ids[one]}", json=body)).status_code

    for turn in range(1, 6):
        met = await asyncio.gather(*(marry(n, (n + turn) % 6) for n in range(6)))
        assert met == [200] * 6
    shown = [(await client.get(f"/v1/records/{one}")).json()["data"] for one in ids]
    partners = {one["id"]: one["relations"]["spouse"] for one in shown}
    assert all(one in partners[other] for one, others in partners.items() for other in others)


async def test_the_last_word_of_a_batch_on_a_link_counts(client: Client, space: Space) -> None:
    tree = await make(client, space)
    settings = {
        "databaseId": tree.rpartition("/")[2],
        "cardinality": "one",
        "inverseLabel": "Children",
    }
    parent = {"label": "Parent", "kind": "relation", "settings": settings}
    assert (await client.post(f"{tree}/fields", json=parent)).status_code == 201
    top = (await create(client, f"{tree}/records"))["id"]
    child = (await create(client, f"{tree}/records", relations={"parent": [top]}))["id"]
    let_go = {"op": "update", "recordId": top, "relations": {"children": []}}
    keep = {"op": "update", "recordId": child, "relations": {"parent": [top]}}
    for operations, left in (([let_go, keep], [top]), ([keep, let_go], [])):
        answer = await client.post(f"{tree}/records/batch", json={"operations": operations})
        assert answer.status_code == 200, answer.text
        shown = (await client.get(f"/v1/records/{child}")).json()["data"]
        assert shown["relations"]["parent"] == left


async def test_a_template_fills_what_is_not_said(client: Client, space: Space) -> None:
    things = await make(client, space, {"label": "A", "kind": "text"}, FIELDS[0])
    template = await client.post(
        f"{things}/record-templates",
        json={"label": "T", "data": {"title": "From it", "a": "filled", "part_1": 1}},
    )
    surface_id = template.json()["data"]["contentSurfaceId"]
    blocks = [{"kind": "paragraph", "content": {"text": [{"text": "Words"}]}}]
    answer = await client.put(f"/v1/surfaces/{surface_id}", json={"blocks": blocks})
    assert answer.status_code == 200, answer.text
    body = {"templateId": template.json()["data"]["id"], "data": {"part_1": 2}}
    made = await create(client, f"{things}/records", **body)
    assert made["data"] == {"title": "From it", "a": "filled", "part_1": 2}
    done = await client.post(
        f"{things}/records/batch", json={"operations": [{"op": "create", **body}] * 3}
    )
    surfaces = [one["contentSurfaceId"] for one in [made, *done.json()["data"]["records"]]]
    assert len({*surfaces, surface_id}) == 5
    for each in surfaces:
        content = (await client.get(f"/v1/surfaces/{each}")).json()["data"]
        assert [one["content"] for one in content["blocks"]] == [{"text": [{"text": "Words"}]}]
    other = await make(client, space)
    answers = [
        await client.post(f"{other}/records", json={"templateId": one})
        for one in (body["templateId"], str(uuid4()))
    ]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].content == answers[1].content


async def test_files_are_those_of_the_workspace(
    client: Client, space: Space, foreign: Space
) -> None:
    things = await make(client, space, {"label": "Docs", "kind": "file"})
    mine, theirs = await stored_file(space), await stored_file(foreign)
    made = await create(client, f"{things}/records", data={"docs": [mine]})
    assert made["data"]["docs"] == [mine]
    answers = [
        await client.post(f"{things}/records", json={"data": {"docs": [one]}})
        for one in (theirs, str(uuid4()))
    ]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].content == answers[1].content
    async with space.database.transaction() as work:
        await work.execute(update(file).where(file.c.id == UUID(mine)).values(deleted_at=work.now))
    assert (
        await client.post(f"{things}/records", json={"data": {"docs": [mine]}})
    ).status_code == 404
    kept = await client.patch(
        f"/v1/records/{made['id']}", json={"title": "x", "data": {"docs": [mine]}}
    )
    assert kept.status_code == 200


async def stored_file(space: Space) -> str:
    async with space.database.transaction() as work:
        file_id = new_id()
        await work.execute(
            insert(file).values(
                id=file_id,
                workspace_id=space.id,
                name="a.txt",
                mime_type="text/plain",
                byte_size=1,
                sha256=b"\0" * 32,
                object_key=f"test/{file_id}",
                created_by_user_id=space.user_id,
                created_at=work.now,
            )
        )
    return str(file_id)


async def test_a_member_who_left_may_stay_where_they_are_named(
    client: Client, space: Space
) -> None:
    things = await make(client, space, {"label": "Who", "kind": "person"})
    member, _ = await space.member(Role.VIEWER)
    made = await create(client, f"{things}/records", data={"who": [str(member)]})
    await space.remove(member)
    both = {"data": {"who": [str(member), str(space.user_id)]}}
    assert (await client.patch(f"/v1/records/{made['id']}", json=both)).status_code == 200
    assert (await client.post(f"{things}/records", json=both)).status_code == 400


@pytest.mark.parametrize("way", ["create", "update", "delete"])
async def test_history_is_written_in_the_writers_transaction(
    client: Client, space: Space, records: str, way: str
) -> None:
    made = await create(client, records)
    bad = {"op": "create", "data": {"nobody": 1}}
    good: dict[str, Any] = {"op": way}
    if way != "create":
        good["recordId"] = made["id"]
    if way == "update":
        good["title"] = "x"
    await client.post(f"{records}/batch", json={"operations": [good, bad]})
    async with space.database.transaction() as work:
        changes = await work.rows(
            CHANGES_WITH_CREATIONS.select().where(CHANGES_WITH_CREATIONS.c.workspace_id == space.id)
        )
    assert [(str(one.record_id), one.kind) for one in changes] == [(made["id"], "created")]
