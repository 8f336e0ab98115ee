"""What would not fit is seen before an import, and can be read after it."""

import base64
import csv
import io
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import func, select, update

from models.sources.data_source_runs.rules import REVERTIBLE
from models.sources.data_source_runs.tables import data_source_run, purge_rejections, run_rejection
from models.sources.tabular.rules.rejections import MAX_REJECTIONS
from tests.support.client import Client
from tests.support.endpoint import Serve, reply
from tests.support.engine import Engine
from tests.support.patience import eventually
from tests.support.spaces import Space

pytestmark = [pytest.mark.takes(seconds=20), pytest.mark.usefixtures("engine")]

FILE = "Report 2026\nname,day,price,paid,mail\n" + "".join(
    f'n{n},{13 + n % 10}/11/2026,"{n},50",{"YN"[n % 2]},p{n}@example.com\n' for n in range(30)
)
MAPPED: list[dict[str, Any]] = [
    {"sourcePath": "name", "fieldKey": "title", "label": "Name", "kind": "text"},
    {
        "sourcePath": "price",
        "fieldKey": "price",
        "label": "Price",
        "kind": "number",
        "settings": {"max": 100},
        "required": True,
    },
    {
        "sourcePath": "state",
        "fieldKey": "state",
        "label": "State",
        "kind": "select",
        "options": [{"name": "Open"}],
    },
]
ROWS = "name,price,state\nTea,3,open\n=Milk,many,Shut\nRice,500,\nTea,,OPEN\n"


@pytest.fixture
def call(client: Client, space: Space, engine: Engine) -> Any:
    """Sends a body about a text to an operation of imports; workers are running."""
    assert engine.database is space.database

    async def sent(operation: str, text: str, **more: Any) -> Any:
        body = {"kind": "inline", "format": "csv", "text": text, **more}
        if operation == "data-sources/import-spreadsheet":
            body = {"label": "Imported", "fields": [], **body}
        answer = await client.post(f"{space.path}/{operation}", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]

    return sent


async def rejects(client: Client, space: Space, import_id: str, query: str = "") -> Any:
    answer = await client.get(f"{space.path}/imports/{import_id}/rejects{query}")
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


@pytest.mark.long
async def test_a_file_is_read_as_its_rows_suggest(client: Client, call: Any) -> None:
    seen = await call("imports/preview", FILE)
    kinds = {one["sourcePath"]: one["kind"] for one in seen["columns"]}
    assert kinds == {
        "name": "text",
        "day": "date",
        "price": "number",
        "paid": "checkbox",
        "mail": "email",
    }
    assert seen["proposed"] == {
        "headerRow": 2,
        "delimiter": ",",
        "encoding": "utf-8",
        "dateOrder": "dmy",
        "decimalSeparator": ",",
        "booleanWords": {"true": ["y"], "false": ["n"]},
        "undecided": [],
    }
    assert (seen["rowCount"], seen["sampled"], seen["skippedCells"]) == (30, False, 0)
    made = await call("data-sources/import-spreadsheet", FILE)
    assert (made["recordCount"], made["skippedCells"]) == (30, 0)
    read = await client.get(f"/v1/databases/{made['databaseId']}/records?limit=1")
    [last] = read.json()["data"]["records"]
    assert last["data"] == {
        "title": "n29",
        "day": "2026-11-22",
        "price": 29.5,
        "paid": False,
        "mail": "p29@example.com",
    }
    explicit = {"dateOrder": "ymd", "decimalSeparator": ".", "headerRow": 2}
    strict = await call("imports/preview", FILE, options=explicit)
    kinds = {one["sourcePath"]: one["kind"] for one in strict["columns"]}
    assert (kinds["day"], kinds["price"]) == ("select", "text")


@pytest.mark.long
async def test_rejected_cells_are_shown_before_and_after_the_import(
    client: Client, space: Space, call: Any
) -> None:
    seen = await call("imports/preview", ROWS, fields=MAPPED)
    assert (seen["skippedCells"], seen["skippedRowCount"]) == (3, 3)
    assert {one["fieldKey"]: one["count"] for one in seen["rejected"]} == {"price": 2, "state": 1}
    made = await call("data-sources/import-spreadsheet", ROWS, fields=MAPPED)
    assert (made["skippedCells"], made["skippedRowCount"]) == (3, 3)
    found = await rejects(client, space, made["importId"])
    assert [
        (one["type"], one["row"], one.get("column"), one.get("fieldKey"), one.get("value"))
        for one in found["rejects"]
    ] == [
        ("cell", 3, "price", "price", "many"),
        ("cell", 3, "state", "state", "Shut"),
        ("row", 3, None, "price", None),
        ("cell", 4, "price", "price", "500"),
        ("row", 4, None, "price", None),
        ("row", 5, None, "price", None),
    ]
    assert found["rejects"][3]["reason"] == "Greater than the maximum of 100."
    assert (found["skippedCells"], found["skippedRowCount"], found["kept"]) == (3, 3, 6)
    assert found["cursor"] is None
    first = await rejects(client, space, made["importId"], "?limit=4")
    rest = await rejects(client, space, made["importId"], f"?limit=4&cursor={first['cursor']}")
    assert [*first["rejects"], *rest["rejects"]] == found["rejects"]
    made_database = await client.get(f"{space.path}/databases/{made['databaseId']}")
    price, state = made_database.json()["data"]["fields"][1:3]
    assert (price["settings"]["max"], price["required"]) == (100, True)
    assert [one["name"] for one in state["options"]] == ["Open"]


async def test_rejects_are_a_file_that_no_spreadsheet_runs(
    client: Client, space: Space, call: Any
) -> None:
    rows = 'name,price\nTea,"=HYPERLINK(""http://x.example"")"\n'
    fields = [dict(MAPPED[0]), {**MAPPED[1], "required": False}]
    made = await call("data-sources/import-spreadsheet", rows, fields=fields)
    path = f"{space.path}/imports/{made['importId']}/rejects"
    for answer in (
        await client.get(f"{path}?format=csv"),
        await client.get(path, headers={"Accept": "text/csv"}),
    ):
        assert answer.headers["content-type"] == "text/csv; charset=utf-8"
        assert answer.headers["content-disposition"].startswith("attachment")
        read = [*csv.reader(io.StringIO(answer.content.decode("utf-8-sig")))]
        assert read == [
            ["Row", "Column", "Field", "Value", "Reason"],
            ["2", "price", "price", '\'=HYPERLINK("http://x.example")', "Not a number."],
        ]
    refused = await client.get(f"{path}?format=xlsx")
    assert refused.status_code == 400


@pytest.mark.long
async def test_a_target_is_what_a_preview_checks_against(
    client: Client, space: Space, call: Any
) -> None:
    made = await call("data-sources/import-spreadsheet", "name,price\nTea,3\n")
    target = {"targetDatabaseId": made["databaseId"]}
    rows = "name,price\nTea,4\nMilk,many\nTea,5\n"
    seen = await call("imports/preview", rows, **target)
    assert seen["skippedCells"] == 1, "the column is text, but the field is a number"
    keyed = {**target, "keyFields": ["title"], "mode": "upsert"}
    second = await call("data-sources/import-spreadsheet", rows, **keyed)
    assert (second["skippedCells"], second["skippedRowCount"]) == (1, 1)
    found = await rejects(client, space, second["importId"])
    assert [(one["type"], one["row"], one["reason"]) for one in found["rejects"]] == [
        ("cell", 3, "Not a number."),
        ("row", 2, "Row skipped: a later row has the same key values."),
    ]


@pytest.mark.long
async def test_a_limited_number_of_rejects_is_kept_and_all_are_counted(
    client: Client, space: Space, call: Any
) -> None:
    rows = "name,price\n" + "Tea,x\n" * (MAX_REJECTIONS + 500)
    fields = [dict(MAPPED[0]), {**MAPPED[1], "required": False}]
    made = await call("data-sources/import-spreadsheet", rows, fields=fields)
    found = await rejects(client, space, made["importId"], "?limit=1")
    assert (found["skippedCells"], found["kept"]) == (MAX_REJECTIONS + 500, MAX_REJECTIONS)
    counted = select(func.count()).select_from(run_rejection)
    async with space.database.transaction() as work:
        ended = data_source_run.c.completed_at - REVERTIBLE - timedelta(minutes=1)
        await work.execute(update(data_source_run).values(completed_at=ended))
        while await purge_rejections(work):
            pass
        assert await work.scalar(counted) == 0
    assert (await rejects(client, space, made["importId"]))["skippedCells"] > MAX_REJECTIONS


@pytest.mark.long
async def test_a_data_source_keeps_what_its_last_run_left_out(
    client: Client, space: Space, serve: Serve
) -> None:
    endpoint = await serve(
        reply(200, "day\n21/11/2026\nsoon\n", type_="text/csv"),
        reply(200, "day\n01/02/2026\nlater\n", type_="text/csv"),
    )
    body = {
        "label": "Days",
        "kind": "http_csv",
        "config": {"url": f"{endpoint.url}days.csv"},
        "fields": [{"sourcePath": "day", "fieldKey": "day", "label": "Day", "kind": "date"}],
        "writeMode": "append",
    }
    source = (await client.post(f"{space.path}/data-sources", json=body)).json()["data"]
    path = f"{space.path}/data-sources/{source['id']}"

    async def refreshed() -> str:
        run = (await client.post(f"{path}/refresh", json={})).json()["data"]

        async def has_ended() -> bool:
            shown = (await client.get(f"{path}/runs/{run['id']}")).json()["data"]
            assert shown["status"] != "failed", shown
            return bool(shown["status"] == "succeeded")

        await eventually(has_ended, "the end of the run")
        return str(run["id"])

    async def values(run_id: str) -> list[str]:
        answer = await client.get(f"{path}/runs/{run_id}/rejects")
        return [one["value"] for one in answer.json()["data"]["rejects"] if "value" in one]

    first = await refreshed()
    assert await values(first) == ["soon"]
    second = await refreshed()
    # 1 February: the rows alone do not decide it, those of the run before did.
    assert (await values(first), await values(second)) == ([], ["later"])
    read = await client.get(f"/v1/databases/{source['targetDatabaseId']}/records")
    days = {one["data"].get("day") for one in read.json()["data"]["records"]}
    assert days == {"2026-11-21", "2026-02-01"}


EMPTY_KEY = "Code is a key field, and is empty."
KEYLESS = "name,code,part,price\nTea,a,,1\nMilk,,,2\n,a,1,3\nRice,,,4\nSalt,,2,5\n"
EMPTY_KEYS = [
    {"type": "row", "row": row, "fieldKey": "code", "reason": f"Row skipped: {EMPTY_KEY}"}
    for row in (3, 5)
]


@pytest.mark.long
@pytest.mark.parametrize("mode", ["upsert", "replace", "insert"])
async def test_a_row_without_any_of_its_keys_is_skipped_and_told(
    call: Any, client: Client, space: Space, mode: str
) -> None:
    columns = [("name", "title"), ("code", "code"), ("part", "part"), ("price", "price")]
    kinds = {"price": "number"}
    fields = [
        {
            "sourcePath": name,
            "fieldKey": key,
            "label": name.title(),
            "kind": kinds.get(key, "text"),
        }
        for name, key in columns
    ]
    before = "name,code,part,price\nOld,z,,\n"
    first = await call("data-sources/import-spreadsheet", before, fields=fields)
    more = {
        "fields": fields,
        "keyFields": ["code", "part"],
        "targetDatabaseId": first["databaseId"],
        "mode": mode,
    }
    for _ in range(2):
        made = await call("data-sources/import-spreadsheet", KEYLESS, **more)
        skipped = 0 if mode == "insert" else 2
        assert (made["recordCount"], made["skippedRowCount"]) == (5 - skipped, skipped)
        rejects = await client.get(f"{space.path}/imports/{made['importId']}/rejects")
        assert rejects.json()["data"]["rejects"] == EMPTY_KEYS[:skipped]
    read = await client.get(f"/v1/databases/{first['databaseId']}/records")
    titles = sorted(one["title"] for one in read.json()["data"]["records"])
    expected = {
        "upsert": ["", "Old", "Salt", "Tea"],
        "replace": ["", "Salt", "Tea"],
        "insert": sorted(["Old", *["", "Milk", "Rice", "Salt", "Tea"] * 2]),
    }
    assert titles == expected[mode]


@pytest.mark.parametrize("content", ["{}", "[{}]", '"x"'])
async def test_an_answer_without_a_list_says_what_it_is(
    client: Client, space: Space, serve: Serve, content: str
) -> None:
    endpoint = await serve(reply(200, content))
    body = {"kind": "http_json", "config": {"url": endpoint.url}}
    answer = await client.post(f"{space.path}/data-sources/preview", json=body)
    assert answer.status_code == 400
    message = answer.json()["message"]
    assert "empty object" in message or "not a list of objects" in message
    raw = base64.b64encode(content.encode()).decode()
    given = {"label": "A", "kind": "inline", "format": "json", "content": raw, "fields": []}
    imported = await client.post(f"{space.path}/data-sources/import-spreadsheet", json=given)
    assert (imported.status_code, imported.json()["message"] in message) == (400, True)
