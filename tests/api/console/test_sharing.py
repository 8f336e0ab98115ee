"""Share links in the console: created and revoked by members, opened by any visitor."""

from typing import Any

import pytest
from fastapi import FastAPI

from models.core.access.rules import Role
from tests.support.client import Client
from tests.support.files import stored
from tests.support.items import read
from tests.support.spaces import Space
from tests.support.visitor import Visitor, form_key, form_token, signed_in

HOSTILE = '"><script>alert(1)</script>'


async def item(client: Client, kind: str = "page", **values: Any) -> Any:
    body = {"kind": kind, "title": f"The plan {HOSTILE}", **values}
    return read(await client.post("/v1/items", json=body), 201)["item"]


async def link(client: Client, space: Space, item_id: object, **body: Any) -> tuple[str, str]:
    """The path and the token of a new link."""
    path = f"{space.path}/items/{item_id}/share-links"
    shared = read(await client.post(path, json=body), 201)
    return shared["url"], shared["token"]


def links_of(space: Space, item_id: str) -> str:
    return f"/workspaces/{space.id}/items/{item_id}/share-links"


async def test_an_owner_makes_a_link_that_a_stranger_opens(
    client: Client, space: Space, owner: Visitor, nobody: Visitor
) -> None:
    made = await item(client)
    path = links_of(space, made["id"])
    form = await owner.get(path)
    assert HOSTILE not in form.text
    fields = {
        "csrfToken": form_token(form),
        "idempotencyKey": form_key(form),
        "lifetime": "7",
        "maxUses": "1",
    }
    answer = await owner.post(path, data=fields)
    assert answer.status_code == 200
    assert "shown only once" in answer.text
    address = answer.text.partition('<code class="command" data-copy>http')[2]
    address = "/v1/share" + address.partition("<")[0].partition("/v1/share")[2]
    # A second press shows the same address.
    assert address in (await owner.post(path, data=fields)).text
    url, _, token = address.partition("#")

    opened = await nobody.post(url, data={"token": f"https://platform.test{address}"})
    assert (opened.status_code, opened.headers["location"]) == (303, url)
    shown = await nobody.get(url)
    assert "A shared page" in shown.text
    assert HOSTILE not in shown.text
    # Its one use is taken, and the visit continues.
    assert (await nobody.get(url)).status_code == 200
    listed = await owner.get(path)
    assert ("used up" in listed.text, "1 of 1" in listed.text) == (True, True)
    assert token not in listed.text


async def test_a_link_that_is_over_opens_nothing(
    client: Client, space: Space, app: FastAPI, nobody: Visitor, owner: Visitor
) -> None:
    made = await item(client)
    url, token = await link(client, space, made["id"])
    entry = await nobody.get(url)
    assert (entry.status_code, "The plan" in entry.text) == (200, False)
    wrong = await nobody.post(url, data={"token": "wrong"})
    assert (wrong.status_code, "not valid" in wrong.text) == (404, True)
    assert "set-cookie" not in wrong.headers
    await nobody.post(url, data={"token": token})
    assert "A shared page" in (await nobody.get(url)).text

    path = links_of(space, made["id"])
    link_id = url.rpartition("/")[2]
    revoked = await owner.send_form(f"{path}/{link_id}/revoke", path)
    assert revoked.status_code == 303
    assert "revoked" in (await owner.get(path)).text
    over = await nobody.get(url)
    assert ("Session expired" in over.text, "The plan" in over.text) == (True, False)
    async with Visitor(app) as other:
        assert (await other.post(url, data={"token": token})).status_code == 404


async def test_the_visit_of_one_link_opens_no_other(
    client: Client, space: Space, nobody: Visitor
) -> None:
    url, token = await link(client, space, (await item(client))["id"])
    other, _ = await link(client, space, (await item(client))["id"])
    opened = await nobody.post(url, data={"token": token})
    cookie = opened.headers["set-cookie"]
    assert f"Path={url}" in cookie
    assert ("HttpOnly" in cookie, "Secure" in cookie) == (True, True)
    name, _, value = cookie.partition(";")[0].partition("=")
    answer = await nobody.get(other, headers={"Cookie": f"{name}={value}"})
    assert "A shared page" not in answer.text


async def test_a_link_whose_maker_sees_the_item_no_more_takes_no_use(
    client: Client, space: Space, nobody: Visitor, owner: Visitor
) -> None:
    made = await item(client)
    editor_id, key = await space.member(Role.EDITOR)
    access = f"/v1/items/{made['id']}/access"
    manager = {"userId": str(editor_id), "level": "manage"}
    await client.put(access, json={"accessMode": "open", "grants": [manager]})
    url, token = await link(client.with_token(key), space, made["id"])
    await client.put(access, json={"accessMode": "restricted", "grants": []})
    assert (await nobody.post(url, data={"token": token})).status_code == 404
    listed = read(await client.get(f"{space.path}/items/{made['id']}/share-links"))
    assert [one["useCount"] for one in listed["shareLinks"]] == [0]
    assert "lost access" in (await owner.get(links_of(space, made["id"]))).text


async def test_a_link_read_ahead_is_not_used(client: Client, space: Space, nobody: Visitor) -> None:
    url, token = await link(client, space, (await item(client))["id"], maxUses=1)
    ahead = await nobody.post(url, data={"token": token}, headers={"Sec-Purpose": "prefetch"})
    assert ahead.status_code == 503
    # Reading the address with its token asks, and takes no use.
    asked = await nobody.get(f"{url}?token={token}")
    assert f'value="{token}"' in asked.text
    assert (await nobody.post(url, data={"token": token})).status_code == 303


async def test_records_are_read_page_by_page(client: Client, space: Space, nobody: Visitor) -> None:
    fields = [
        {"label": "Stage", "kind": "select", "options": [{"name": "Open", "color": "green"}]},
        {"label": "Price", "kind": "number"},
        {"label": "Owner", "kind": "person"},
        {"label": "Site", "kind": "url"},
    ]
    body = {"label": "Orders", "fields": fields}
    database = read(await client.post(f"{space.path}/databases", json=body), 201)
    data = {"stage": "open", "price": 12.5, "site": "https://example.com/"}
    operations = [{"op": "create", "title": f"Order {n}", "data": data} for n in range(120)]
    batch = f"/v1/databases/{database['id']}/records/batch"
    read(await client.post(batch, json={"operations": operations}))
    url, token = await link(client, space, database["itemId"])
    await nobody.post(url, data={"token": token})
    page = await nobody.get(url)
    assert page.text.count('<th scope="row"') == 50
    assert 'data-color="green">Open</span>' in page.text
    assert ">12.5<" in page.text
    assert "Owner" not in page.text
    following = page.text.partition('rel="next"')[0].rpartition('href="')[2].partition('"')[0]
    rest = await nobody.get(following.replace("&amp;", "&"))
    assert rest.text.count('<th scope="row"') == 50
    assert "First page" in rest.text


async def test_a_wide_database_stays_a_light_page_with_whole_texts(
    client: Client, space: Space, nobody: Visitor
) -> None:
    fields = [{"label": f"Field number {n}", "kind": "text"} for n in range(60)]
    body = {"label": "Wide", "fields": fields}
    database = read(await client.post(f"{space.path}/databases", json=body), 201)
    data = {f"field_number_{n}": "twelve chars" for n in range(60)} | {"field_number_0": "x" * 500}
    operations = [{"op": "create", "title": f"Order {n}", "data": data} for n in range(60)]
    batch = f"/v1/databases/{database['id']}/records/batch"
    read(await client.post(batch, json={"operations": operations}))
    url, token = await link(client, space, database["itemId"])
    await nobody.post(url, data={"token": token})
    page = await nobody.get(url)
    assert "Showing 40 of 61 fields" in page.text
    assert "x" * 500 in page.text
    assert len(page.content) < 150_000


@pytest.mark.parametrize("allowed", [True, False])
async def test_a_file_is_downloaded_if_the_link_allows_it(
    client: Client, space: Space, nobody: Visitor, allowed: bool
) -> None:
    kept = await stored(client, space, b"some bytes", params={"name": "notes.txt"})
    made = await item(client, "file", config={"fileId": kept["fileId"]})
    url, token = await link(client, space, made["id"], allowDownload=allowed)
    await nobody.post(url, data={"token": token})
    page = await nobody.get(url)
    assert ("does not allow downloads" in page.text) is not allowed
    if allowed:
        address = page.text.partition('<a class="button primary" href="')[2].partition('"')[0]
        assert (await nobody.get(address)).content == b"some bytes"


async def test_a_form_that_is_not_public_is_not_led_to(
    client: Client, space: Space, nobody: Visitor
) -> None:
    database = read(await client.post(f"{space.path}/databases", json={"label": "Answers"}), 201)
    body = {"label": "Ask", "databaseId": database["id"]}
    form = read(await client.post(f"{space.path}/forms", json=body), 201)
    url, token = await link(client, space, form["itemId"])
    await nobody.post(url, data={"token": token})
    assert "not public" in (await nobody.get(url)).text
    await client.patch(f"{space.path}/forms/{form['id']}", json={"public": True})
    assert f'href="/forms/{form["itemId"]}"' in (await nobody.get(url)).text


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"lifetime": "forever"}, "Choose one of the options"),
        ({"lifetime": "7", "maxUses": "many"}, "valid integer"),
        ({"lifetime": "7", "maxUses": "0"}, "greater than or equal to 1"),
    ],
)
async def test_each_error_of_a_link_is_shown_beside_its_field(
    client: Client, space: Space, owner: Visitor, fields: Any, words: str
) -> None:
    path = links_of(space, (await item(client))["id"])
    answer = await owner.send_form(path, path, **fields)
    assert answer.status_code == 400
    assert words in answer.text


async def test_a_member_who_only_sees_an_item_sees_its_links_and_creates_none(
    client: Client, space: Space, app: FastAPI
) -> None:
    made = await item(client)
    await link(client, space, made["id"])
    path = links_of(space, made["id"])
    viewer_id, _ = await space.member(Role.VIEWER)
    async with await signed_in(app, space, viewer_id) as viewer:
        page = await viewer.get(path)
        assert (page.status_code, "Create a link" in page.text) == (200, False)
        assert "Revoke" not in page.text
        assert (await viewer.send_form(path)).status_code == 403
    guest_id, _ = await space.member(Role.GUEST)
    async with await signed_in(app, space, guest_id) as guest:
        assert (await guest.get(path)).status_code == 404


async def test_an_item_of_a_kind_without_links_offers_none(
    client: Client, space: Space, owner: Visitor
) -> None:
    body = {"label": "Orders", "graph": {"nodes": [], "edges": []}}
    made = read(await client.post(f"{space.path}/automations", json=body), 201)
    page = await owner.get(links_of(space, made["itemId"]))
    assert (page.status_code, "Create a link" in page.text) == (200, False)
