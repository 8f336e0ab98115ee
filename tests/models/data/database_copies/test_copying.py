"""Copies step by step: their contents, invisible before the end, and nothing after a failure."""

from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import func, insert, select, text, update

from activities.jobs.records import DatabaseCopies
from activities.jobs.transactions import DONE, FAILED, MORE
from models.content.items.joins import item, item_grant
from models.core.access.rules import Actor, Level, Role, Scope
from models.core.base import JsonObject
from models.data.database_copies.commands import DuplicateDatabase, accept_copy
from models.data.fields.tables import database as database_table
from models.data.records.tables import record, record_link
from models.messages.jobs.store import job
from models.people.workspaces import workspace_member
from runtime.database import UnitOfWork
from runtime.errors import ConflictError
from tests.support.client import Client
from tests.support.copies import duplicate, fill
from tests.support.spaces import Space

Json = dict[str, Any]
FIELDS = [
    {"label": "Code", "kind": "text"},
    {"label": "Price", "kind": "number"},
    {"label": "State", "kind": "select", "options": [{"name": "Open"}, {"name": "Done"}]},
    {"label": "Number", "kind": "auto_number"},
]


async def post(client: Client, path: str, status: int = 201, **body: Any) -> Any:
    answer = await client.post(path, json=body)
    assert answer.status_code == status, answer.text
    return answer.json()["data"]


async def made(client: Client, space: Space, **body: Any) -> Any:
    return await post(
        client, f"{space.path}/databases", **{"label": "Goods", "fields": FIELDS} | body
    )


async def read(client: Client, space: Space, database_id: Any) -> Any:
    answer = await client.get(f"{space.path}/databases/{database_id}")
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


async def records(client: Client, database_id: Any) -> list[Any]:
    found: list[Any] = []
    cursor = None
    while True:
        body = {"limit": 200, "includeArchived": True} | ({"cursor": cursor} if cursor else {})
        page = await post(client, f"/v1/databases/{database_id}/records/query", 200, **body)
        found += page["records"]
        if (cursor := page["cursor"]) is None:
            return found


def plain(one: Any, *changing: str) -> Any:
    """A record or database without what differs in a copy."""
    gone = {"id", "databaseId", "itemId", "key", "label", "createdAt", "updatedAt", *changing}
    return {key: value for key, value in one.items() if key not in gone}


async def source_of_five(client: Client, space: Space) -> Any:
    """A database with a view, a template and five records, of which one is archived."""
    source = await made(
        client,
        space,
        description="Things to sell",
        icon="📦",
        settings={"color": "red"},
        views=[{"label": "Board", "kind": "board", "manifest": {"stackFieldKey": "state"}}],
    )
    path = f"/v1/databases/{source['id']}"
    template: dict[str, Any] = {"label": "Open", "data": {"state": "open"}, "isDefault": True}
    await post(client, f"{path}/record-templates", **template)
    for n in range(5):
        await post(client, f"{path}/records", title=f"T{n}", data={"code": f"c{n}", "price": n})
    first = (await records(client, source["id"]))[0]
    await client.patch(f"/v1/records/{first['id']}", json={"archived": True})
    gone = await post(client, f"{path}/records", title="Gone")
    await client.delete(f"/v1/records/{gone['id']}")
    return source


async def test_a_copy_has_the_fields_views_and_templates_of_its_source(
    client: Client, space: Space
) -> None:
    source = await source_of_five(client, space)
    copying = await duplicate(space.database, space.actor, UUID(source["id"]))
    assert await copying.finish() == DONE
    copy = await read(client, space, copying.copy_id)
    assert (copy["label"], copy["key"]) == ("Goods copy", "goods_copy")
    assert plain(copy, "fields", "views", "order") == plain(source, "fields", "views", "order")
    for part in ("fields", "views"):
        assert [plain(one) | {"key": one["key"]} for one in copy[part]] == [
            plain(one) | {"key": one["key"]} for one in source[part]
        ]
        assert {one["id"] for one in copy[part]}.isdisjoint(one["id"] for one in source[part])
        assert {one["databaseId"] for one in copy[part]} == {copy["id"]}
    templates = (await client.get(f"/v1/databases/{copy['id']}/record-templates")).json()["data"][
        "templates"
    ]
    assert [(one["label"], one["data"], one["isDefault"]) for one in templates] == [
        ("Open", {"state": "open"}, True)
    ]


async def test_a_copy_has_the_records_of_its_source(client: Client, space: Space) -> None:
    source = await source_of_five(client, space)
    copying = await duplicate(space.database, space.actor, UUID(source["id"]))
    assert await copying.finish() == DONE
    here, there = await records(client, copying.copy_id), await records(client, source["id"])
    assert len(here) == 5
    assert [plain(one) for one in here] == [plain(one) for one in there]
    assert [(one["createdAt"], one["updatedAt"]) for one in here] == [
        (one["createdAt"], one["updatedAt"]) for one in there
    ]
    assert {one["id"] for one in here}.isdisjoint(one["id"] for one in there)
    more = await post(client, f"/v1/databases/{copying.copy_id}/records", title="Next")
    assert more["system"]["number"] == 7
    assert (await copying.row()).status == "succeeded"


async def test_a_copy_without_records_begins_anew(client: Client, space: Space) -> None:
    source = await made(client, space)
    await fill(space.database, space.id, UUID(source["id"]), 3)
    copying = await duplicate(space.database, space.actor, UUID(source["id"]), records=False)
    assert await copying.finish() == DONE
    copy = await read(client, space, copying.copy_id)
    assert await records(client, copy["id"]) == []
    first = await post(client, f"/v1/databases/{copy['id']}/records", title="First")
    assert first["system"]["number"] == 1


@dataclass
class Trade:
    """Two related databases: the goods of a buyer, which are parts of one that is on top."""

    goods: str
    customers: str
    buyer: str
    top: str
    parts: list[str]
    """In the order in which the buyer has them."""


@pytest.fixture
async def trade(client: Client, space: Space) -> Trade:
    target = await made(client, space, label="Customers", fields=[])
    source = await made(client, space)
    path = f"/v1/databases/{source['id']}"
    back = await relate(client, space, source["id"], target["id"])
    buyer = await post(client, f"/v1/databases/{target['id']}/records", title="Buyer")
    top = await post(client, f"{path}/records", title="Top")
    relations = {
        "customer": [buyer["id"]],
        "parent": [top["id"]],
        "near": [top["id"]],
        back: [buyer["id"]],
    }
    parts = [
        (await post(client, f"{path}/records", title=f"Part {n}", relations=relations))["id"]
        for n in range(3)
    ]
    order = [parts[n] for n in (2, 0, 1)]
    ordered = {"goods": order, "goods_2": order}
    answer = await client.patch(f"/v1/records/{buyer['id']}", json={"relations": ordered})
    assert answer.status_code == 200, answer.text
    gone = await post(client, f"{path}/records", title="Gone", relations={"parent": [top["id"]]})
    await client.delete(f"/v1/records/{gone['id']}")
    assert await linked(space, gone["id"]) == 1
    return Trade(source["id"], target["id"], buyer["id"], top["id"], order)


async def relate(client: Client, space: Space, source_id: str, target_id: str) -> str:
    """Relate a database to itself and, from both sides, to another; the key of the other's."""

    def relation(label: str, database_id: str, **settings: Any) -> dict[str, Any]:
        return {
            "label": label,
            "kind": "relation",
            "settings": {"databaseId": database_id, **settings},
        }

    counted = {"relationFieldKey": "parts", "targetFieldKey": "title", "aggregate": "count"}
    bodies: list[dict[str, Any]] = [
        relation("Customer", target_id),
        relation("Parent", source_id, cardinality="one", inverseLabel="Parts"),
        relation("Near", source_id, symmetric=True),
        {"label": "Count", "kind": "rollup", "settings": counted},
    ]
    for body in bodies:
        await post(client, f"/v1/databases/{source_id}/fields", **body)
    # The older side of this relation is in the other database.
    await post(client, f"/v1/databases/{target_id}/fields", **relation("Goods", source_id))
    fields = (await read(client, space, source_id))["fields"]
    own = {"customer", "parent", "parts", "near"}
    (back,) = (one["key"] for one in fields if one["kind"] == "relation" and one["key"] not in own)
    return str(back)


async def copied(client: Client, space: Space, trade: Trade) -> tuple[Json, Json]:
    """The goods and their copies, by title."""
    copying = await duplicate(
        space.database, space.actor, UUID(trade.goods), chunks=DatabaseCopies(2)
    )
    assert await copying.finish() == DONE
    sources = {one["title"]: one for one in await records(client, trade.goods)}
    copies = {one["title"]: one for one in await records(client, copying.copy_id)}
    assert copies.keys() == sources.keys()
    return sources, copies


@pytest.mark.long
async def test_relations_within_lead_to_the_copies_and_others_to_the_same(
    client: Client, space: Space, trade: Trade
) -> None:
    sources, copies = await copied(client, space, trade)
    mapping = {sources[title]["id"]: copies[title]["id"] for title in copies}
    for title, one in copies.items():
        expected = {
            key: [mapping.get(target_id, target_id) for target_id in targets]
            for key, targets in sources[title]["relations"].items()
        }
        assert one["relations"] == expected
        assert one["computed"] == sources[title]["computed"]
    assert copies["Top"]["computed"] == {"count": 3}
    assert len(copies["Top"]["relations"]["parts"]) == 3
    other = await read(client, space, trade.customers)
    labels = [one["label"] for one in other["fields"]]
    assert labels.count("Goods copy") == 2
    seen = (await client.get(f"/v1/records/{trade.buyer}")).json()["data"]["relations"]
    parts = [mapping[one] for one in trade.parts]
    shown = [targets for key, targets in seen.items() if key.startswith("goods_copy")]
    assert shown == [parts, parts], "the order of the other sides is the copy's too"


@pytest.mark.long
async def test_the_relations_of_a_copy_are_its_own(
    client: Client, space: Space, trade: Trade
) -> None:
    _, copies = await copied(client, space, trade)
    changed: Json = {"relations": {"parent": [], "customer": []}}
    first = f"/v1/records/{copies['Part 0']['id']}"
    assert (await client.patch(first, json=changed)).status_code == 200
    assert len(await records(client, trade.goods)) == 4
    kept = (await client.get(f"/v1/records/{trade.top}")).json()["data"]
    assert len(kept["relations"]["parts"]) == 3


async def linked(space: Space, record_id: str) -> int:
    async with space.database.transaction() as work:
        found: int = await work.scalar(
            select(func.count()).where(record_link.c.record_id == UUID(record_id))
        )
        return found


async def test_content_of_records_and_templates_is_copied(client: Client, space: Space) -> None:
    source = await made(client, space)
    path = f"/v1/databases/{source['id']}"
    template = await post(client, f"{path}/record-templates", label="T")
    one = await post(client, f"{path}/records", title="R")
    surface = await client.post(f"/v1/records/{one['id']}/content-surface")
    assert surface.status_code < 300, surface.text
    for surface_id in (template["contentSurfaceId"], surface.json()["data"]["id"]):
        body = {"kind": "paragraph", "content": {"text": [{"text": "Hello"}]}}
        path = f"/v1/surfaces/{surface_id}/blocks"
        answer = await client.post(path, json={"blocks": [body]})
        assert answer.status_code == 201, answer.text
    copying = await duplicate(space.database, space.actor, UUID(source["id"]))
    assert await copying.finish() == DONE
    (copy,) = await records(client, copying.copy_id)
    (copied,) = (await client.get(f"/v1/databases/{copying.copy_id}/record-templates")).json()[
        "data"
    ]["templates"]
    ids = {copy["contentSurfaceId"], copied["contentSurfaceId"]}
    assert ids.isdisjoint({template["contentSurfaceId"], surface.json()["data"]["id"]})
    for surface_id in ids:
        blocks = (await client.get(f"/v1/surfaces/{surface_id}")).json()["data"]["blocks"]
        assert [block["content"]["text"][0]["text"] for block in blocks] == ["Hello"]


async def everything_seen(client: Client, space: Space) -> Any:
    databases = (await client.get(f"{space.path}/databases")).json()["data"]["databases"]
    items = (await client.get("/v1/items")).json()["data"]["items"]
    return [one["id"] for one in databases], [one["id"] for one in items]


@pytest.mark.long
@pytest.mark.parametrize("count", [0, 1, 99, 100, 101, 1_000])
async def test_a_copy_is_not_visible_before_it_is_whole(
    client: Client, space: Space, count: int
) -> None:
    source = await made(client, space)
    await fill(space.database, space.id, UUID(source["id"]), count)
    before = await everything_seen(client, space)
    copying = await duplicate(space.database, space.actor, UUID(source["id"]))
    nowhere = await client.get(f"{space.path}/databases/{uuid4()}")
    while await copying.step() == MORE:
        assert await everything_seen(client, space) == before
        for path in (
            f"{space.path}/databases/{copying.copy_id}",
            f"/v1/databases/{copying.copy_id}/records",
            f"/v1/databases/{copying.copy_id}/views",
        ):
            answer = await client.get(path)
            assert answer.status_code == 404
        assert (await client.get(f"{space.path}/databases/{copying.copy_id}")).content == (
            nowhere.content
        )
        found = await client.get(f"{space.path}/search", params={"q": "Record"})
        assert str(copying.copy_id) not in found.text
        async with space.database.transaction() as work:
            some = await work.scalar(
                select(record.c.id).where(record.c.database_id == copying.copy_id).limit(1)
            )
        if some is not None:
            assert (await client.get(f"/v1/records/{some}")).status_code == 404
    assert len(await records(client, copying.copy_id)) == count


class FailsAt(DatabaseCopies):
    """Copies that fail after this number of records."""

    def __init__(self, k: int, size: int = 100) -> None:
        super().__init__(size)
        self._k = k

    async def advance(self, work: UnitOfWork, job: Any) -> JsonObject | None:
        progress = await super().advance(work, job)
        count = await work.scalar(select(func.count()).where(record.c.database_id == job.id))
        if count >= self._k:
            raise ConflictError("Something cannot be copied.")
        return progress


@pytest.mark.long
@pytest.mark.parametrize("k", [0, 1, 100, 101, 250, 400, 777, 900, 999, 1_000])
async def test_a_copy_that_fails_leaves_nothing(client: Client, space: Space, k: int) -> None:
    target = await made(client, space, label="T", fields=[])
    relation = {"label": "R", "kind": "relation", "settings": {"databaseId": target["id"]}}
    source = await made(client, space, fields=[*FIELDS, relation])
    await fill(space.database, space.id, UUID(source["id"]), 1_000)
    before = await everything_seen(client, space)
    unchanged = await read(client, space, target["id"])
    copying = await duplicate(space.database, space.actor, UUID(source["id"]), chunks=FailsAt(k))
    assert await copying.finish() == FAILED
    assert await copying.left() == {}
    assert await everything_seen(client, space) == before
    assert await read(client, space, target["id"]) == unchanged
    row = await copying.row()
    assert (row.status, row.error) == ("failed", "Something cannot be copied.")
    assert await copying.step() == "closed"


async def test_a_copy_reverted_at_any_step_leaves_nothing(client: Client, space: Space) -> None:
    source = await made(client, space)
    await fill(space.database, space.id, UUID(source["id"]), 300)
    for steps in range(6):
        copying = await duplicate(space.database, space.actor, UUID(source["id"]))
        outcomes = [await copying.step() for _ in range(steps)]
        assert DONE not in outcomes[:-1]
        await copying.take_back()
        if DONE in outcomes:
            assert len(await records(client, copying.copy_id)) == 300
        else:
            assert await copying.left() == {}


class DiesAt(DatabaseCopies):
    """Copies whose worker dies in the middle of one of the transactions."""

    def __init__(self, chunk: int) -> None:
        super().__init__(100)
        self._left = chunk

    async def advance(self, work: UnitOfWork, job: Any) -> JsonObject | None:
        progress = await super().advance(work, job)
        self._left -= 1
        if self._left == 0:
            raise RuntimeError("killed")
        return progress


@pytest.mark.parametrize("chunk", [1, 2, 3, 4, 5])
async def test_a_chunk_that_is_repeated_copies_nothing_twice(
    client: Client, space: Space, chunk: int
) -> None:
    source = await made(client, space)
    await fill(space.database, space.id, UUID(source["id"]), 250)
    copying = await duplicate(space.database, space.actor, UUID(source["id"]), chunks=DiesAt(chunk))
    deaths = 0
    while True:
        try:
            outcome = await copying.step()
        except RuntimeError:
            deaths += 1
            continue
        if outcome == DONE:
            break
    assert deaths == 1
    here = [plain(one) for one in await records(client, copying.copy_id)]
    assert len(here) == 250
    assert sorted(one["title"] for one in here) == sorted(
        one["title"] for one in await records(client, source["id"])
    )


async def test_fields_that_change_meanwhile_end_a_copy(client: Client, space: Space) -> None:
    source = await made(client, space)
    await fill(space.database, space.id, UUID(source["id"]), 300)
    copying = await duplicate(space.database, space.actor, UUID(source["id"]))
    assert [await copying.step(), await copying.step()] == [MORE, MORE]
    await post(client, f"/v1/databases/{source['id']}/fields", label="More", kind="text")
    assert await copying.finish() == FAILED
    assert await copying.left() == {}
    assert "fields were changed" in (await copying.row()).error


async def test_options_that_grow_meanwhile_are_the_copys_too(client: Client, space: Space) -> None:
    tags = {"label": "Tags", "kind": "multi_select", "settings": {"allowCreate": True}}
    source = await made(client, space, fields=[*FIELDS, tags])
    path = f"/v1/databases/{source['id']}/records"
    await fill(space.database, space.id, UUID(source["id"]), 150)
    copying = await duplicate(space.database, space.actor, UUID(source["id"]))
    assert [await copying.step(), await copying.step()] == [MORE, MORE]
    last = max(await records(client, source["id"]), key=lambda one: one["id"])
    answer = await client.patch(f"/v1/records/{last['id']}", json={"data": {"tags": ["New"]}})
    assert answer.status_code == 200
    late = await post(client, path, title="Too late")
    async with space.database.transaction() as work:
        # Wherever its id stands among those of the others.
        values = {"id": UUID(int=2**128 - 1 - UUID(late["id"]).int % 2**60)}
        await work.execute(update(record).where(record.c.id == UUID(late["id"])).values(**values))
    assert await copying.finish() == DONE
    copy = await read(client, space, copying.copy_id)
    options = next(one["options"] for one in copy["fields"] if one["key"] == "tags")
    assert [option["name"] for option in options] == ["New"]
    here = await records(client, copying.copy_id)
    assert len(here) == 150
    assert [one["data"]["tags"] for one in here if "tags" in one["data"]] == [["new"]]


async def test_options_that_go_meanwhile_end_a_copy(client: Client, space: Space) -> None:
    source = await made(client, space)
    await fill(space.database, space.id, UUID(source["id"]), 150)
    copying = await duplicate(space.database, space.actor, UUID(source["id"]))
    assert [await copying.step(), await copying.step()] == [MORE, MORE]
    state = next(one for one in source["fields"] if one["key"] == "state")
    path = f"/v1/databases/{source['id']}/fields/{state['id']}"
    answer = await client.patch(path, json={"options": [{"name": "Open", "key": "open"}]})
    assert answer.status_code == 200, answer.text
    assert await copying.finish() == FAILED
    assert await copying.left() == {}


async def test_a_source_that_goes_meanwhile_ends_a_copy(client: Client, space: Space) -> None:
    source = await made(client, space)
    await fill(space.database, space.id, UUID(source["id"]), 300)
    copying = await duplicate(space.database, space.actor, UUID(source["id"]))
    assert await copying.step() == MORE
    await client.delete(f"/v1/items/{source['itemId']}")
    assert await copying.finish() == FAILED
    assert await copying.left() == {}


async def member(space: Space, role: Role) -> tuple[UUID, Actor, str]:
    user_id, token = await space.member(role)
    principal = space.actor.principal
    own = type(principal)(type=principal.type, id=user_id, user_id=user_id)
    actor = Actor(
        principal=own,
        workspace_id=space.id,
        role=role,
        scopes=own.effective_scopes(role),
    )
    return user_id, actor, token


async def test_a_member_who_loses_access_meanwhile_gets_no_copy(
    client: Client, space: Space
) -> None:
    source = await made(client, space)
    user_id, actor, _ = await member(space, Role.EDITOR)
    copying = await duplicate(space.database, actor, UUID(source["id"]))
    assert await copying.step() == MORE
    async with space.database.transaction() as work:
        await work.execute(
            update(workspace_member)
            .where(workspace_member.c.user_id == user_id)
            .values(role=Role.VIEWER.value)
        )
    assert await copying.finish() == FAILED
    assert await copying.left() == {}
    gone, actor, _ = await member(space, Role.EDITOR)
    copying = await duplicate(space.database, actor, UUID(source["id"]))
    await space.remove(gone)
    assert await copying.finish() == FAILED
    assert await copying.left() == {}


async def test_a_member_who_loses_access_to_the_other_side_gets_no_copy(
    client: Client, space: Space
) -> None:
    target = await made(client, space, label="T", fields=[])
    relation = {"label": "R", "kind": "relation", "settings": {"databaseId": target["id"]}}
    source = await made(client, space, fields=[relation])
    _, actor, _ = await member(space, Role.EDITOR)
    copying = await duplicate(space.database, actor, UUID(source["id"]))
    assert await copying.step() == MORE
    await restrict(space, target["itemId"])
    assert await copying.finish() == FAILED
    assert await copying.left() == {}
    assert len((await read(client, space, target["id"]))["fields"]) == 2


async def restrict(space: Space, item_id: str) -> None:
    async with space.database.transaction() as work:
        await work.execute(
            update(item).where(item.c.id == UUID(item_id)).values(access_mode="restricted")
        )


async def test_a_member_who_copies_a_restricted_database_has_the_copy(
    client: Client, space: Space
) -> None:
    source = await made(client, space)
    await restrict(space, source["itemId"])
    user_id, actor, token = await member(space, Role.EDITOR)
    async with space.database.transaction() as work:
        await work.execute(
            insert(item_grant).values(
                workspace_id=space.id,
                item_id=UUID(source["itemId"]),
                user_id=user_id,
                level=Level.VIEW.value,
                created_at=work.now,
                updated_at=work.now,
            )
        )
    copying = await duplicate(space.database, actor, UUID(source["id"]))
    assert await copying.finish() == DONE
    editor = client.with_token(token)
    await post(editor, f"/v1/databases/{copying.copy_id}/records", title="Mine")
    assert (await editor.post(f"/v1/databases/{source['id']}/records", json={})).status_code == 403


async def test_a_relation_into_a_database_that_is_not_edited_is_left_out(
    client: Client, space: Space
) -> None:
    target = await made(client, space, label="T", fields=[])
    relation = {"label": "R", "kind": "relation", "settings": {"databaseId": target["id"]}}
    counted = {"relationFieldKey": "r", "targetFieldKey": "title", "aggregate": "count"}
    rollup = {"label": "Linked", "kind": "rollup", "settings": counted}
    twice = {"expression": "record.linked * 2.0", "resultKind": "number"}
    formula = {"label": "Twice", "kind": "formula", "settings": twice}
    code = {"label": "Code", "kind": "text"}
    manifest = {"filter": {"field": "r", "op": "is_empty"}, "sorts": [{"field": "twice"}]}
    source = await made(client, space, fields=[code, relation])
    path = f"/v1/databases/{source['id']}"
    linked: list[dict[str, Any]] = [rollup, formula]
    for one in linked:
        await post(client, f"{path}/fields", **one)
    await post(client, f"{path}/views", label="Loose", manifest=manifest)
    there = await post(client, f"/v1/databases/{target['id']}/records", title="There")
    await post(client, f"{path}/records", title="A", relations={"r": [there["id"]]})
    unchanged = await read(client, space, target["id"])
    _, actor, token = await member(space, Role.EDITOR)
    await restrict(space, target["itemId"])
    copying = await duplicate(space.database, actor, UUID(source["id"]))
    assert await copying.finish() == DONE, (await copying.row()).error
    copy = await read(client.with_token(token), space, copying.copy_id)
    assert [one["key"] for one in copy["fields"]] == ["title", "code"]
    assert copy["recordLayout"]["propertyOrder"] == ["code"]
    assert [one["manifest"] for one in copy["views"] if one["label"] == "Loose"] == [{"sorts": []}]
    (only,) = await records(client, copying.copy_id)
    assert (only["title"], only["relations"], only["computed"]) == ("A", {}, {})
    assert await read(client, space, target["id"]) == unchanged
    whole = await duplicate(space.database, space.actor, UUID(source["id"]))
    assert await whole.finish() == DONE
    copy = await read(client, space, whole.copy_id)
    assert [one["key"] for one in copy["fields"]] == ["title", "code", "r", "linked", "twice"]


async def test_personal_views_go_with_their_owner_alone(client: Client, space: Space) -> None:
    source = await made(client, space)
    _, actor, token = await member(space, Role.EDITOR)
    path = f"/v1/databases/{source['id']}/views"
    await post(client, path, label="The owner's", scope="personal")
    await post(client.with_token(token), path, label="The editor's", scope="personal")
    copying = await duplicate(space.database, actor, UUID(source["id"]))
    assert await copying.finish() == DONE
    mine = (await read(client.with_token(token), space, copying.copy_id))["views"]
    assert [one["label"] for one in mine] == ["All records", "The editor's"]
    assert [one["label"] for one in (await read(client, space, copying.copy_id))["views"]] == [
        "All records"
    ]


async def test_a_copy_is_as_closed_as_its_source(client: Client, space: Space) -> None:
    source = await made(client, space)
    await restrict(space, source["itemId"])
    copying = await duplicate(space.database, space.actor, UUID(source["id"]))
    assert await copying.finish() == DONE
    _, _, token = await member(space, Role.EDITOR)
    editor = client.with_token(token)
    assert (await editor.get(f"{space.path}/databases/{copying.copy_id}")).status_code == 404
    assert (await client.get(f"{space.path}/databases/{copying.copy_id}")).status_code == 200


async def test_a_copy_is_asked_for_once(client: Client, space: Space) -> None:
    source = await made(client, space)
    copying = await duplicate(space.database, space.actor, UUID(source["id"]))
    body = DuplicateDatabase.model_validate({"includeRecords": True})
    async with space.database.transaction() as work:
        await accept_copy(work, space.actor, UUID(source["id"]), copying.copy_id, body)
    assert await copying.finish() == DONE
    async with space.database.transaction() as work:
        count = select(func.count()).where(database_table.c.workspace_id == space.id)
        assert await work.scalar(count) == 2


async def test_values_of_removed_fields_and_timers_stay_behind(
    client: Client, space: Space
) -> None:
    timer = {"label": "Time", "kind": "timer"}
    source = await made(client, space, fields=[*FIELDS, timer])
    await fill(space.database, space.id, UUID(source["id"]), 3)
    async with space.database.transaction() as work:
        await work.execute(
            text(
                'UPDATE record SET computed = \'{"time": {"totalMs": 5}}\','
                " data = data || '{\"old\": 1}' WHERE database_id = :id"
            ),
            {"id": source["id"]},
        )
        await work.execute(
            text(
                "INSERT INTO removed_field (id, workspace_id, database_id, key, removed_at)"
                " VALUES (gen_random_uuid(), :workspace_id, :id, 'old', now())"
            ),
            {"id": source["id"], "workspace_id": space.id},
        )
    copying = await duplicate(space.database, space.actor, UUID(source["id"]))
    assert await copying.finish() == DONE
    async with space.database.transaction() as work:
        rows = await work.rows(
            select(record.c.data, record.c.computed).where(record.c.database_id == copying.copy_id)
        )
    assert [(sorted(row.data), row.computed) for row in rows] == [(["code", "price"], {})] * 3


@pytest.mark.parametrize("item", [False, True])
async def test_copying_needs_the_scopes_of_reading_and_writing(
    client: Client, space: Space, item: bool
) -> None:
    source = await made(client, space)
    path = f"/v1/items/{source['itemId']}" if item else f"{space.path}/databases/{source['id']}"
    body = {} if item else {"includeRecords": True}
    for lacking in ("databases:read", "databases:write", "records:read", "records:write"):
        key = client.with_token(await space.key(one for one in Scope if one != lacking))
        answer = await key.post(f"{path}/duplicate", json=body)
        assert (answer.status_code, lacking in answer.text) == (403, True)
    async with space.database.transaction() as work:
        assert await work.scalar(select(func.count()).where(job.c.workspace_id == space.id)) == 0


async def test_a_copy_without_records_needs_no_scope_of_records(
    client: Client, space: Space
) -> None:
    source = await made(client, space)
    scopes = frozenset({Scope.DATABASES_READ, Scope.DATABASES_WRITE})
    actor = replace(space.actor, scopes=scopes)
    copying = await duplicate(space.database, actor, UUID(source["id"]), records=False)
    assert await copying.finish() == DONE
