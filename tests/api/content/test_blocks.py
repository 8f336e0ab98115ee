"""Single blocks over HTTP: add, list, change, move, delete."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio

from tests.support.client import Client
from tests.support.spaces import Space
from tests.support.surfaces import Placed, make_surface


@pytest_asyncio.fixture
async def page(space: Space) -> Placed:
    return await make_surface(space)


def words(text: str, **more: Any) -> dict[str, Any]:
    return {"kind": "paragraph", "content": {"text": [{"text": text}]}, **more}


def said(block: dict[str, Any]) -> str:
    text: str = block["content"]["text"][0]["text"]
    return text


async def add(client: Client, page: Placed, *blocks: dict[str, Any], **more: Any) -> list[Any]:
    answer = await client.post(f"{page.path}/blocks", json={"blocks": list(blocks), **more})
    assert answer.status_code == 201, answer.text
    made: list[Any] = answer.json()["data"]["blocks"]
    return made


async def listed(client: Client, page: Placed, **query: Any) -> list[Any]:
    answer = await client.get(f"{page.path}/blocks", params=query)
    assert answer.status_code == 200, answer.text
    blocks: list[Any] = answer.json()["data"]["blocks"]
    return blocks


async def version(client: Client, page: Placed) -> int:
    found: int = (await client.get(page.path)).json()["data"]["version"]
    return found


async def test_blocks_are_added_in_order(client: Client, page: Placed) -> None:
    a, b = await add(client, page, words("a", children=[words("a1"), words("a2")]), words("b"))
    assert [said(block) for block in a["children"]] == ["a1", "a2"]
    (c,) = await add(client, page, words("c"))
    (between,) = await add(client, page, words("between", order=0.5))
    blocks = await listed(client, page)
    assert [said(block) for block in blocks] == ["a", "between", "b", "c"]
    assert [block["hasChildren"] for block in blocks] == [True, False, False, False]
    (a3,) = await add(client, page, words("a3"), parentBlockId=a["id"])
    assert a3["parentBlockId"] == a["id"]
    inner = await listed(client, page, parentBlockId=a["id"])
    assert [said(block) for block in inner] == ["a1", "a2", "a3"]
    assert c["order"] > b["order"] > between["order"]
    one = await client.get(f"{page.path}/blocks/{a['id']}")
    assert one.json()["data"] == blocks[0]


async def test_blocks_follow_a_sibling_however_often(client: Client, page: Placed) -> None:
    first, last = await add(client, page, words("first"), words("last"))
    for number in range(60):
        await add(client, page, words(str(number)), afterBlockId=first["id"])
    texts = [said(block) for block in await listed(client, page, limit="100")]
    assert texts == ["first", *map(str, reversed(range(60))), "last"]
    (top,) = await add(client, page, words("top"), afterBlockId=None)
    place = f"{page.path}/blocks/{last['id']}"
    moved = await client.patch(place, json={"afterBlockId": top["id"]})
    assert moved.status_code == 200, moved.text
    assert [said(block) for block in await listed(client, page)][:3] == ["top", "last", "first"]
    itself = await client.patch(place, json={"afterBlockId": last["id"]})
    assert itself.status_code == 400
    elsewhere = await client.patch(place, json={"afterBlockId": str(uuid4())})
    assert elsewhere.status_code == 404


async def test_a_block_that_someone_else_changed_is_left_unchanged(
    client: Client, page: Placed
) -> None:
    one, other = await add(client, page, words("one"), words("other"))
    known = {"expectedUpdatedAt": one["updatedAt"]}
    await client.patch(f"{page.path}/blocks/{other['id']}", json=words("changed"))
    place = f"{page.path}/blocks/{one['id']}"
    mine = await client.patch(place, json={**words("mine"), **known})
    assert mine.status_code == 200, mine.text
    theirs = await client.patch(place, json={**words("theirs"), **known})
    assert theirs.status_code == 409
    assert [said(block) for block in await listed(client, page)] == ["mine", "changed"]


async def test_a_list_continues_where_it_ended(client: Client, page: Placed) -> None:
    await add(client, page, *(words(str(number)) for number in range(7)))
    seen: list[str] = []
    cursor: str | None = None
    while True:
        query = {"limit": "3", **({} if cursor is None else {"cursor": cursor})}
        answer = (await client.get(f"{page.path}/blocks", params=query)).json()["data"]
        seen += [said(block) for block in answer["blocks"]]
        cursor = answer["cursor"]
        if cursor is None:
            break
    assert seen == [str(number) for number in range(7)]
    other = await client.get(f"{page.path}/blocks", params={"cursor": "x"})
    assert other.status_code == 400


async def test_500_at_once_with_those_nested(client: Client, page: Placed) -> None:
    tree = {"kind": "toggle", "children": [{"kind": "divider"}] * 499}
    (made,) = await add(client, page, tree)
    assert len(made["children"]) == 499
    for blocks in ([{"kind": "divider"}] * 501, [tree, {"kind": "divider"}], []):
        answer = await client.post(f"{page.path}/blocks", json={"blocks": blocks})
        assert answer.status_code == 400
        assert answer.json()["details"][0]["path"] == "blocks"
    assert len(await listed(client, page)) == 1


async def test_an_id_in_use_is_a_conflict(client: Client, page: Placed) -> None:
    chosen = str(uuid4())
    await add(client, page, words("a", id=chosen))
    answer = await client.post(f"{page.path}/blocks", json={"blocks": [words("b", id=chosen)]})
    assert answer.status_code == 409
    assert [said(block) for block in await listed(client, page)] == ["a"]


async def test_a_change_replaces_what_it_names(client: Client, page: Placed) -> None:
    (made,) = await add(client, page, words("a", children=[words("inner")]))
    path = f"{page.path}/blocks/{made['id']}"
    content = {"text": [{"text": "b", "marks": ["bold"]}]}
    answer = await client.patch(path, json={"content": content, "order": 7})
    changed = answer.json()["data"]
    assert changed["version"] == 3
    assert changed["block"]["content"] == content
    assert changed["block"]["order"] == 7
    assert changed["block"]["hasChildren"] is True
    assert changed["block"]["updatedAt"] > made["updatedAt"]
    turned = await client.patch(path, json={"kind": "to_do"})
    assert turned.json()["data"]["block"]["content"] == {**content, "checked": False}
    # A divider takes neither the text nor what is nested.
    for body, place in [
        ({"kind": "divider", "content": {}}, "kind"),
        ({"kind": "divider"}, "kind"),
        ({"kind": "nothing"}, "kind"),
        ({"kind": "column"}, "kind"),
        ({"content": {"checked": 1}}, "content.checked"),
        ({"x": 1}, "x"),
        ({"order": None, "children": []}, "children"),
    ]:
        refused = await client.patch(path, json=body)
        assert refused.status_code == 400, body
        assert refused.json()["details"][0]["path"] == place
    assert await version(client, page) == 4


async def test_a_move_takes_along_what_is_nested(client: Client, page: Placed) -> None:
    a, b = await add(client, page, words("a", children=[words("a1")]), words("b"))
    path = f"{page.path}/blocks/{a['id']}"
    moved = await client.patch(path, json={"parentBlockId": b["id"]})
    assert moved.json()["data"]["block"]["parentBlockId"] == b["id"]
    top = await listed(client, page)
    assert [said(block) for block in top] == ["b"]
    (inner,) = await listed(client, page, parentBlockId=a["id"])
    assert said(inner) == "a1"
    back = await client.patch(path, json={"parentBlockId": None})
    assert "parentBlockId" not in back.json()["data"]["block"]
    assert [said(block) for block in await listed(client, page)] == ["b", "a"]


async def test_a_move_makes_no_circle(client: Client, page: Placed) -> None:
    (a,) = await add(client, page, words("a", children=[words("b", children=[words("c")])]))
    c = a["children"][0]["children"][0]
    for target in (a["id"], a["children"][0]["id"], c["id"]):
        answer = await client.patch(f"{page.path}/blocks/{a['id']}", json={"parentBlockId": target})
        assert answer.status_code == 400
        assert answer.json()["details"][0]["path"] == "parentBlockId"


async def test_of_two_moves_into_each_other_one_is_refused(client: Client, page: Placed) -> None:
    for _ in range(5):
        a, b = await add(client, page, words("a"), words("b"))
        answers = await asyncio.gather(
            client.patch(f"{page.path}/blocks/{a['id']}", json={"parentBlockId": b["id"]}),
            client.patch(f"{page.path}/blocks/{b['id']}", json={"parentBlockId": a["id"]}),
        )
        assert sorted(answer.status_code for answer in answers) == [200, 400]


async def test_a_move_keeps_to_twenty_levels(client: Client, page: Placed) -> None:
    deep: dict[str, Any] = words("leaf")
    for _ in range(18):
        deep = words("level", children=[deep])
    (tower,) = await add(client, page, deep)
    (pair,) = await add(client, page, words("pair", children=[words("x")]))
    bottom = tower
    while bottom["children"]:
        bottom = bottom["children"][0]
    refused = await client.patch(
        f"{page.path}/blocks/{pair['id']}", json={"parentBlockId": bottom["id"]}
    )
    assert refused.status_code == 400
    inner = pair["children"][0]["id"]
    fits = await client.patch(f"{page.path}/blocks/{inner}", json={"parentBlockId": bottom["id"]})
    assert fits.status_code == 200
    more = await client.post(
        f"{page.path}/blocks", json={"blocks": [words("y")], "parentBlockId": inner}
    )
    assert more.status_code == 400


async def test_columns_stand_in_column_lists_alone(client: Client, page: Placed) -> None:
    column = {"kind": "column", "content": {"ratio": 0.5}, "children": [words("x")]}
    (columns,) = await add(client, page, {"kind": "column_list", "children": [column, column]})
    (other,) = await add(client, page, words("other"))
    first = columns["children"][0]["id"]
    for block, target in [
        (first, None),
        (first, other["id"]),
        (other["id"], columns["id"]),
    ]:
        answer = await client.patch(f"{page.path}/blocks/{block}", json={"parentBlockId": target})
        assert answer.status_code == 400
    into = await client.patch(f"{page.path}/blocks/{other['id']}", json={"parentBlockId": first})
    assert into.status_code == 200
    turned = await client.patch(f"{page.path}/blocks/{columns['id']}", json={"kind": "toggle"})
    assert turned.status_code == 400


async def test_delete_takes_along_what_is_nested(client: Client, page: Placed) -> None:
    a, _ = await add(client, page, words("a", children=[words("a1")]), words("b"))
    inner = a["children"][0]["id"]
    answer = await client.delete(f"{page.path}/blocks/{a['id']}")
    assert answer.json()["data"] == {"id": a["id"], "version": 3}
    assert [said(block) for block in await listed(client, page)] == ["b"]
    assert (await client.get(f"{page.path}/blocks/{inner}")).status_code == 404
    assert (await client.delete(f"{page.path}/blocks/{a['id']}")).status_code == 404


async def test_writes_of_a_stale_version_are_conflicts(client: Client, page: Placed) -> None:
    (made,) = await add(client, page, words("a"))
    path = f"{page.path}/blocks/{made['id']}"
    stale, fresh = {"If-Match": "1"}, {"If-Match": '"2"'}
    body = {"blocks": [words("b")]}
    assert (await client.post(f"{page.path}/blocks", json=body, headers=stale)).status_code == 409
    assert (await client.patch(path, json={"order": 1}, headers=stale)).status_code == 409
    assert (await client.delete(path, headers=stale)).status_code == 409
    assert await version(client, page) == 2
    assert (await client.delete(path, headers=fresh)).status_code == 200


async def test_blocks_of_other_surfaces_are_not_there(
    client: Client, space: Space, page: Placed
) -> None:
    other = await make_surface(space)
    (mine,) = await add(client, page, words("mine"))
    (theirs,) = await add(client, other, words("theirs"))
    for method, body in [("GET", None), ("PATCH", {"order": 1}), ("DELETE", None)]:
        elsewhere = await client.request(method, f"{page.path}/blocks/{theirs['id']}", json=body)
        unknown = await client.request(method, f"{page.path}/blocks/{uuid4()}", json=body)
        assert elsewhere.status_code == 404
        assert elsewhere.content == unknown.content
    for target in (theirs["id"], str(uuid4())):
        answers = [
            await client.post(
                f"{page.path}/blocks", json={"blocks": [words("x")], "parentBlockId": target}
            ),
            await client.patch(f"{page.path}/blocks/{mine['id']}", json={"parentBlockId": target}),
            await client.get(f"{page.path}/blocks", params={"parentBlockId": target}),
        ]
        assert [answer.status_code for answer in answers] == [404] * 3
    assert await version(client, other) == 2


async def test_concurrent_additions_all_count(client: Client, page: Placed) -> None:
    await asyncio.gather(*(add(client, page, words(str(number))) for number in range(8)))
    blocks = await listed(client, page)
    assert sorted(said(block) for block in blocks) == [str(number) for number in range(8)]
    assert sorted(block["order"] for block in blocks) == list(range(8))
    assert await version(client, page) == 9


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"w": 13}, "w"),
        ({"x": 9}, "w"),
        ({"y": None}, "y"),
        ({"kind": "view", "content": {}}, "content.viewId"),
    ],
    ids=["wide", "beyond", "nowhere", "content"],
)
async def test_a_widget_keeps_to_the_grid(
    client: Client, space: Space, change: dict[str, Any], path: str
) -> None:
    dashboard = await make_surface(space, "dashboard")
    (made,) = await add(client, dashboard, {"kind": "text", "x": 0, "y": 0, "w": 4, "h": 2})
    at = f"{dashboard.path}/blocks/{made['id']}"
    answer = await client.patch(at, json=change)
    assert answer.status_code == 400
    assert answer.json()["details"][0]["path"] == path
    moved = await client.patch(at, json={"x": 8, "y": 3})
    assert {key: moved.json()["data"]["block"][key] for key in "xywh"} == {
        "x": 8, "y": 3, "w": 4, "h": 2,
    }  # fmt: skip
