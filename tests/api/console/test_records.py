"""Pages of content: the tree, a database in the forms of its views, a record and its fields."""

import json
import re
from typing import Any

import pytest
from fastapi import FastAPI
from sqlalchemy import func, select

from models.messages.jobs.store import job
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.client import Client
from tests.support.items import read
from tests.support.spaces import Space
from tests.support.visitor import Visitor, form_key, form_token, signed_in

HOSTILE = '"><script>alert(1)</script>'
FIELDS = [
    {"label": "Price", "kind": "currency", "settings": {"currencyCode": "EUR", "precision": 2}},
    {"label": "Done", "kind": "checkbox"},
    {"label": "Due", "kind": "date"},
    {"label": "Seen", "kind": "datetime"},
    {"label": "Length", "kind": "duration"},
    {"label": "Site", "kind": "url"},
    {"label": "State", "kind": "select", "options": [{"name": "Open"}, {"name": "Shut"}]},
    {"label": "Tags", "kind": "multi_select", "options": [{"name": "Red"}, {"name": "Blue"}]},
    {"label": "Notes", "kind": "long_text"},
]
Json = dict[str, Any]


@pytest.fixture
async def goods(client: Client, space: Space) -> Json:
    """A database with a field of most kinds, and three views."""
    views = [
        {"label": "Board", "kind": "board", "manifest": {"stackFieldKey": "state"}},
        {"label": "Days", "kind": "calendar", "manifest": {"dateFieldKey": "due"}},
        {"label": "Cards", "kind": "gallery"},
    ]
    body = {"label": f"Goods {HOSTILE}", "fields": FIELDS, "views": views}
    made: Json = read(await client.post(f"{space.path}/databases", json=body), 201)
    return made


async def record(client: Client, goods: Json, **data: Any) -> str:
    body = {"data": data}
    made = read(await client.post(f"/v1/databases/{goods['id']}/records", json=body), 201)
    return str(made["id"])


def page_of(space: Space, goods: Json) -> str:
    return f"/workspaces/{space.id}/databases/{goods['id']}"


async def test_the_tree_leads_to_a_database_and_shows_what_it_holds(
    client: Client, space: Space, owner: Visitor, goods: Json
) -> None:
    await record(client, goods, title=f"Tea {HOSTILE}", price=1234.5, done=True, state="open")
    tree = await owner.get(f"/workspaces/{space.id}/items")
    assert page_of(space, goods) in tree.text
    shown = await owner.get(page_of(space, goods))
    assert shown.status_code == 200
    assert "1,234.50 EUR" in shown.text
    assert HOSTILE not in shown.text + tree.text
    assert "Tea &#34;&gt;&lt;script&gt;" in shown.text
    assert len(shown.content) < 150_000


@pytest.mark.parametrize("view", [0, 1, 2])
async def test_each_view_shows_the_records(
    client: Client, space: Space, owner: Visitor, goods: Json, view: int
) -> None:
    await record(client, goods, title="Tea", state="shut", due="2026-03-05")
    view_id = goods["views"][view]["id"]
    shown = await owner.get(f"{page_of(space, goods)}?view={view_id}")
    assert shown.status_code == 200
    assert ">Tea</a>" in shown.text


async def test_the_url_searches_filters_and_sorts(
    client: Client, space: Space, owner: Visitor, goods: Json
) -> None:
    await record(client, goods, title="Tea", price=3, state="open", tags=["red"])
    await record(client, goods, title="Milk", price=1, state="shut")
    for query, titles in {
        "search=tea": ["Tea"],
        "field=price&comparison=more&value=2": ["Tea"],
        "field=state&comparison=is&value=Shut": ["Milk"],
        "field=tags&comparison=contains&value=red": ["Tea"],
        "field=due&comparison=empty": ["Milk", "Tea"],
        "sort=price": ["Milk", "Tea"],
        "sort=-price": ["Tea", "Milk"],
    }.items():
        shown = await owner.get(f"{page_of(space, goods)}?{query}")
        found = re.findall(r'class="main"><a [^>]+>([^<]+)<', shown.text)
        assert found == titles or (sorted(found) == titles and "sort" not in query), query


async def test_a_grid_counts_groups_sums_columns_and_hides_some(
    client: Client, space: Space, owner: Visitor, goods: Json
) -> None:
    await record(client, goods, title=f"Tea {HOSTILE}", price=3, state="open")
    await record(client, goods, title="Milk", price=1.5, state="shut")
    await record(client, goods, title="Bread", price=2, state="open")
    path = page_of(space, goods)
    grouped = (await owner.get(f"{path}?group=state&total=sum")).text
    groups = re.findall(r'">(\w+)</a></td><td [^>]+>(\d+)</td><td [^>]+>([\d.]+)<', grouped)
    assert groups == [("open", "2", "5"), ("shut", "1", "1.5")]
    (foot,) = re.findall(r"<tfoot>.*?</tfoot>", grouped, re.DOTALL)
    assert ("Sum" in foot, "6.5" in foot) == (True, True)
    few = (await owner.get(f"{path}?columns=price,nothing,price")).text
    heads = re.findall(r'data-key="(\w+)"', few)
    assert (heads, "All columns" in few) == (["title", "price"], True)
    for query in ("group=nothing", "total=sum&group=nothing"):
        assert 'role="alert"' in (await owner.get(f"{path}?{query}")).text
    assert (await owner.get(f"{path}?total=most")).status_code == 400
    narrowed = await owner.get(f"{path}?field=state&comparison=is&value=open&total=sum")
    assert len(re.findall("data-record=", narrowed.text)) == 2


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("field=price&comparison=more&value=much", "amount"),
        ("field=nothing&comparison=is&value=1", "unknown field"),
        ("field=done&comparison=contains&value=yes", "operator of a checkbox"),
        ("sort=nothing", "not the key of a field"),
    ],
)
async def test_an_impossible_filter_is_reported_beside_it(
    space: Space, owner: Visitor, goods: Json, query: str, words: str
) -> None:
    shown = await owner.get(f"{page_of(space, goods)}?{query}")
    assert shown.status_code == 200
    (problem,) = re.findall(r'role="alert">([^<]+)<', shown.text)
    assert words in problem.lower()


async def test_a_record_is_typed_into_a_form(client: Client, owner: Visitor, goods: Json) -> None:
    path = await type_tea(owner, goods)
    data = read(await client.get(f"/v1{path}"))["data"]
    assert data | {"notes": "One\nTwo", "price": 1234.5, "length": 5_400_000} == data
    assert (data["done"], data["due"], data["state"], data["tags"]) == (
        True,
        "2026-03-05",
        "open",
        ["red"],
    )
    assert "1:30:00" in (await owner.get(path)).text
    edit = await owner.get(f"{path}/edit")
    assert 'value="1234.5"' in edit.text


async def test_a_record_is_changed_looked_at_and_removed(
    client: Client, owner: Visitor, goods: Json
) -> None:
    path = await type_tea(owner, goods)
    cleared = {"field.title": "Green tea", "field.done": "no"}
    changed = await owner.send_form(f"{path}/edit", f"{path}/edit", None, **cleared)
    assert changed.status_code == 303, changed.text
    data = read(await client.get(f"/v1{path}"))["data"]
    assert (data["title"], data["done"], "price" in data, "tags" in data) == (
        "Green tea",
        False,
        False,
        False,
    )
    assert (await owner.send_form(f"{path}/comments", page=path, body="Hm")).status_code == 303
    looked_at = (await owner.get(path)).text
    assert "Hm" in looked_at
    assert "1,234.50 EUR" in looked_at, "the history has what it was"
    assert (await owner.send_form(f"{path}/archive", page=path)).status_code == 303
    assert (await owner.send_form(f"{path}/restore", page=path)).status_code == 303
    assert (await owner.send_form(f"{path}/delete", page=path)).status_code == 303
    assert (await owner.get(path)).status_code == 404


async def type_tea(owner: Visitor, goods: Json) -> str:
    """The page of a new record, of which every kind of field was typed."""
    new = f"/databases/{goods['id']}/records/new"
    typed = {
        "field.title": "Tea",
        "field.price": "1,234.50",
        "field.done": "yes",
        "field.due": "2026-03-05",
        "field.length": "1:30",
        "field.state": "open",
        "field.tags.red": "on",
        "field.notes": "One\r\nTwo",
    }
    made = await owner.send_form(new, new, None, **typed)
    assert made.status_code == 303, made.text
    return made.headers["location"]


async def test_wrong_texts_come_back_with_what_is_wrong(owner: Visitor, goods: Json) -> None:
    new = f"/databases/{goods['id']}/records/new"
    typed = {"field.title": HOSTILE, "field.price": "cheap", "field.site": "javascript:alert(1)"}
    answer = await owner.send_form(new, new, None, **typed)
    assert answer.status_code == 400
    assert "Enter a valid amount." in answer.text
    assert "Enter a valid URL." in answer.text
    assert 'value="cheap"' in answer.text
    assert HOSTILE not in answer.text
    unknown = await owner.send_form(new, page=new, other="1")
    assert (unknown.status_code, "Unknown field" in unknown.text) == (400, True)


async def test_a_change_of_another_member_is_not_overwritten(
    client: Client, owner: Visitor, goods: Json
) -> None:
    path = f"/records/{await record(client, goods, title='Tea')}"
    page = await owner.get(f"{path}/edit")
    (known,) = re.findall(r'name="updatedAt" value="([^"]+)"', page.text)
    await client.patch(f"/v1{path}", json={"title": "Coffee"})
    typed = {"field.title": "Cocoa", "updatedAt": known, "csrfToken": form_token(page)}
    answer = await owner.post(f"{path}/edit", data=typed)
    assert answer.status_code == 409
    assert 'value="Cocoa"' in answer.text
    assert read(await client.get(f"/v1{path}"))["title"] == "Coffee"


async def test_a_database_is_made_from_a_template_once_and_goes(
    space: Space, owner: Visitor
) -> None:
    new = await owner.get(f"/workspaces/{space.id}/databases/new")
    (template,) = re.findall(r'value="([^"]+)"> <span><b>Tasks<', new.text)
    typed = {"template": template, "csrfToken": form_token(new), "idempotencyKey": form_key(new)}
    paths = set()
    for _ in range(2):
        made = await owner.post(f"/workspaces/{space.id}/databases", data=typed)
        assert made.status_code == 303, made.text
        paths.add(made.headers["location"])
    (path,) = paths
    assert "Tasks" in (await owner.get(path)).text
    assert (await owner.send_form(f"{path}/delete", page=path)).status_code == 303
    assert (await owner.get(path)).status_code == 404


async def test_strangers_and_viewers_do_not_write(
    app: FastAPI, client: Client, space: Space, foreign: Space, goods: Json
) -> None:
    record_path = f"/records/{await record(client, goods, title='Tea')}"
    async with await signed_in(app, foreign) as stranger:
        for path in (page_of(space, goods), record_path, f"{record_path}/edit"):
            assert (await stranger.get(path)).status_code == 404
        answer = await stranger.send_form(f"{record_path}/delete")
        assert answer.status_code == 404
    assert read(await client.get(f"/v1{record_path}"))["title"] == "Tea"


async def test_the_equal_call_asks_for_the_same(
    client: Client, space: Space, owner: Visitor, goods: Json
) -> None:
    await record(client, goods, title="Tea", price=3)
    shown = await owner.get(f"{page_of(space, goods)}?field=price&comparison=more&value=2")
    (body,) = re.findall(r"-d &#39;(.+?)&#39;</code>", shown.text)
    asked = json.loads(body.replace("&#34;", '"'))
    found = await client.post(f"/v1/databases/{goods['id']}/records/query", json=asked)
    assert [one["title"] for one in read(found)["records"]] == ["Tea"]


async def test_a_page_asks_for_the_index_that_its_query_lacks(
    client: Client, space: Space, owner: Visitor, goods: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("models.data.records.side_index.LARGE", 2)
    for title in ("Tea", "Milk"):
        await record(client, goods, title=title, price=1)
    shown = await owner.get(f"{page_of(space, goods)}?sort=-price")
    assert (shown.status_code, "Milk" in shown.text) == (200, True)
    async with space.database.reading() as work:
        asked = select(func.count()).where(
            job.c.workspace_id == space.id, job.c.workflow_kind == WorkflowKind.FIELD_INDEX
        )
        assert await work.scalar(asked) == 1
