"""Previews on pages: the rows of an import, mapped and brought in, and those of a data source."""

import io
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from fastapi import FastAPI
from openpyxl import Workbook
from sqlalchemy import func, select

from models.content.files.queries import file
from models.core.access.rules import Role
from models.messages.jobs.store import job
from tests.support.client import Client
from tests.support.endpoint import Serve, reply
from tests.support.engine import Engine
from tests.support.items import read
from tests.support.patience import eventually
from tests.support.spaces import Space
from tests.support.visitor import Visitor, form_key, form_token, signed_in

HOSTILE = "<script>alert(1)</script>"
CSV = f"name,price,{HOSTILE}\nTea,3,a\nMilk,1.5,b\n"

pytestmark = pytest.mark.takes(seconds=20)


@pytest_asyncio.fixture
async def owner(app: FastAPI, space: Space, engine: Engine) -> AsyncIterator[Visitor]:
    """The owner of `space` in a session, while workers run."""
    assert engine.database is space.database
    async with await signed_in(app, space) as visitor:
        yield visitor


async def sent(
    visitor: Visitor, space: Space, content: bytes, name: str = "Prices.csv", **fields: str
) -> Any:
    """The answer to a file that was chosen on the page."""
    place = f"/workspaces/{space.id}"
    page = await visitor.get(f"{place}/import")
    data = {"csrfToken": form_token(page), "idempotencyKey": form_key(page), **fields}
    return await visitor.post(
        f"{place}/imports/previews", data=data, files={"file": (name, content, "text/csv")}
    )


async def shown(visitor: Visitor, path: str) -> str:
    """The page of a preview, once its rows are there."""
    text = ""

    async def is_there() -> bool:
        nonlocal text
        text = (await visitor.get(path)).text
        return "reading the first rows" not in text

    await eventually(is_there, "the first rows")
    return text


async def finished(visitor: Visitor, path: str) -> str:
    """The page of an import, once it has ended."""
    text = ""

    async def has_ended() -> bool:
        nonlocal text
        text = (await visitor.get(path)).text
        return "data-refresh" not in text

    await eventually(has_ended, "the end of the import")
    return text


@pytest.mark.long
async def test_a_file_becomes_a_database_as_its_columns_are_mapped(
    client: Client, space: Space, owner: Visitor
) -> None:
    answer = await sent(owner, space, CSV.encode())
    assert answer.status_code == 303, answer.text
    path = answer.headers["location"]
    page = await shown(owner, path)
    assert ("<td>Tea<" in page, HOSTILE in page, 'value="Prices"' in page) == (True, False, True)
    fields = {
        "label": "Goods",
        "into.0": "Name",
        "into.1": "Cost",
        "kind.1": "number",
        "key.0": "on",
    }
    started = await owner.send_form(f"{path}/start", path, None, **fields)
    assert started.status_code == 303, started.text
    ended = await finished(owner, started.headers["location"])
    assert "2 records in 2 fields" in ended
    (database,) = read(await client.get(f"{space.path}/databases"))["databases"]
    assert database["label"] == "Goods"
    assert {"Name", "Cost"} <= {one["label"] for one in database["fields"]}
    records = read(await client.get(f"/v1/databases/{database['id']}/records"))["records"]
    assert {(one["title"], one["data"]["cost"]) for one in records} == {("Tea", 3), ("Milk", 1.5)}


@pytest.mark.long
async def test_rows_go_to_fields_that_are_there_and_to_a_new_one(
    client: Client, space: Space, owner: Visitor
) -> None:
    body = {"label": "Goods", "fields": [{"label": "Cost", "kind": "number"}]}
    database = read(await client.post(f"{space.path}/databases", json=body), 201)["id"]
    page = await owner.get(f"/workspaces/{space.id}/import?database={database}")
    text = {"text": "name,cost,colour\r\nTea,3,red\r\nMilk,,blue", "database": database}
    previews = f"/workspaces/{space.id}/imports/previews"
    answer = await owner.post(previews, data={"csrfToken": form_token(page), **text})
    path = answer.headers["location"]
    preview = await shown(owner, path)
    assert 'value="Cost"' in preview
    fields = {
        "database": database,
        "label": "Goods",
        "into.0": "title",
        "into.1": "cost",
        "into.2": "Colour",
        "kind.2": "select",
        "mode": "insert",
    }
    at = path.partition("?")[0]
    started = await owner.send_form(f"{at}/start", path, None, **fields)
    assert started.status_code == 303, started.text
    assert "2 records" in await finished(owner, started.headers["location"])
    records = read(await client.get(f"/v1/databases/{database}/records"))["records"]
    assert [one["data"] for one in sorted(records, key=lambda one: str(one["title"]))] == [
        {"title": "Milk", "colour": "blue"},
        {"title": "Tea", "cost": 3, "colour": "red"},
    ]


@pytest.mark.long
async def test_rows_are_counted_by_their_keys_before_the_import(
    client: Client, space: Space, owner: Visitor
) -> None:
    kinds = {"Cost": "number", "Sold": "checkbox"}
    fields = [{"label": label, "kind": kind} for label, kind in kinds.items()]
    body = {"label": "Goods", "fields": fields}
    database = read(await client.post(f"{space.path}/databases", json=body), 201)["id"]
    for title, cost in (("Tea", 3), ("Milk", 2), ("Salt", 1)):
        record = {"title": title, "data": {"cost": cost, "sold": True}}
        await client.post(f"/v1/databases/{database}/records", json=record)
    page = await owner.get(f"/workspaces/{space.id}/import?database={database}")
    rows = "name,cost,sold\nTea,3,ja\nMilk,2.5,ja\nRice,9,nee\nRice,8,nee"
    previews = f"/workspaces/{space.id}/imports/previews"
    data = {"csrfToken": form_token(page), "text": rows, "database": database}
    path = (await owner.post(previews, data=data)).headers["location"]
    await shown(owner, path)
    words = {"database": database, "yesWords": "ja", "noWords": "nee"}
    at = path.partition("?")[0]
    path = (await owner.send_form(f"{at}/sheet", path, None, **words)).headers["location"]
    assert 'value="ja"' in await shown(owner, path)
    mapping = {"into.0": "title", "into.1": "cost", "into.2": "sold", "key.0": "on"}
    chosen = {"database": database, "label": "Goods", "mode": "upsert", **mapping}
    at = path.partition("?")[0]
    checked = await owner.send_form(f"{at}/check", path, None, **chosen)
    path = checked.headers["location"]
    assert "1 new · 1 changed · 1 unchanged" in await shown(owner, path)
    started = await owner.send_form(f"{path.partition('?')[0]}/start", path, None, **chosen)
    await finished(owner, started.headers["location"])
    records = read(await client.get(f"/v1/databases/{database}/records"))["records"]
    assert {(one["title"], one["data"]["cost"]) for one in records} == {
        *(("Tea", 3), ("Milk", 2.5), ("Salt", 1), ("Rice", 8)),
    }


@pytest.mark.long
async def test_another_sheet_is_read(space: Space, owner: Visitor) -> None:
    book, written = Workbook(), io.BytesIO()
    for title, name in (("First", "Tea"), ("Second", "Milk")):
        rows = book.create_sheet(title)
        rows.append(["name"])
        rows.append([name])
    book.remove(book["Sheet"])
    book.save(written)
    answer = await sent(owner, space, written.getvalue(), "Prices.xlsx")
    path = answer.headers["location"]
    assert "<td>Tea<" in await shown(owner, path)
    other = await owner.send_form(f"{path}/sheet", path, sheetName="Second")
    page = await shown(owner, other.headers["location"])
    assert ("<td>Milk<" in page, "<td>Tea<" in page) == (True, False)
    nowhere = await owner.send_form(f"{path}/sheet", path, sheetName="Third")
    assert "Choose another file" in await shown(owner, nowhere.headers["location"])


@pytest.mark.long
async def test_the_widest_file_is_a_light_page(space: Space, owner: Visitor) -> None:
    names = ",".join(f"Column number {n}" for n in range(200))
    row = ",".join(f"value {n}" for n in range(200))
    path = (await sent(owner, space, "\n".join([names, *[row] * 50]).encode())).headers["location"]
    page = await shown(owner, path)
    assert 'name="into.199"' in page
    assert len(page.encode()) < 160_000
    fields = {f"into.{n}": f"Field {n}" for n in range(200)} | {"label": "Wide"}
    kinds = {f"kind.{n}": "text" for n in range(200)}
    started = await owner.send_form(f"{path}/start", path, None, **fields, **kinds)
    assert started.status_code == 303, started.text
    assert "50 records in 200 fields" in await finished(owner, started.headers["location"])


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"label": "Goods"}, "All columns are skipped"),
        ({"label": "Goods", "into.1": "Cost", "kind.1": "colour"}, "Choose a kind for “Cost”"),
        ({"into.0": "Name"}, "label"),
    ],
)
async def test_errors_of_a_mapping_are_shown(
    space: Space, owner: Visitor, fields: dict[str, Any], words: str
) -> None:
    path = (await sent(owner, space, CSV.encode())).headers["location"]
    await shown(owner, path)
    answer = await owner.send_form(f"{path}/start", path, None, **fields)
    assert (answer.status_code, words in answer.text) == (400, True)


async def test_a_preview_is_shown_to_who_asked_for_it(
    app: FastAPI, space: Space, owner: Visitor
) -> None:
    path = (await sent(owner, space, CSV.encode())).headers["location"]
    assert "<td>Tea<" in await shown(owner, path)
    other_id, _ = await space.member(Role.ADMIN)
    async with await signed_in(app, space, other_id) as other:
        assert (await other.get(path)).status_code == 404
        assert (await other.send_form(f"{path}/start", label="Theirs")).status_code == 404


async def test_a_file_of_another_session_is_not_stored(space: Space, owner: Visitor) -> None:
    place = f"/workspaces/{space.id}/imports/previews"
    files = {"file": ("Prices.csv", CSV.encode(), "text/csv")}
    for data in ({}, {"csrfToken": "x" * 43}):
        answer = await owner.post(place, data=data, files=files)
        assert answer.status_code == 403
    empty = await sent(owner, space, b"")
    assert (empty.status_code, "is empty" in empty.text) == (400, True)
    async with space.database.transaction() as work:
        count = select(func.count()).select_from(file).where(file.c.workspace_id == space.id)
        assert await work.scalar(count) == 0


async def test_the_api_previews_what_it_imports(
    client: Client, space: Space, owner: Visitor
) -> None:
    assert owner.cookie
    body = {"kind": "inline", "format": "csv", "text": "name,price\nTea,3\n", "limit": 1}
    preview = read(await client.post(f"{space.path}/imports/preview", json=body))
    assert preview["rows"] == [{"name": "Tea", "price": "3"}]
    assert [one["kind"] for one in preview["columns"]] == ["text", "number"]
    wrong = await client.post(f"{space.path}/imports/preview", json={"kind": "inline"})
    assert wrong.status_code == 400
    async with space.database.transaction() as work:
        kept = select(func.count()).select_from(job).where(job.c.workspace_id == space.id)
        assert await work.scalar(kept) == 0


@pytest.mark.long
async def test_a_source_is_previewed_before_it_is_there_and_after(
    client: Client, space: Space, owner: Visitor, serve: Serve
) -> None:
    endpoint = await serve(reply(200, f"name,price\n{HOSTILE},3\nMilk,1.5\n", type_="text/csv"))
    place = f"/workspaces/{space.id}/data-sources"
    described = {
        "label": "Prices",
        "kind": "http_csv",
        "config": json.dumps({"url": endpoint.url}),
        "keyFields": "title",
        "writeMode": "replace",
    }
    answer = await owner.send_form(f"{place}/preview", f"{place}/new", None, **described)
    assert answer.status_code == 303, answer.text
    path = answer.headers["location"]
    page = await shown(owner, path)
    assert ("Milk" in page, HOSTILE in page, "<code>title</code>" in page) == (True, False, True)
    # It is no preview of an import, nor the other way round.
    import_path = path.replace("data-sources", "imports")
    assert (await owner.get(import_path)).status_code == 404
    imported = (await sent(owner, space, CSV.encode())).headers["location"]
    assert (await owner.get(imported.replace("imports", "data-sources"))).status_code == 404
    # What was described is still in the form.
    assert 'value="Prices"' in page
    assert 'value="replace" selected' in page
    assert read(await client.get(f"{space.path}/data-sources"))["dataSources"] == []
    made = await owner.send_form(place, f"{place}/new", None, **described)
    stored = made.headers["location"]
    again = await owner.send_form(f"{stored}/preview", stored)
    page = await shown(owner, again.headers["location"])
    assert ("Milk" in page, "Back to data source" in page) == (True, True)
    wrong = {**described, "config": json.dumps({"url": f"{endpoint.url}gone"})}
    failed = await owner.send_form(f"{place}/preview", f"{place}/new", None, **wrong)
    assert failed.status_code == 303
    viewer_id, _ = await space.member(Role.VIEWER)
    async with await signed_in(owner.app, space, viewer_id) as viewer:
        assert (await viewer.send_form(f"{stored}/preview", stored)).status_code == 403
        assert (await viewer.get(path)).status_code == 403
