"""Importing spreadsheets, from the request to the records, with real workers in between."""

import base64
import io
from typing import Any
from uuid import uuid4

import pytest
from openpyxl import Workbook
from sqlalchemy import func, select

from models.messages.jobs.store import job
from models.sources.data_source_runs.rules import missing_rows
from models.sources.data_source_runs.tables import data_source_run
from tests.support.client import Client
from tests.support.endpoint import Serve, reply
from tests.support.engine import Engine
from tests.support.spaces import Space
from tests.support.workbooks import compound, open_cell, open_document, open_sheet

pytestmark = pytest.mark.takes(seconds=20)

CSV = """Name;Betrag;Stadt;Postleitzahl;Am
Anna;1.234,5;Köln;01067;31.12.2025
Bernd;7;Bonn;53111;01.02.2026
;;;;
Cora;acht;Köln;50667;
"""


def sheet(*rows: Any) -> bytes:
    book = Workbook()
    assert book.active is not None
    for row in rows:
        book.active.append(row)
    written = io.BytesIO()
    book.save(written)
    return written.getvalue()


@pytest.fixture
async def importing(client: Client, space: Space, engine: Engine) -> Any:
    """Imports inline content; workers are running."""
    assert engine.database is space.database

    async def call(content: bytes | str | None, file_format: str, **more: Any) -> Any:
        raw = content.encode() if isinstance(content, str) else content
        body = {
            "label": "Imported",
            "kind": "inline",
            "format": file_format,
            **({} if raw is None else {"content": base64.b64encode(raw).decode()}),
            "fields": [],
            **more,
        }
        return await client.post(f"{space.path}/data-sources/import-spreadsheet", json=body)

    return call


async def records(client: Client, database_id: str) -> list[Any]:
    """The records in the order of their rows."""
    read = await client.get(f"/v1/databases/{database_id}/records?limit=100")
    return [one["data"] for one in reversed(read.json()["data"]["records"])]


async def test_columns_without_a_mapping_fill_the_fields_they_suggest(
    client: Client, space: Space, importing: Any
) -> None:
    answer = await importing(CSV, "csv", options={"decimalSeparator": ","})
    assert answer.status_code == 200, answer.text
    result = answer.json()["data"]
    assert (result["label"], result["fieldCount"]) == ("Imported", 5)
    assert (result["recordCount"], result["skippedRowCount"], result["skippedCells"]) == (3, 1, 0)
    made = (await client.get(f"{space.path}/databases/{result['databaseId']}")).json()["data"]
    assert made["itemId"] == result["itemId"]
    assert {one["key"]: one["kind"] for one in made["fields"]} == {
        "title": "text",
        "betrag": "text",
        "stadt": "text",
        "postleitzahl": "text",
        "am": "date",
    }
    first, second, third = await records(client, result["databaseId"])
    assert first["postleitzahl"] == "01067", "leading zeros stay"
    assert (first["am"], second["am"], "am" in third) == ("2025-12-31", "2026-02-01", False)


async def test_inline_text_needs_no_base64(client: Client, importing: Any) -> None:
    answer = await importing(None, "csv", text="Name;Stadt\nAnna;Köln\n")
    assert answer.status_code == 200, answer.text
    assert await records(client, answer.json()["data"]["databaseId"]) == [
        {"title": "Anna", "stadt": "Köln"}
    ]


@pytest.mark.long
async def test_a_mapping_says_what_columns_become(client: Client, importing: Any) -> None:
    fields = [
        {"sourcePath": "Name", "fieldKey": "title", "label": "Name", "kind": "text"},
        {"sourcePath": "B", "fieldKey": "amount", "label": "Amount", "kind": "number"},
        {"sourcePath": "Stadt", "fieldKey": "city", "label": "City", "kind": "select"},
    ]
    answer = await importing(CSV, "csv", fields=fields, options={"decimalSeparator": ","})
    result = answer.json()["data"]
    assert (result["recordCount"], result["skippedRowCount"], result["skippedCells"]) == (3, 1, 1)
    assert await records(client, result["databaseId"]) == [
        {"title": "Anna", "amount": 1234.5, "city": "koln"},
        {"title": "Bernd", "amount": 7, "city": "bonn"},
        {"title": "Cora", "city": "koln"},
    ]


@pytest.mark.long
async def test_a_workbook_keeps_its_types(client: Client, importing: Any) -> None:
    content = sheet(["Name", "Count", "Zip"], ["a", 1.5, "007"], ["b", 2, "12"])
    result = (await importing(content, "xlsx")).json()["data"]
    assert result["sheetNameUsed"] == "Sheet"
    fields = [{"sourcePath": "Name", "fieldKey": "title", "label": "Name", "kind": "text"}]
    mapped = (await importing(content, "xlsx", fields=fields)).json()["data"]
    assert (mapped["sheetNameUsed"], mapped["fieldCount"]) == ("Sheet", 1)
    assert "sheetNameUsed" not in (await importing(CSV, "csv")).json()["data"]
    assert await records(client, result["databaseId"]) == [
        {"title": "a", "count": 1.5, "zip": "007"},
        {"title": "b", "count": 2, "zip": "12"},
    ]


async def test_cells_that_no_field_can_hold_are_counted(client: Client, importing: Any) -> None:
    rows = b'[{"a\\u0000":"x","b":1e400,"":"\\u0000"},{"a\\u0000":"y","b":7,"":"z"}]'
    answer = await importing(rows, "json")
    assert answer.status_code == 200, answer.text
    result = answer.json()["data"]
    assert (result["recordCount"], result["skippedCells"]) == (2, 2)
    assert await records(client, result["databaseId"]) == [
        {"title": "x"},
        {"title": "y", "b": 7, "c": "z"},
    ]


async def test_a_mapping_names_columns_that_are_there(importing: Any) -> None:
    fields = [{"sourcePath": "Nmae", "fieldKey": "title", "label": "Name", "kind": "text"}]
    answer = await importing(CSV, "csv", fields=fields)
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")
    assert "Column Nmae not found. Columns: Name, Betrag" in answer.json()["message"]


@pytest.mark.long
async def test_an_existing_database_is_filled_by_keys(
    client: Client, space: Space, importing: Any
) -> None:
    first = (await importing("name,price\nTea,3\nMilk,1\n", "csv")).json()["data"]
    target = {"targetDatabaseId": first["databaseId"], "mode": "upsert", "keyFields": ["title"]}
    answer = await importing("name,price\nTea,4\nRice,2\n", "csv", **target)
    assert answer.status_code == 200, answer.text
    second = answer.json()["data"]
    assert second["recordCount"] == 2
    expected = {"Tea": 4, "Milk": 1, "Rice": 2}
    found = await records(client, first["databaseId"])
    assert {one["title"]: one["price"] for one in found} == expected
    undone = await client.post(f"{space.path}/imports/{second['importId']}/undo")
    assert undone.status_code == 200, undone.text
    assert undone.json()["data"]["reversal"] == {"reverted": 2, "kept": 0}
    found = await records(client, first["databaseId"])
    assert {one["title"]: one["price"] for one in found} == {"Tea": 3, "Milk": 1}


async def test_keys_of_an_existing_database_are_found_in_any_normal_form(
    client: Client, importing: Any
) -> None:
    names = "Zo\u00eb", "Zoe\u0308"
    for before, after in (names, names[::-1]):
        made = (await importing(f"name,key,price\nTea,{before},3\n", "csv")).json()["data"]
        target = {"targetDatabaseId": made["databaseId"], "mode": "upsert", "keyFields": ["key"]}
        answer = await importing(f"name,key,price\nMilk,{after},4\n", "csv", **target)
        assert answer.status_code == 200, answer.text
        found = await records(client, made["databaseId"])
        assert [(one["title"], one["price"]) for one in found] == [("Milk", 4)]


async def test_columns_of_choices_bring_their_options_along(
    client: Client, space: Space, importing: Any
) -> None:
    content = "name,state,tags\n" + "".join(
        f"n{number},{('Open', 'Done')[number % 2]},a; b{number % 3}\n" for number in range(1_200)
    )
    kinds = {"name": "text", "state": "status", "tags": "multi_select"}
    fields = [
        {"sourcePath": key, "fieldKey": "title" if key == "name" else key, "label": key, "kind": of}
        for key, of in kinds.items()
    ]
    result = (await importing(content, "csv", fields=fields)).json()["data"]
    assert (result["recordCount"], result["skippedCells"]) == (1_200, 0)
    made = (await client.get(f"{space.path}/databases/{result['databaseId']}")).json()["data"]
    named = {one["key"]: [each["name"] for each in one["options"]] for one in made["fields"][1:]}
    assert named == {"state": ["Open", "Done"], "tags": ["a", "b0", "b1", "b2"]}
    newest = (await records(client, result["databaseId"]))[-1]
    assert newest == {"title": "n1199", "state": "done", "tags": ["a", "b2"]}


async def test_records_of_a_new_database_have_a_history_and_the_order_of_their_rows(
    client: Client, importing: Any
) -> None:
    result = (await importing("name,price\nTea,3\nMilk,1\n", "csv")).json()["data"]
    path = f"/v1/databases/{result['databaseId']}/records"
    milk, tea = (await client.get(path)).json()["data"]["records"]
    assert [one["data"]["title"] for one in (tea, milk)] == ["Tea", "Milk"]
    changed = await client.patch(f"/v1/records/{tea['id']}", json={"data": {"price": 4}})
    assert changed.is_success, changed.text
    told = await client.get(f"/v1/records/{tea['id']}/history")
    updated, created = told.json()["data"]["changes"]
    assert (created["kind"], created["after"]) == ("created", {"title": "Tea", "price": 3})
    assert created["runId"] == result["importId"]
    assert (updated["kind"], updated["before"], updated["after"]) == (
        "updated",
        {"price": 3},
        {"price": 4},
    )


async def test_of_rows_with_the_same_keys_a_new_database_has_the_last(
    client: Client, importing: Any
) -> None:
    keyed = {"mode": "upsert", "keyFields": ["title"]}
    result = (await importing("name,price\nTea,3\nTea,4\n", "csv", **keyed)).json()["data"]
    assert (result["recordCount"], result["skippedRowCount"]) == (1, 1)
    assert await records(client, result["databaseId"]) == [{"title": "Tea", "price": 4}]


async def test_undoing_takes_a_new_database_away(
    client: Client, space: Space, importing: Any
) -> None:
    result = (await importing("name\nTea\n", "csv")).json()["data"]
    undone = await client.post(f"{space.path}/imports/{result['importId']}/undo")
    assert undone.status_code == 200, undone.text
    gone = await client.get(f"{space.path}/databases/{result['databaseId']}")
    assert gone.status_code == 404
    shown = (await client.get(f"{space.path}/imports/{result['importId']}")).json()["data"]
    assert shown["revertedAt"] == undone.json()["data"]["revertedAt"]


async def test_a_mutation_id_stands_for_one_import(importing: Any) -> None:
    mutation = {"clientMutationId": uuid4().hex}
    first = await importing("name\nTea\n", "csv", **mutation)
    assert first.status_code == 200, first.text
    assert (await importing("name\nTea\n", "csv", **mutation)).json() == first.json()
    other = await importing("name\nMilk\n", "csv", **mutation)
    assert (other.status_code, other.json()["error"]) == (422, "conflicting_mutation")


async def test_an_import_that_failed_may_be_repeated(importing: Any) -> None:
    mutation = {"clientMutationId": uuid4().hex}
    assert (await importing(" ", "csv", **mutation)).status_code == 400
    assert (await importing("name\nTea\n", "csv", **mutation)).status_code == 200


@pytest.mark.parametrize(
    ("content", "file_format", "said"),
    [
        pytest.param(b"no workbook", "xlsx", "is not a workbook", id="malformed"),
        pytest.param(b"PK\x03\x04rest", "xlsx", "damaged", id="truncated"),
        pytest.param(compound("EncryptedPackage"), "xlsx", "without a password", id="encrypted"),
        pytest.param(sheet(["Name", "Sum"], ["a", "=1+1"]), "xlsx", "and save it", id="formulas"),
        pytest.param(sheet(), "xlsx", "is empty", id="no-cells"),
        pytest.param(sheet(["Name"], ["a"]), "csv", "is a workbook", id="wrong-extension"),
        pytest.param(b"name,price\n", "csv", "no rows", id="empty"),
        pytest.param(b'name,n\nTea,"5 inch\nMilk,1\n', "csv", "in line 2 is not", id="open-quote"),
        pytest.param(b"sep=;\r\n", "csv", "no line with a value", id="delimiter-alone"),
        pytest.param(b'{"a": ', "json", "not valid JSON", id="broken-json"),
        pytest.param(b"\n".join([b",".join([b"x"] * 201)] * 2), "csv", "200 columns", id="wide"),
    ],
)
async def test_an_unreadable_file_is_answered_with_the_remedy(
    client: Client, space: Space, importing: Any, content: bytes, file_format: str, said: str
) -> None:
    answer = await importing(content, file_format)
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_error"), answer.text
    assert said in answer.json()["message"]
    databases = await client.get(f"{space.path}/databases")
    assert databases.json()["data"]["databases"] == [], "nothing of it is left"


async def test_a_file_that_states_its_delimiter_is_read_by_it(
    client: Client, space: Space, importing: Any, serve: Serve
) -> None:
    content = "sep=;\r\n\r\n;\r\nName;Qty\r\nNut, small;10\u202f237\r\n".encode("utf-16")
    result = (await importing(content, "csv")).json()["data"]
    assert await records(client, result["databaseId"]) == [{"title": "Nut, small", "qty": 10237}]
    endpoint = await serve(reply(200, content, type_="text/csv"))
    body = {"kind": "http_csv", "config": {"url": endpoint.url}}
    answer = await client.post(f"{space.path}/data-sources/preview", json=body)
    assert [one["kind"] for one in answer.json()["data"]["columns"]] == ["text", "number"]


async def test_a_percentage_of_ods_is_that_of_xlsx(
    client: Client, space: Space, importing: Any, serve: Serve
) -> None:
    header = open_cell("string", "Name") + open_cell("string", "Share")
    row = open_cell("string", "Tea") + open_cell("percentage", "25.6%", value="0.256")
    content = open_document(open_sheet(header, row))
    result = (await importing(content, "ods")).json()["data"]
    assert await records(client, result["databaseId"]) == [{"title": "Tea", "share": 25.6}]
    endpoint = await serve(reply(200, content, type_="application/octet-stream"))
    body = {"kind": "http_xlsx", "config": {"url": endpoint.url}}
    answer = await client.post(f"{space.path}/data-sources/preview", json=body)
    assert [one["kind"] for one in answer.json()["data"]["columns"]] == ["text", "percent"]


@pytest.mark.long
@pytest.mark.parametrize("by", ["body", "header", "pages"])
async def test_a_preview_warns_of_rows_that_its_source_keeps(
    client: Client, space: Space, engine: Engine, serve: Serve, by: str
) -> None:
    assert engine.database is space.database
    content = {"items": [{"n": 1}, {"n": 2}], **({"total": 7} if by != "header" else {})}
    stated = {"x_total_count": "7"} if by == "header" else {}
    endpoint = await serve(reply(200, content, type_="application/json", **stated))
    pages = {"pagination": {"type": "page", "param": "page"}} if by == "pages" else {}
    body = {"kind": "http_json", "config": {"url": endpoint.url, **pages}}
    answer = await client.post(f"{space.path}/data-sources/preview", json=body)
    warning = answer.json()["data"].get("warning")
    assert warning == (None if by == "pages" else missing_rows(5))


async def test_a_preview_stores_nothing(
    client: Client, space: Space, engine: Engine, serve: Serve
) -> None:
    assert engine.database is space.database
    endpoint = await serve(reply(200, "name,price\nTea,3\nMilk,1.5\n", type_="text/csv"))
    body = {"kind": "http_csv", "config": {"url": endpoint.url}, "limit": 1}
    answer = await client.post(f"{space.path}/data-sources/preview", json=body)
    assert answer.status_code == 200, answer.text
    shown = answer.json()["data"]
    assert shown["rows"] == [{"name": "Tea", "price": "3"}]
    assert [(one["suggestedKey"], one["kind"]) for one in shown["columns"]] == [
        ("title", "text"),
        ("price", "number"),
    ]
    async with space.database.transaction() as work:
        kept = select(func.count()).select_from(job).where(job.c.workspace_id == space.id)
        assert await work.scalar(kept) == 0


@pytest.mark.long
@pytest.mark.parametrize(
    ("path", "type_", "content"),
    [
        ("rows.csv", "application/json", b"name\nTea\n"),
        ("rows", "text/csv; charset=utf-8", b"name\nTea\n"),
        ("rows?as=x.json", "text/tab-separated-values", b"name\tb\nTea\t1\n"),
        ("rows", "application/octet-stream", b'\xef\xbb\xbf {"rows": [{"name": "Tea"}]}'),
        ("rows", "application/octet-stream", b'{"name": "Tea"}\n{"name": "Milk"}\n'),
        ("rows", "text/plain", '[{"name": "Tea"}]'.encode("utf-16")),
        ("rows.2026", "text/plain", b"name;b\nTea;1\n"),
        ("rows", "application/zip", sheet(["name"], ["Tea"])),
    ],
)
async def test_a_url_is_read_as_its_name_its_type_or_its_content_say(
    client: Client,
    space: Space,
    engine: Engine,
    serve: Serve,
    path: str,
    type_: str,
    content: bytes,
) -> None:
    assert engine.database is space.database
    endpoint = await serve(reply(200, content, type_=type_))
    body = {"label": "Called", "kind": "url", "url": f"{endpoint.url}{path}"}
    answer = await client.post(f"{space.path}/data-sources/import-spreadsheet", json=body)
    assert answer.status_code == 200, answer.text
    found = await records(client, answer.json()["data"]["databaseId"])
    assert found[0]["title"] == "Tea"


@pytest.mark.long
async def test_a_preview_counts_what_cannot_be_stored_as_the_import_does(
    client: Client, space: Space, importing: Any, serve: Serve
) -> None:
    content = "a\0b,price\n1\0,2\nTea,3\n"
    endpoint = await serve(reply(200, content, type_="text/csv"))
    body = {"kind": "http_csv", "config": {"url": endpoint.url}}
    answer = await client.post(f"{space.path}/data-sources/preview", json=body)
    assert answer.status_code == 200, answer.text
    assert len(endpoint.requests) == 1, "it was repeated"
    shown, imported = answer.json()["data"], (await importing(content, "csv")).json()["data"]
    assert shown["rows"] == [{"a b": None, "price": "2"}, {"a b": "Tea", "price": "3"}]
    assert shown["skippedCells"] == imported["skippedCells"] == 1


@pytest.mark.long
async def test_the_file_and_credentials_of_an_import_do_not_outlive_it(
    client: Client, space: Space, importing: Any, serve: Serve
) -> None:
    endpoint = await serve(reply(200, b"Name\ncanary-aa31\n", type_="text/csv"))
    called = {
        "label": "Called",
        "kind": "url",
        "format": "csv",
        "url": f"{endpoint.url}canary-1d6b?key=canary-1d6b",
        "headers": {"X-Key": "canary-1d6b"},
        "fields": [],
    }
    imported = await client.post(f"{space.path}/data-sources/import-spreadsheet", json=called)
    assert imported.is_success, imported.text
    assert endpoint.requests[0].headers["x-key"] == "canary-1d6b"
    assert (await importing("Name\nBerta\n", "csv")).is_success
    async with space.database.transaction() as work:
        plans = await work.rows(
            select(data_source_run.c.plan).where(data_source_run.c.workspace_id == space.id)
        )
    assert {row.plan["config"].get("url") for row in plans} == {None, endpoint.url}
    assert "canary-1d6b" not in str(plans)
    assert not any("content" in row.plan["config"] for row in plans)


@pytest.mark.long
async def test_a_replacement_leaves_its_own_rows(importing: Any, client: Client) -> None:
    made = (await importing("name\nOld\n", "csv")).json()["data"]
    into = {"targetDatabaseId": made["databaseId"], "mode": "replace"}
    again = await importing("name\nNew\nNewer\n", "csv", **into)
    assert again.status_code == 200, again.text
    found = await client.get(f"/v1/databases/{made['databaseId']}/records")
    titles = {one["title"] for one in found.json()["data"]["records"]}
    assert titles == {"New", "Newer"}
