"""Exports over HTTP: what stands in the files, who may have them, and what is never a formula."""

import asyncio
import io
import json
import time
import tracemalloc
from functools import partial
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import pytest
import pytest_asyncio
from openpyxl import load_workbook

from activities.jobs import exports
from activities.jobs.spreadsheets import write_spreadsheet
from models.core.access.rules import Role, Scope
from models.data.record_exports.shapes import ExportFormat
from runtime.configuration.settings import Settings
from runtime.object_store import ObjectStore
from tests.support.client import Client
from tests.support.exports import Exporting, content, export, read_csv, read_xlsx
from tests.support.files import objects
from tests.support.related import add, make_database, relate
from tests.support.spaces import Space

Json = dict[str, Any]

FIELDS: list[dict[str, Any]] = [
    {"label": "Price", "kind": "number"},
    {"label": "Done", "kind": "checkbox"},
    {"label": "Due", "kind": "date"},
    {"label": "At", "kind": "datetime"},
    {"label": "State", "kind": "select", "options": [{"name": "In review"}, {"name": "Done"}]},
    {"label": "Tags", "kind": "multi_select", "options": [{"name": "One"}, {"name": "Two"}]},
    {"label": "Note", "kind": "long_text"},
    {"label": "Who", "kind": "person"},
    {"label": "Any", "kind": "json"},
    {"label": "Place", "kind": "location"},
    {"label": "Serial", "kind": "auto_number"},
]
LABELS = [
    *("Title", "Price", "Done", "Due", "At", "State", "Tags", "Note", "Who", "Any", "Place"),
    "Serial",
]


@pytest.fixture
def exporting(space: Space, settings: Settings) -> Exporting:
    return Exporting(space.database, ObjectStore(settings.object_store))


async def test_exports_leave_half_of_the_time_of_a_worker_to_other_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, at_once, longest, rested = [0.0], [0], [0], list[float]()

    async def read_rows(*_: object) -> object:
        at_once[0] += 1
        longest[0] = max(longest[0], at_once[0])
        await yielded()
        at_once[0] -= 1
        now[0] += 0.25
        return object()

    async def sleep(seconds: float) -> None:
        rested.append(seconds)

    yielded = partial(asyncio.sleep, 0)
    monkeypatch.setattr(exports, "read_rows", read_rows)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(asyncio, "sleep", sleep)
    worker = exports.Exports(ObjectStore("memory://"))
    read = partial(worker._read, cast("Any", None), cast("Any", None), None)
    await asyncio.gather(*[read() for _ in range(4)])
    assert (longest[0], rested) == (1, [0.25] * 4)


@pytest_asyncio.fixture
async def database_id(client: Client, space: Space) -> str:
    return await make_database(client, space, "Things: all / of them", *FIELDS)


@pytest_asyncio.fixture
async def filled(client: Client, space: Space, database_id: str) -> str:
    """A database with one full record and one empty one, the full one last."""
    await add(client, database_id, "Empty")
    await add(
        client,
        database_id,
        "Full",
        data={
            "price": -12.5,
            "done": True,
            "due": "2026-05-20",
            "at": "2026-05-20T22:30:00Z",
            "state": "in_review",
            "tags": ["two", "one"],
            "note": 'Line 1\r\nLine 2, with "quotes"\nand ;tab\there Ä 🙂',
            "who": [str(space.user_id)],
            "any": {"a": [1, None]},
            "place": {"lat": 52.5, "lng": 13.25},
        },
    )
    return database_id


async def test_a_csv_file_is_read_back_as_what_was_written(
    client: Client, space: Space, exporting: Exporting, filled: str
) -> None:
    async with exporting.running(space.id):
        exported = await export(client, filled, format="csv", timezone="Europe/Berlin")
    data = await content(client, exported)
    assert exported["recordCount"] == 2
    assert exported["file"]["name"] == "Things: all - of them.csv"
    assert exported["file"]["byteSize"] == len(data)
    assert data.startswith(b"\xef\xbb\xbfTitle,Price,")
    assert data.endswith(b"\r\n")
    labels, full, empty = read_csv(data)
    assert labels == LABELS
    assert full == [
        *("Full", "-12.5", "TRUE", "2026-05-20", "2026-05-21T00:30:00.000+02:00", "In review"),
        *("Two, One", 'Line 1\r\nLine 2, with "quotes"\nand ;tab\there Ä 🙂', "Test"),
        *('{"a":[1,null]}', "52.5, 13.25", "2"),
    ]
    assert empty == ["Empty", *[""] * 10, "1"]


async def test_a_sheet_is_read_back_as_what_was_written(
    client: Client, space: Space, exporting: Exporting, filled: str
) -> None:
    async with exporting.running(space.id):
        exported = await export(client, filled, format="xlsx")
    labels, full, empty = read_xlsx(await content(client, exported))
    assert labels == LABELS
    assert full[:7] == [
        *("Full", -12.5, True, "2026-05-20", "2026-05-20T22:30:00.000+00:00", "In review"),
        "Two, One",
    ]
    assert full[7].replace("\r\n", "\n") == 'Line 1\nLine 2, with "quotes"\nand ;tab\there Ä 🙂'
    assert empty == ["Empty", *[None] * 10, 1]


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "+1",
        "-1",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        "\n=1",
        '=cmd|" /C calc"!A0',
        "\uff1d1+1",
        "\u200b=1+1",
        "\u2060\u3164 -1",
        '=HYPERLINK("http://evil","x")',
        "x\n=1",
    ],
)
async def test_no_text_is_taken_for_a_formula(
    client: Client, space: Space, exporting: Exporting, text: str
) -> None:
    field = {"label": f"{text} label", "kind": "select", "options": [{"name": text, "key": "x"}]}
    database_id = await make_database(client, space, "Risky", {**field, "key": "state"})
    await add(client, database_id, text, data={"state": "x"})
    async with exporting.running(space.id):
        in_csv = await export(client, database_id, format="csv")
        in_sheet = await export(client, database_id, format="xlsx")
    for row in read_csv(await content(client, in_csv)):
        assert all(cell[0] not in "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20" for cell in row), row
    assert read_csv(await content(client, in_csv))[1] == [f"'{text}", f"'{text}"]
    book = load_workbook(io.BytesIO(await content(client, in_sheet)))
    cells = [cell for row in book.active.iter_rows() for cell in row]
    assert {cell.data_type for cell in cells} == {"s"}
    assert cells[2].value.replace("\r", "\n") == text.replace("\r", "\n")


async def test_characters_no_sheet_holds_are_left_out(
    client: Client, space: Space, exporting: Exporting
) -> None:
    database_id = await make_database(client, space, "Odd", {"label": "Note", "kind": "long_text"})
    await add(client, database_id, "a\x01\x0b\x1fb\uffffc", data={"note": "x" * 40_000})
    async with exporting.running(space.id):
        exported = await export(client, database_id, format="xlsx")
    assert read_xlsx(await content(client, exported))[1] == ["abc", "x" * 32_767]


async def test_relations_and_lookups_are_written_as_titles(
    client: Client, space: Space, exporting: Exporting
) -> None:
    people = await make_database(client, space, "People")
    tasks = await make_database(client, space, "Tasks")
    await relate(client, tasks, people, "Owners")
    ids = [await add(client, people, name) for name in ("Ann", "Bob")]
    await add(client, tasks, "Write", relations={"owners": ids})
    async with exporting.running(space.id):
        exported = await export(client, tasks, format="csv")
    assert read_csv(await content(client, exported))[1:] == [["Write", "Ann, Bob"]]


async def test_an_export_has_what_a_query_finds_in_its_order(
    client: Client, space: Space, settings: Settings, database_id: str
) -> None:
    for number in range(23):
        await add(client, database_id, f"R{number:02}", data={"price": number % 5})
    archived = await add(client, database_id, "Old", data={"price": 3})
    assert (await client.post(f"/v1/records/{archived}/archive")).status_code == 200
    query: Json = {
        "filter": {"field": "price", "op": "gte", "value": 2},
        "sorts": [{"field": "price", "direction": "desc"}],
        "fields": ["title", "price"],
    }
    answer = await client.post(
        f"/v1/databases/{database_id}/records/query", json={**query, "limit": 200}
    )
    found = [one["title"] for one in answer.json()["data"]["records"]]
    exporting = Exporting(space.database, ObjectStore(settings.object_store), part=1)
    async with exporting.running(space.id):
        exported = await export(client, database_id, format="csv", **query)
        with_archived = await export(
            client, database_id, format="csv", includeArchived=True, **query
        )
    rows = read_csv(await content(client, exported))
    assert rows[0] == ["Title", "Price"]
    assert [row[0] for row in rows[1:]] == found
    assert exported["recordCount"] == len(found)
    assert with_archived["recordCount"] == len(found) + 1


async def test_the_records_of_a_view_are_exported(
    client: Client, space: Space, exporting: Exporting, filled: str
) -> None:
    manifest = {
        "filter": {"field": "done", "op": "eq", "value": True},
        "fields": [{"key": "title"}, {"key": "price"}, {"key": "note", "visible": False}],
    }
    made = await client.post(
        f"/v1/databases/{filled}/views",
        json={"label": "Done", "kind": "table", "manifest": manifest},
    )
    assert made.status_code == 201, made.text
    async with exporting.running(space.id):
        exported = await export(client, filled, format="csv", viewId=made.json()["data"]["id"])
    assert read_csv(await content(client, exported)) == [["Title", "Price"], ["Full", "-12.5"]]


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, "format"),
        ({"format": "pdf"}, "format"),
        ({"format": "csv", "limit": 5}, "limit"),
        ({"format": "csv", "fields": ["nobody"]}, "fields.0"),
        ({"format": "csv", "sorts": [{"field": "any"}]}, "sorts.0.field"),
        ({"format": "csv", "filter": {"field": "price", "op": "eq", "value": "1"}}, "filter.value"),
        ({"format": "csv", "timezone": "Mars/Base"}, "timezone"),
        ({"format": "csv", "search": "\x00"}, "search"),
    ],
)
async def test_each_error_is_named_by_its_path(
    client: Client, database_id: str, body: Json, path: str
) -> None:
    answer = await client.post(f"/v1/databases/{database_id}/export", json=body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["details"][0]["path"] == path


async def test_an_unfinished_export_is_shown_with_its_progress_and_continues(
    client: Client,
    space: Space,
    exporting: Exporting,
    filled: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("api.routers.data.records.EXPORT_WAIT_SECONDS", 0)
    headers = {"Idempotency-Key": uuid4().hex}
    path = f"/v1/databases/{filled}/export"
    first = await client.post(path, json={"format": "csv"}, headers=headers)
    shown = first.json()["data"]
    assert (shown["status"], shown.get("file"), shown["recordCount"]) == ("queued", None, 0)
    where = f"{space.path}/exports/{shown['id']}"
    assert (await client.get(where)).json()["data"] == shown
    assert await exporting.jobs.advance_job(shown["id"]) == "more"
    running = (await client.get(where)).json()["data"]
    assert (running["status"], running["recordCount"]) == ("running", 2)
    assert await exporting.finish(shown["id"]) == "done"
    ended = (await client.get(where)).json()["data"]
    assert ended["status"] == "succeeded"
    assert ended["completedAt"] is not None
    again = await client.post(path, json={"format": "csv"}, headers=headers)
    assert again.json()["data"]["id"] == shown["id"], "one key, one export"


async def test_a_chunk_that_is_repeated_doubles_nothing(
    client: Client,
    space: Space,
    settings: Settings,
    database_id: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for number in range(5):
        await add(client, database_id, f"R{number}")
    monkeypatch.setattr("api.routers.data.records.EXPORT_WAIT_SECONDS", 0)
    monkeypatch.setattr("models.data.record_exports.exports.RECORDS_AT_ONCE", 2)
    exporting = Exporting(space.database, ObjectStore(settings.object_store), part=2)
    shown = await export(client, database_id, format="csv", fields=["title"])
    outcomes = await asyncio.gather(*(exporting.jobs.advance_job(shown["id"]) for _ in range(8)))
    assert set(outcomes) <= {"more", "done", "closed"}
    await exporting.finish(shown["id"])
    ended = (await client.get(f"{space.path}/exports/{shown['id']}")).json()["data"]
    rows = read_csv(await content(client, ended))
    assert rows == [["Title"], ["R4"], ["R3"], ["R2"], ["R1"], ["R0"]]


async def test_an_export_fails_when_its_field_is_gone(
    client: Client,
    space: Space,
    exporting: Exporting,
    filled: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("api.routers.data.records.EXPORT_WAIT_SECONDS", 0)
    shown = await export(client, filled, format="csv", fields=["title", "price"])
    made = (await client.get(f"{space.path}/databases/{filled}")).json()["data"]
    price = next(field for field in made["fields"] if field["key"] == "price")
    assert (await client.delete(f"/v1/databases/{filled}/fields/{price['id']}")).is_success
    assert await exporting.finish(shown["id"]) == "failed"
    ended = (await client.get(f"{space.path}/exports/{shown['id']}")).json()["data"]
    assert (ended["status"], ended.get("file")) == ("failed", None)
    assert "fields.1" in ended["error"]


async def test_an_export_is_its_makers_alone(
    client: Client, space: Space, foreign: Space, exporting: Exporting, filled: str
) -> None:
    _, viewer_token = await space.member(Role.VIEWER)
    _, other_token = await space.member(Role.EDITOR)
    _, guest_token = await space.member(Role.GUEST)
    async with client.with_token(viewer_token) as viewer, exporting.running(space.id):
        exported = await export(viewer, filled, format="csv")
        where = f"{space.path}/exports/{exported['id']}"
        assert (await viewer.get(where)).status_code == 200
        assert exported["file"]["fileId"] in await _files(viewer, space)
    assert (await client.get(where)).status_code == 200, "the owner reads everybody's"
    unknown = f"{space.path}/exports/{uuid4()}"
    async with client.with_token(other_token) as other:
        refused, absent = await other.get(where), await other.get(unknown)
        assert refused.status_code == absent.status_code == 404
        assert refused.content == absent.content
        assert exported["file"]["fileId"] not in await _files(other, space)
        file = await other.get(f"{space.path}/files/{exported['file']['fileId']}")
        assert file.status_code == 404
    async with client.with_token(guest_token) as guest:
        path = f"/v1/databases/{filled}/export"
        assert (await guest.post(path, json={"format": "csv"})).status_code in {403, 404}
    async with client.with_token(foreign.token) as stranger:
        here = await stranger.post(f"/v1/databases/{filled}/export", json={"format": "csv"})
        nowhere = await stranger.post(f"/v1/databases/{uuid4()}/export", json={"format": "csv"})
        assert here.status_code == 404
        assert here.content == nowhere.content


async def test_exports_are_listed_and_cancelled_by_who_may_see_them(
    client: Client, space: Space, filled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.routers.data.records.EXPORT_WAIT_SECONDS", 0)
    exports = f"{space.path}/exports"
    _, viewer_token = await space.member(Role.VIEWER)
    async with client.with_token(viewer_token) as viewer:
        mine, theirs = [await export(one, filled, format="csv") for one in (client, viewer)]
        assert await listed(viewer, space) == [theirs["id"]]
        assert await listed(client, space) == [theirs["id"], mine["id"]]
        assert (await viewer.post(f"{exports}/{mine['id']}/cancel")).status_code == 404
        cancelled = (await viewer.post(f"{exports}/{theirs['id']}/cancel")).json()["data"]
        assert cancelled["status"] == "cancelled"
        assert cancelled["completedAt"]
        again = await viewer.post(f"{exports}/{theirs['id']}/cancel")
        assert again.json()["data"] == cancelled
    assert (await client.post(f"{exports}/{mine['id']}/cancel")).is_success
    assert (await client.get(f"{exports}/{mine['id']}")).json()["data"]["status"] == "cancelled"


async def listed(client: Client, space: Space) -> list[str]:
    """The ids of all exports, page by page."""
    ids: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = {"limit": 1} | ({"cursor": cursor} if cursor else {})
        found = (await client.get(f"{space.path}/exports", params=page)).json()["data"]
        ids += [one["id"] for one in found["exports"]]
        cursor = found["cursor"]
    return ids


async def _files(client: Client, space: Space) -> set[str]:
    answer = await client.get(f"{space.path}/files")
    return {file["fileId"] for file in answer.json()["data"]["files"]}


async def test_a_key_needs_the_scope(client: Client, space: Space, database_id: str) -> None:
    key = await space.key([scope for scope in Scope if scope is not Scope.RECORDS_READ])
    async with client.with_token(key) as caller:
        answer = await caller.post(f"/v1/databases/{database_id}/export", json={"format": "csv"})
        assert answer.status_code == 403
        assert (await caller.get(f"{space.path}/exports/{uuid4()}")).status_code == 403


async def test_a_member_who_lost_access_to_the_database_gets_no_file(
    client: Client,
    space: Space,
    exporting: Exporting,
    filled: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("api.routers.data.records.EXPORT_WAIT_SECONDS", 0)
    user_id, token = await space.member(Role.VIEWER)
    async with client.with_token(token) as viewer:
        shown = await export(viewer, filled, format="csv")
    await space.remove(user_id)
    assert await exporting.finish(shown["id"]) == "failed"


async def test_a_too_large_export_is_refused_and_leaves_nothing(
    client: Client,
    space: Space,
    settings: Settings,
    filled: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("activities.jobs.exports.MAX_SHEET_CELLS", 20)
    exporting = Exporting(space.database, ObjectStore(settings.object_store), part=1)
    async with exporting.running(space.id):
        exported = await export(client, filled, format="xlsx")
        narrow = await export(client, filled, format="xlsx", fields=["title"])
    assert (exported["status"], exported.get("file")) == ("failed", None)
    assert "fewer fields" in exported["error"]
    assert narrow["status"] == "succeeded"
    left = [path for path in objects(settings) if exported["id"] in path.as_posix()]
    assert left == []
    kept = [path for path in objects(settings) if narrow["id"] in path.as_posix()]
    assert [path.name for path in kept] == [narrow["id"]], "the file, and no part of it"


@pytest.mark.long
@pytest.mark.parametrize("file_format", list(ExportFormat))
def test_memory_does_not_grow_with_the_number_of_rows(
    tmp_path: Path, file_format: ExportFormat
) -> None:
    row = json.dumps(["some text that is not short at all", 12.5, True, None]) + "\n"
    peaks = []
    for count in (500, 5_000):
        source = tmp_path / "rows"
        source.write_text(row * count, encoding="utf-8")
        tracemalloc.start()
        write_spreadsheet(file_format, ["A", "B", "C", "D"], source, tmp_path / "file")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 500_000


@pytest.mark.parametrize("format_", ["csv", "xlsx"])
async def test_a_timer_is_exported_as_its_milliseconds(
    client: Client, space: Space, exporting: Exporting, format_: str
) -> None:
    timer = {"label": "Spent", "kind": "timer"}
    database_id = await make_database(client, space, "Work", timer)
    shown = (await client.get(f"{space.path}/databases/{database_id}")).json()["data"]["fields"]
    field_id = next(one["id"] for one in shown if one["key"] == "spent")
    timed, running, _ = [await add(client, database_id, title) for title in ("A", "B", "C")]

    async def spend(record_id: str, **times: str) -> None:
        target = {"targetKind": "database_record", "targetId": record_id, "fieldId": field_id}
        answer = await client.post(f"{space.path}/time-entries", json={**target, **times})
        assert answer.status_code == 201, answer.text

    await spend(timed, startedAt="2026-01-01T10:00:00Z", endedAt="2026-01-01T10:30:00.5Z")
    await spend(timed, startedAt="2026-01-02T10:00:00Z", endedAt="2026-01-02T10:00:01Z")
    await spend(running)
    async with exporting.running(space.id):
        exported = await export(client, database_id, format=format_, sorts=[{"field": "title"}])
    data = await content(client, exported)
    if format_ == "csv":
        rows: list[list[Any]] = read_csv(data)
        assert rows == [["Title", "Spent"], ["A", "1801500"], ["B", "0"], ["C", "0"]]
    else:
        rows = read_xlsx(data)
        assert rows == [["Title", "Spent"], ["A", 1_801_500], ["B", 0], ["C", 0]]
