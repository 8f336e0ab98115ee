"""People, related records and files in the forms of records."""

import re
from typing import Any

import pytest
from fastapi import FastAPI
from sqlalchemy import func

from models.core.access.rules import Role
from models.data.records import search
from tests.support.client import Client
from tests.support.files import stored
from tests.support.items import read
from tests.support.related import add, get, make_database, relate
from tests.support.spaces import Space
from tests.support.visitor import Visitor, form_key, form_token, signed_in

HOSTILE = '"><script>alert(1)</script>'
Json = dict[str, Any]


@pytest.fixture
async def shop(client: Client, space: Space) -> Json:
    """Orders that name people, files, customers, and one branch."""
    customers = await make_database(client, space, "Customers")
    branches = await make_database(client, space, "Branches")
    orders = await make_database(
        client,
        space,
        "Orders",
        {"label": "Owner", "kind": "person"},
        {"label": "Papers", "kind": "file"},
    )
    await relate(client, orders, customers, "Customers")
    await relate(client, orders, branches, "Branch", cardinality="one")
    return {
        "orders": orders,
        "customers": customers,
        "ada": await add(client, customers, f"Ada {HOSTILE}"),
        "bob": await add(client, customers, "Bob"),
        "north": await add(client, branches, "North"),
        "south": await add(client, branches, "South"),
        "order": await add(client, orders, "Order"),
        "item": read(await client.get(f"{space.path}/databases/{customers}"))["itemId"],
    }


async def edited(visitor: Visitor, path: str, **fields: str) -> Any:
    """The answer to the form of a record, sent as it is with these fields."""
    page = await visitor.get(path)
    boxes = re.findall(r'type="checkbox" name="([^"]+)" checked', page.text)
    known = re.search(r'name="updatedAt" value="([^"]+)"', page.text)
    held = dict.fromkeys(boxes, "on") | ({"updatedAt": known[1]} if known else {})
    return await visitor.post(path, data={"csrfToken": form_token(page), **held, **fields})


async def test_records_are_named_by_title_or_id_and_taken_out_by_their_box(
    client: Client, owner: Visitor, shop: Json
) -> None:
    path = f"/records/{shop['order']}/edit"
    first = {"field.title": "Order", "field.customers": "bob", "field.branch": "North"}
    answer = await edited(owner, path, **first)
    assert answer.status_code == 303, answer.text
    again = {"field.title": "Order", "field.customers": shop["ada"], "field.branch": "south"}
    assert (await edited(owner, path, **again)).status_code == 303
    relations = (await get(client, shop["order"]))["relations"]
    assert relations == {"customers": [shop["bob"], shop["ada"]], "branch": [shop["south"]]}
    form = await owner.get(path)
    assert (HOSTILE in form.text, "Ada &#34;" in form.text) == (False, True)
    # A box that is not sent takes its record out; what is not named stays.
    page = {"csrfToken": form_token(form), "field.title": "Order"}
    kept = {f"field.customers.{shop['ada']}": "on", f"field.branch.{shop['south']}": "on"}
    assert (await owner.post(path, data=page | kept)).status_code == 303
    relations = (await get(client, shop["order"]))["relations"]
    assert relations == {"customers": [shop["ada"]], "branch": [shop["south"]]}


async def test_a_new_record_has_them_at_once(
    client: Client, space: Space, owner: Visitor, shop: Json
) -> None:
    me = read(await client.get(f"{space.path}/members"))["members"][0]
    path = f"/databases/{shop['orders']}/records/new"
    fields = {"field.title": "New", "field.customers": "Bob", "field.owner": me["email"].upper()}
    made = await edited(owner, path, **fields)
    assert made.status_code == 303, made.text
    record = read(await client.get(f"/v1{made.headers['location']}"))
    assert record["relations"]["customers"] == [shop["bob"]]
    assert record["data"]["owner"] == [me["userId"]]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"field.customers": "Nobody"}, "No record named “Nobody”"),
        ({"field.customers": "Twin"}, "Several records are named “Twin”"),
        ({"field.branch": "Bob"}, "No record named “Bob”"),
        ({"field.owner": "nobody@example.test"}, "No member with the name"),
        ({"field.owner": "01a21b5f-fee4-7ab2-a23b-c5ae24c188c5"}, "not a member"),
        ({"field.customers": "01a21b5f-fee4-7ab2-a23b-c5ae24c188c5"}, "No record with the ID"),
    ],
)
async def test_an_unknown_name_is_reported_beside_its_field(
    client: Client, owner: Visitor, shop: Json, fields: dict[str, str], words: str
) -> None:
    for _ in range(2):
        await add(client, shop["customers"], "Twin")
    answer = await edited(
        owner, f"/records/{shop['order']}/edit", **{"field.title": "Kept"}, **fields
    )
    assert answer.status_code == 400
    problem = re.findall(r'class="problem" role="alert">([^<]+)<', answer.text)
    assert any(words in one for one in problem), problem
    assert 'value="Kept"' in answer.text
    assert f'value="{next(iter(fields.values()))}"' in answer.text
    assert (await get(client, shop["order"]))["relations"] == {"customers": [], "branch": []}


async def test_titles_are_suggested_as_far_as_they_are_seen(
    client: Client, space: Space, app: FastAPI, owner: Visitor, shop: Json
) -> None:
    twins = [await add(client, shop["customers"], "Bobby") for _ in range(2)]
    path = f"/databases/{shop['customers']}/records/choices"
    page = await owner.get(f"{path}?q=bob")
    assert f'value="Bob" data-id="{shop["bob"]}"' in page.text
    assert all(f"Bobby · {twin}" in page.text for twin in twins)
    assert "<option" not in (await owner.get(path)).text
    # The suggestion that tells twins apart names one of them.
    chosen = {"field.title": "Order", "field.customers": f"Bobby · {twins[0]}"}
    assert (await edited(owner, f"/records/{shop['order']}/edit", **chosen)).status_code == 303
    assert (await get(client, shop["order"]))["relations"]["customers"] == [twins[0]]
    closed = {"accessMode": "restricted"}
    assert (await client.patch(f"/v1/items/{shop['item']}", json=closed)).is_success
    editor_id, _ = await space.member(Role.EDITOR)
    async with await signed_in(app, space, editor_id) as editor:
        assert (await editor.get(f"{path}?q=bob")).status_code == 404
        named = {"field.title": "Order", "field.customers": "Bob"}
        answer = await edited(editor, f"/records/{shop['order']}/edit", **named)
        assert (answer.status_code, "No record named" in answer.text) == (400, True)
        unnamed = {"field.title": "Order 2"}
        assert (
            await edited(editor, f"/records/{shop['order']}/edit", **unnamed)
        ).status_code == 303
    # What an editor does not see is left as it was.
    assert (await get(client, shop["order"]))["relations"]["customers"] == [twins[0]]


async def test_a_search_that_takes_long_is_aborted(
    client: Client, owner: Visitor, shop: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = search.records_titled

    def slowly(*place: Any) -> Any:
        return named(*place).where(func.pg_sleep(60).is_not(None))

    monkeypatch.setattr(search, "records_titled", slowly)
    monkeypatch.setattr(search, "SEARCH_MILLISECONDS", 50)
    choices = f"/databases/{shop['customers']}/records/choices?q=bob"
    assert "<option" not in (await owner.get(choices)).text
    fields = {"field.title": "Order", "field.customers": "Bob"}
    answer = await edited(owner, f"/records/{shop['order']}/edit", **fields)
    assert (answer.status_code, "Enter the record ID" in answer.text) == (400, True)
    fields["field.customers"] = shop["bob"]
    assert (await edited(owner, f"/records/{shop['order']}/edit", **fields)).status_code == 303
    assert (await get(client, shop["order"]))["relations"]["customers"] == [shop["bob"]]


async def test_files_are_added_downloaded_and_taken_out(
    client: Client, owner: Visitor, shop: Json, nobody: Visitor
) -> None:
    record = f"/records/{shop['order']}"
    path = f"{record}/files/papers"
    page = await owner.get(record)
    data = {"csrfToken": form_token(page), "idempotencyKey": form_key(page)}
    files = {"file": (f"Offer {HOSTILE}.txt", b"ten pounds", "text/plain")}
    for _ in range(2):
        # Pressed twice it is added once.
        added = await owner.post(path, data=data, files=files)
        assert (added.status_code, added.headers["location"]) == (303, f"{record}#papers")
    (file_id,) = (await get(client, shop["order"]))["data"]["papers"]
    page = await owner.get(record)
    assert HOSTILE not in page.text
    url = re.search(r'href="(/v1/assets/[^"]+)" download', page.text)
    assert url is not None
    assert (await nobody.get(url[1])).content == b"ten pounds"
    nothing = await owner.post(path, data=data, files={"file": ("", b"", "text/plain")})
    assert nothing.status_code >= 400
    foreign = await owner.post(path, files=files)
    assert foreign.status_code == 403
    assert (
        await owner.send_form(f"{record}/files/owner/{file_id}/remove", record)
    ).status_code == 404
    removed = await owner.send_form(f"{path}/{file_id}/remove", record)
    assert removed.status_code == 303
    assert (await get(client, shop["order"]))["data"].get("papers") in (None, [])
    gone = await owner.send_form(f"{path}/{file_id}/remove", record)
    assert gone.status_code == 404


async def test_a_private_file_is_named_and_not_given(
    client: Client, space: Space, app: FastAPI, shop: Json
) -> None:
    kept = await stored(client, space, b"secret", params={"name": "secret.txt"})
    place = read(await client.post("/v1/items", json={"kind": "folder", "title": "Closed"}), 201)
    body = {
        "kind": "file",
        "title": "Secret",
        "parentItemId": place["item"]["id"],
        "config": {"fileId": kept["fileId"]},
    }
    read(await client.post("/v1/items", json=body), 201)
    change = {"data": {"papers": [kept["fileId"]]}}
    assert (await client.patch(f"/v1/records/{shop['order']}", json=change)).is_success
    closed = {"accessMode": "restricted"}
    folder = place["item"]["id"]
    assert (await client.patch(f"/v1/items/{folder}", json=closed)).is_success
    viewer_id, _ = await space.member(Role.VIEWER)
    async with await signed_in(app, space, viewer_id) as viewer:
        page = await viewer.get(f"/records/{shop['order']}")
        assert (page.status_code, "/v1/assets/" in page.text) == (200, False)
        assert "A file you can&#39;t access" in page.text
        assert 'type="file"' not in page.text
        assert (await viewer.send_form(f"/records/{shop['order']}/files/papers")).status_code == 403
