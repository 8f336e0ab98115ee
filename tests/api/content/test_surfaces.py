"""Surfaces over HTTP: content as a whole, its bounds, its versions."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio

from tests.support.client import Client
from tests.support.spaces import Space
from tests.support.surfaces import (
    Placed,
    make_surface,
    plain,
    put,
    words,
)


@pytest_asyncio.fixture
async def page(space: Space) -> Placed:
    return await make_surface(space)


async def read(client: Client, placed: Placed) -> Any:
    answer = await client.get(placed.path)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


async def test_a_new_surface_is_empty(client: Client, space: Space, page: Placed) -> None:
    found = await read(client, page)
    assert found.keys() == {
        "id", "workspaceId", "itemId", "kind", "version", "settings", "blocks",
        "createdAt", "updatedAt",
    }  # fmt: skip
    assert found["itemId"] == str(page.item_id)
    assert found["workspaceId"] == str(space.id)
    assert (found["kind"], found["version"], found["settings"]) == ("page", 1, {})
    assert found["blocks"] == []


async def test_a_surface_is_created_with_content(client: Client, space: Space) -> None:
    content = {"settings": {"width": "full"}, "blocks": [words("a", children=[words("b")])]}
    found = await read(client, await make_surface(space, "note", content))
    assert found["settings"] == {"width": "full"}
    assert plain(found["blocks"]) == [["a", [["b"]]]]


async def test_put_replaces_the_whole_content(client: Client, page: Placed) -> None:
    first = await put(
        client, page, [words("a"), words("b", children=[words("c")])], settings={"font": "serif"}
    )
    assert first["version"] == 2
    assert plain(first["blocks"]) == [["a"], ["b", [["c"]]]]
    a, b = first["blocks"]
    (c,) = b["children"]
    assert c["parentBlockId"] == b["id"]
    # c leaves b, b goes: c must outlive it, and stay the block it was.
    second = await put(client, page, [words("c", id=c["id"]), words("a!", id=a["id"])])
    assert plain(second["blocks"]) == [["c"], ["a!"]]
    assert second["settings"] == {}
    assert second["version"] == 3
    kept, changed = second["blocks"]
    assert (kept["createdAt"], changed["createdAt"]) == (c["createdAt"], a["createdAt"])
    assert changed["updatedAt"] > a["updatedAt"]
    assert await read(client, page) == second


async def test_a_block_that_a_put_leaves_alone_keeps_its_time(client: Client, page: Placed) -> None:
    before = await put(client, page, [words("same"), words("other")])
    same, other = before["blocks"]
    after = await put(client, page, [words("same", id=same["id"]), words("new", id=other["id"])])
    assert after["blocks"][0] == same
    assert after["blocks"][1]["updatedAt"] > other["updatedAt"]


async def test_ids_are_the_clients_to_choose_and_undo_brings_blocks_back(
    client: Client, page: Placed
) -> None:
    chosen = str(uuid4())
    await put(client, page, [words("mine", id=chosen)])
    await put(client, page, [])
    again = await put(client, page, [words("mine", id=chosen)])
    assert [block["id"] for block in again["blocks"]] == [chosen]
    answer = await client.put(page.path, json={"blocks": [words("a", id=chosen)] * 2})
    assert answer.status_code == 400
    assert answer.json()["details"][0]["path"] == "blocks.1.id"


async def test_the_same_block_id_on_two_surfaces(
    client: Client, space: Space, foreign: Space, page: Placed
) -> None:
    """An id chosen on one surface says nothing about another, of this or of another workspace."""
    chosen = str(uuid4())
    await put(client, page, [words("first", id=chosen)])
    other = await make_surface(space)
    await put(client, other, [words("second", id=chosen)])
    theirs = await make_surface(foreign)
    await put(client.with_token(foreign.token), theirs, [words("third", id=chosen)])
    assert plain((await read(client, page))["blocks"]) == [["first"]]
    assert plain((await read(client, other))["blocks"]) == [["second"]]


async def test_a_stale_version_changes_nothing(client: Client, page: Placed) -> None:
    await put(client, page, [words("a")], expectedVersion=1)
    body: dict[str, Any] = {"blocks": [words("b")]}
    for headers, expected in [({"If-Match": '"1"'}, {}), ({}, {"expectedVersion": 1})]:
        answer = await client.put(page.path, json={**body, **expected}, headers=headers)
        assert (answer.status_code, answer.json()["_tag"]) == (409, "ApiConflict")
    assert plain((await read(client, page))["blocks"]) == [["a"]]
    for header in ("2", "*"):
        answer = await client.put(page.path, json=body, headers={"If-Match": header})
        assert answer.status_code == 200
    for header in ("yesterday", "0", "-1", "1e3", "9" * 30):
        answer = await client.put(page.path, json=body, headers={"If-Match": header})
        assert answer.status_code == 400
        assert answer.json()["details"][0]["path"] == "If-Match"


async def test_of_concurrent_puts_of_one_version_one_wins(client: Client, page: Placed) -> None:
    async def attempt(text: str) -> int:
        body = {"blocks": [words(text)] * 20, "expectedVersion": 1}
        return (await client.put(page.path, json=body)).status_code

    statuses = await asyncio.gather(*(attempt(str(number)) for number in range(8)))
    assert sorted(statuses) == [200] + [409] * 7
    found = await read(client, page)
    assert found["version"] == 2
    winner = str(statuses.index(200))
    assert plain(found["blocks"]) == [[winner]] * 20


async def test_concurrent_puts_without_a_version_never_mix(client: Client, page: Placed) -> None:
    async def attempt(text: str) -> int:
        return (await client.put(page.path, json={"blocks": [words(text)] * 20})).status_code

    statuses = await asyncio.gather(*(attempt(str(number)) for number in range(6)))
    assert statuses == [200] * 6
    found = await read(client, page)
    assert found["version"] == 7
    assert len(found["blocks"]) == 20
    assert len({str(one) for one in plain(found["blocks"])}) == 1


async def test_a_put_repeated_under_its_key_happens_once(client: Client, page: Placed) -> None:
    headers = {"Idempotency-Key": "k"}
    body = {"blocks": [words("a")]}
    first = await client.put(page.path, json=body, headers=headers)
    second = await client.put(page.path, json=body, headers=headers)
    assert second.content == first.content
    assert second.headers["Idempotency-Replayed"] == "true"
    assert (await read(client, page))["version"] == 2


DEEP: dict[str, Any] = words("leaf")
for _ in range(19):
    DEEP = words("level", children=[DEEP])


async def test_twenty_levels_and_no_more(client: Client, page: Placed) -> None:
    await put(client, page, [DEEP])
    answer = await client.put(page.path, json={"blocks": [words("one more", children=[DEEP])]})
    assert answer.status_code == 400
    assert "20 levels" in answer.json()["message"]


LINK = {"text": [{"text": "x", "link": "https://example.test/a"}]}


@pytest.mark.parametrize(
    ("block", "path"),
    [
        ({"kind": "banner"}, "kind"),
        ({"kind": 5}, "kind"),
        ({"kind": "sticky", "x": 0, "y": 0, "w": 1, "h": 1}, "kind"),
        ({"kind": "column"}, "kind"),
        ({"kind": "column_list", "children": [{"kind": "paragraph"}]}, "children.0.kind"),
        ({"kind": "divider", "children": [{"kind": "paragraph"}]}, "children.0.kind"),
        ({"kind": "paragraph", "content": []}, "content"),
        ({"kind": "paragraph", "content": {"text": 5}}, "content.text"),
        ({"kind": "paragraph", "content": {"texts": []}}, "content.texts"),
        ({"kind": "paragraph", "content": {"text": [{"text": 1}]}}, "content.text.0.text"),
        ({"kind": "paragraph", "content": {"text": [{}]}}, "content.text.0.text"),
        ({"kind": "paragraph", "content": {"color": "RED; drop"}}, "content.color"),
        ({"kind": "paragraph", "x": 1}, "x"),
        ({"kind": "paragraph", "position": 1}, "position"),
        ({"kind": "paragraph", "order": "1"}, "order"),
        ({"kind": "paragraph", "id": "1"}, "id"),
        ({"kind": "to_do", "content": {"checked": "yes"}}, "content.checked"),
        ({"kind": "image", "content": {}}, "content"),
        ({"kind": "image", "content": {"url": "javascript:alert(1)"}}, "content.url"),
        ({"kind": "embed", "content": {"url": "data:text/html,x"}}, "content.url"),
        ({"kind": "embed", "content": {"url": "https://a b"}}, "content.url"),
        ({"kind": "embed", "content": {"url": "https:\\\\evil.test"}}, "content.url"),
        ({"kind": "bookmark", "content": {"url": "mailto:a@b.test"}}, "content.url"),
        ({"kind": "record_link", "content": {"recordId": "x"}}, "content.recordId"),
        ({"kind": "table", "content": {"rows": [[[]], [[], []]]}}, "content"),
        ({"kind": "table", "content": {"rows": []}}, "content.rows"),
        ({"kind": "code", "content": {"code": "x" * 60_001}}, "content.code"),
        (
            {"kind": "table", "content": {"rows": [[[{"text": "x" * 9_000}]] * 10]}},
            "content",
        ),
        (
            {"kind": "quote", "content": {"text": [{"text": "x", "link": "ftp://a.test"}]}},
            "content.text.0.link",
        ),
        (
            {"kind": "quote", "content": {"text": [{"text": "x", "mention": {}}]}},
            "content.text.0.mention",
        ),
    ],
    ids=lambda value: value.replace(".", "-") if isinstance(value, str) else value["kind"],
)
async def test_a_bad_block_is_refused_at_its_place(
    client: Client, page: Placed, block: dict[str, Any], path: str
) -> None:
    answer = await client.put(page.path, json={"blocks": [words("fine"), block]})
    assert answer.status_code == 400, answer.text
    assert answer.json()["details"][0]["path"] == f"blocks.1.{path}"
    added = await client.post(f"{page.path}/blocks", json={"blocks": [words("fine"), block]})
    assert added.status_code == 400
    assert (await read(client, page))["version"] == 1


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"blocks": {}}',
        b'{"blocks": [], "name": "x"}',
        b'{"blocks": [], "expectedVersion": "1"}',
        b'{"blocks": [], "expectedVersion": 0}',
        b'{"blocks": [], "settings": []}',
        b'{"blocks": [{"kind": "code", "content": {"code": "\\u0000"}}]}',
        b'{"blocks": [{"kind": "code", "content": {"code": "\\ud800"}}]}',
        b'{"blocks": [{"kind": "paragraph", "order": 1e999}]}',
        b'{"blocks": [{"kind": "paragraph", "order": 1e300}]}',
    ],
)
async def test_a_bad_body_changes_nothing(client: Client, page: Placed, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    assert (await client.put(page.path, content=body, headers=headers)).status_code == 400
    assert (await read(client, page))["version"] == 1


async def test_settings_are_bounded(client: Client, page: Placed) -> None:
    deep: Any = {}
    for _ in range(20):
        deep = {"a": deep}
    for settings in ({"a": "x" * 70_000}, deep):
        answer = await client.put(page.path, json={"blocks": [], "settings": settings})
        assert answer.status_code == 400
        assert answer.json()["details"][0]["path"] == "settings"


@pytest.mark.long
async def test_a_surface_holds_5000_blocks_and_8_mib(client: Client, page: Placed) -> None:
    divider = {"kind": "divider"}
    answer = await client.put(page.path, json={"blocks": [words("x"), *[divider] * 4_999]})
    assert answer.status_code == 200
    more = await client.post(f"{page.path}/blocks", json={"blocks": [divider]})
    assert (more.status_code, more.json()["details"][0]["path"]) == (400, "blocks")
    nested = [{"kind": "toggle", "children": [divider] * 2_500}] * 2
    answer = await client.put(page.path, json={"blocks": nested})
    assert (answer.status_code, answer.json()["details"][0]["path"]) == (400, "blocks")
    assert (await read(client, page))["version"] == 2
    big = {"kind": "code", "content": {"code": "x" * 60_000}}
    await put(client, page, [big] * 130)
    more = await client.post(f"{page.path}/blocks", json={"blocks": [big] * 11})
    assert more.status_code == 400
    assert "8 MiB" in more.json()["message"]


CANVAS_FRAME = {"x": -10.5, "y": 2, "w": 100, "h": 50}


async def test_a_canvas_has_places_and_connectors(client: Client, space: Space) -> None:
    canvas = await make_surface(space, "canvas")
    one, two = str(uuid4()), str(uuid4())
    found = await put(
        client,
        canvas,
        [
            {"id": one, "kind": "sticky", "content": {"color": "yellow"}, **CANVAS_FRAME},
            {"id": two, "kind": "shape", "content": {"shape": "ellipse"}, **CANVAS_FRAME},
            {
                "kind": "connector",
                "content": {"from": {"blockId": one}, "to": {"blockId": two}},
            },
            {"kind": "frame", **CANVAS_FRAME, "children": [{"kind": "text", **CANVAS_FRAME}]},
        ],
    )
    sticky, _, connector, _ = found["blocks"]
    assert {key: sticky[key] for key in "xywh"} == CANVAS_FRAME
    assert "x" not in connector
    assert connector["content"]["from"] == {"blockId": one}
    for content in (
        {"from": {"blockId": str(uuid4())}, "to": {"x": 1, "y": 1}},
        {"from": {"x": 0, "y": 0}, "to": {"blockId": str(uuid4())}},
    ):
        block = {"kind": "connector", "content": content}
        for answer in (
            await client.put(canvas.path, json={"blocks": [block]}),
            await client.post(f"{canvas.path}/blocks", json={"blocks": [block]}),
        ):
            assert answer.status_code == 404


@pytest.mark.parametrize("side", ["x", "y", "w", "h"])
async def test_a_canvas_needs_every_side(client: Client, space: Space, side: str) -> None:
    canvas = await make_surface(space, "canvas")
    frame = {key: value for key, value in CANVAS_FRAME.items() if key != side}
    answer = await client.put(canvas.path, json={"blocks": [{"kind": "sticky", **frame}]})
    assert answer.json()["details"][0]["path"] == f"blocks.0.{side}"


async def test_a_dashboard_has_a_grid_of_twelve_columns(client: Client, space: Space) -> None:
    dashboard = await make_surface(space, "dashboard")
    text = {"kind": "text", "x": 0, "y": 0, "w": 12, "h": 1}
    found = await put(client, dashboard, [text] * 50)
    assert found["blocks"][0]["w"] == 12
    answer = await client.put(dashboard.path, json={"blocks": [text] * 51})
    assert answer.status_code == 400
    answer = await client.post(f"{dashboard.path}/blocks", json={"blocks": [text]})
    assert (answer.status_code, answer.json()["details"][0]["path"]) == (400, "blocks")
    change: Any
    for change, path in [
        ({"x": 1}, "w"),
        ({"x": 0.5}, "x"),
        ({"x": -1}, "x"),
        ({"x": 12}, "x"),
        ({"w": 0}, "w"),
        ({"h": 101}, "h"),
        ({"y": 10_001}, "y"),
        ({"h": None}, "h"),
        ({"children": [text]}, "children.0.kind"),
    ]:
        answer = await client.put(dashboard.path, json={"blocks": [{**text, **change}]})
        assert answer.status_code == 400, change
        assert answer.json()["details"][0]["path"] == f"blocks.0.{path}"


async def test_plain_words_are_one_span(client: Client, page: Placed) -> None:
    body = {"blocks": [{"kind": "paragraph", "content": {"text": "plain"}}]}
    added = (await client.post(f"{page.path}/blocks", json=body)).json()["data"]
    assert added["blocks"][0]["content"]["text"] == [{"text": "plain"}]
