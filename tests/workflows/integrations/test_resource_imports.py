"""Imports: native content from resources, refreshed in place, and never over people's work."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import text

from activities.jobs.resource_imports import Fetched, fetch_contents
from activities.providers.adapter import Downloaded
from activities.providers.demo import DemoAdapter
from tests.workflows.integrations.conftest import Demo

pytestmark = pytest.mark.takes(seconds=30)


def counts(**expected: int) -> dict[str, int]:
    return {"created": 0, "updated": 0, "unchanged": 0, "kept": 0, **expected}


async def blocks(demo: Demo, made: Any) -> list[Any]:
    answer = await demo.client.get(f"/v1/surfaces/{made['item']['targetId']}")
    return list(answer.json()["data"]["blocks"])


NOTHING = counts() | {"removed": 0}


async def change(demo: Demo, database: str, record: str, **values: Any) -> str:
    """Change a record, named by its title, as people do; gives its id."""
    listed = await demo.client.get(f"/v1/databases/{database}/records")
    [found] = [one["id"] for one in listed.json()["data"]["records"] if one["title"] == record]
    if values:
        answer = await demo.client.patch(f"/v1/records/{found}", json={"data": values})
        assert answer.is_success, answer.text
    return str(found)


async def cells(demo: Demo, database: str) -> dict[str, Any]:
    """City and orders of the records, by their titles."""
    listed = await demo.client.get(f"/v1/databases/{database}/records")
    records = listed.json()["data"]["records"]
    return {one["title"]: (one["data"].get("city"), one["data"].get("orders")) for one in records}


@pytest.mark.long
async def test_a_page_is_refreshed_until_people_change_it(demo: Demo) -> None:
    made = await demo.does("import", "travel")
    assert (made["item"]["kind"], made["imported"]) == ("page", counts(created=1))
    assert "alert" not in str(await blocks(demo, made))
    assert (await demo.does("import", "travel"))["imported"] == counts(unchanged=1)
    await demo.becomes(edition=2)
    again = await demo.does("import", "travel")
    assert (again["item"]["id"], again["imported"]) == (made["item"]["id"], counts(updated=1))
    assert "Edition 2" in str(await blocks(demo, made))
    added = {"blocks": [{"kind": "paragraph", "content": {"text": "Ours"}}]}
    path = f"/v1/surfaces/{made['item']['targetId']}/blocks"
    assert (await demo.client.post(path, json=added)).is_success
    await demo.becomes(edition=3)
    before = await blocks(demo, made)
    merged = await demo.does("import", "travel")
    assert merged["imported"] == counts(updated=1)
    assert merged["blocks"] == {**NOTHING, "updated": 1, "unchanged": len(before) - 2}
    now = await blocks(demo, made)
    assert [one["id"] for one in now] == [one["id"] for one in before], "each stays the block it is"
    assert "Edition 3" in str(now)
    assert "Ours" in str(now[-1])
    mine = {"content": {"text": [{"text": "Our edition"}]}}
    path = f"/v1/surfaces/{made['item']['targetId']}/blocks/{now[1]['id']}"
    assert (await demo.client.patch(path, json=mine)).is_success
    await demo.becomes(edition=4)
    kept = await demo.does("import", "travel")
    assert (kept["imported"], kept["blocks"]["kept"]) == (counts(kept=1), 1)
    assert "Our edition" in str(await blocks(demo, made))


@pytest.mark.long
async def test_a_folder_is_imported_with_what_is_in_it(demo: Demo) -> None:
    made = await demo.does("import", "handbook")
    assert made["item"]["kind"] == "folder"
    assert made["imported"] == counts(created=5)
    assert [one["name"] for one in made["skipped"]] == ["Old notes.txt"]
    path = f"/v1/items?parentId={made['item']['id']}"
    below = (await demo.client.get(path)).json()["data"]["items"]
    assert {(one["kind"], one["title"]) for one in below} == {
        ("page", "Welcome.md"),
        ("page", "Travel policy"),
        ("folder", "Archive"),
    }
    again = await demo.does("import", "handbook")
    assert again["imported"] == counts(unchanged=5)
    [welcome] = [one for one in below if one["title"] == "Welcome.md"]
    assert (await demo.client.delete(f"/v1/items/{welcome['id']}")).is_success
    await demo.becomes(edition=2)
    last = await demo.does("import", "handbook")
    assert last["imported"]["kept"] == 1


@pytest.mark.long
async def test_many_files_are_imported_each_once(demo: Demo) -> None:
    await demo.becomes(generated=130)
    made = await demo.does("import", "generated")
    assert made["imported"] == counts(created=131)
    key = made["job"]["id"]
    path = f"{demo.space.path}/integrations/resource-imports/{key}"
    assert (await demo.client.get(path)).json()["data"] == made
    await demo.becomes(generated=130, edition=2)
    again = await demo.does("import", "generated")
    assert again["imported"] == counts(updated=130, unchanged=1)


@pytest.mark.long
async def test_each_file_has_its_own_content_in_the_order_of_the_listing(demo: Demo) -> None:
    numbers = range(1, 51)
    await demo.becomes(generated=50)
    made = await demo.does("import", "generated")
    path = f"/v1/items?parentId={made['item']['id']}&limit=100"
    items = (await demo.client.get(path)).json()["data"]["items"]
    assert [one["title"] for one in items] == [f"File {number:06}.txt" for number in numbers]
    assert len({one["order"] for one in items}) == len(items)
    for number, placed in zip(numbers, items, strict=True):
        stored = (await demo.client.get(f"{demo.space.path}/files/{placed['targetId']}")).json()[
            "data"
        ]
        assert stored["name"] == placed["title"]
        content = (await demo.client.get(stored["downloadUrl"])).text
        assert content == f"File {number:06}, edition 1\n"
    events = (await demo.client.get(f"{demo.space.path}/events?limit=200")).json()["data"]["events"]
    told = [one["data"]["itemId"] for one in events if one["type"] == "item.created"]
    assert {one["id"] for one in items} <= set(told)
    assert len(told) == len(set(told))


@pytest.mark.long
async def test_files_of_a_folder_that_people_delete_meanwhile_are_left_out(
    demo: Demo, monkeypatch: pytest.MonkeyPatch
) -> None:
    await demo.becomes(generated=50)

    async def deleting(*asked: Any) -> list[Fetched | None]:
        for folder in (await demo.client.get("/v1/items")).json()["data"]["items"]:
            assert (await demo.client.delete(f"/v1/items/{folder['id']}")).is_success
        return await fetch_contents(*asked)

    monkeypatch.setattr("activities.jobs.resource_imports.fetch_contents", deleting)
    await demo.call("import", "generated")
    async with demo.space.database.reading() as work:
        ended = text(
            "SELECT result FROM job WHERE workspace_id = :id AND workflow_kind = :workflow_kind"
        )
        result = await work.scalar(ended, {"id": demo.space.id, "workflow_kind": "resource-import"})
        files = text("SELECT count(*) FROM file WHERE workspace_id = :id")
        assert await work.scalar(files, {"id": demo.space.id}) == 0
    assert result["counts"] == counts(created=1)
    assert len(result["skipped"]) == 50


@pytest.mark.long
async def test_a_chunk_leaves_to_the_next_what_it_has_no_time_for(
    demo: Demo, monkeypatch: pytest.MonkeyPatch
) -> None:
    chunks: list[list[bool]] = []
    download = DemoAdapter.download

    async def slow(*asked: Any) -> Downloaded:
        await asyncio.sleep(0.2)
        return await download(*asked)

    async def noted(*asked: Any) -> list[Fetched | None]:
        contents = await fetch_contents(*asked)
        chunks.append([one is not None for one in contents])
        return contents

    monkeypatch.setattr(DemoAdapter, "download", slow)
    monkeypatch.setattr("activities.jobs.resource_imports.BEGIN_SECONDS", 0.3)
    monkeypatch.setattr("activities.jobs.resource_imports.fetch_contents", noted)
    await demo.becomes(generated=30)
    made = await demo.does("import", "generated")
    assert made["imported"] == counts(created=31)
    assert not all(chunks[0]), "the first chunk had no time for all"
    assert sum(map(sum, chunks)) == 30, "each is asked for once"


@pytest.mark.long
async def test_a_table_becomes_a_database(demo: Demo) -> None:
    made = await demo.does("import", "customers")
    assert (made["item"]["kind"], made["imported"]) == ("database", counts(created=1))
    assert (await demo.does("import", "customers"))["imported"] == counts(unchanged=1)
    assert made["rows"] == {**NOTHING, "created": 3}


@pytest.mark.long
async def test_a_table_is_refreshed_around_what_people_changed(demo: Demo) -> None:
    database = (await demo.does("import", "customers"))["item"]["targetId"]
    ours = {"data": {"title": "Ours", "city": "Here"}}
    assert (await demo.client.post(f"/v1/databases/{database}/records", json=ours)).is_success
    await change(demo, database, "Ada Park", city="Potsdam")
    await change(demo, database, "Chen Wei", city="Johor")
    await change(demo, database, "Ben Okoro", title="Ben O.")
    await demo.becomes(edition=2)
    second = await demo.does("import", "customers")
    assert second["imported"] == counts(updated=1)
    assert second["rows"] == {**NOTHING, "created": 1, "updated": 1, "unchanged": 2}
    assert await cells(demo, database) == {
        "Ada Park": ("Potsdam", 13),
        "Ben O.": ("Lagos", 7),
        "Chen Wei": ("Johor", 31),
        "Added in edition 2": ("Berlin", 12),
        "Ours": ("Here", None),
    }
    await change(demo, database, "Ada Park", orders=99)
    gone = await change(demo, database, "Added in edition 2")
    assert (await demo.client.delete(f"/v1/records/{gone}")).is_success
    await demo.becomes(edition=3)
    third = await demo.does("import", "customers")
    assert third["rows"] == {**NOTHING, "created": 1, "unchanged": 2, "kept": 3}
    found = await cells(demo, database)
    assert found.keys() == {"Ada Park", "Ben O.", "Chen Wei", "Added in edition 3", "Ours"}
    assert found["Ada Park"] == ("Potsdam", 99)


@pytest.mark.long
async def test_a_row_that_is_gone_is_archived_until_it_is_back(demo: Demo) -> None:
    database = (await demo.does("import", "customers"))["item"]["targetId"]
    fields = (await demo.client.get(f"{demo.space.path}/databases/{database}")).json()["data"][
        "fields"
    ]
    [city] = [one["id"] for one in fields if one["key"] == "city"]
    assert (await demo.client.delete(f"/v1/databases/{database}/fields/{city}")).is_success
    await demo.becomes(edition=3)
    third = await demo.does("import", "customers")
    assert third["rows"] == {**NOTHING, "created": 2, "updated": 1, "unchanged": 1, "removed": 1}
    assert "Chen Wei" not in await cells(demo, database)
    await demo.becomes(edition=2)
    again = await demo.does("import", "customers")
    assert again["rows"] == {**NOTHING, "updated": 2, "unchanged": 2, "removed": 1}
    assert (await cells(demo, database))["Chen Wei"] == (None, 31), "no field comes back"


@pytest.mark.long
async def test_each_sheet_of_a_workbook_becomes_a_database(demo: Demo) -> None:
    made = await demo.does("import", "budget")
    assert (made["item"]["title"], made["imported"]) == ("Budget.xlsx", counts(created=2))
    listed = (await demo.client.get("/v1/items")).json()["data"]["items"]
    titles = {one["title"]: one["targetId"] for one in listed if one["kind"] == "database"}
    assert titles.keys() == {"Budget.xlsx", "Budget.xlsx · Customers"}
    assert (await demo.does("import", "budget"))["imported"] == counts(unchanged=2)
    path = f"/v1/databases/{titles['Budget.xlsx · Customers']}/records"
    [first, *_] = (await demo.client.get(path)).json()["data"]["records"]
    assert (
        await demo.client.patch(f"/v1/records/{first['id']}", json={"title": "Ours"})
    ).is_success
    await demo.becomes(edition=2)
    again = await demo.does("import", "budget")
    assert (again["imported"], again["rows"]["kept"]) == (counts(updated=2), 0)
    records = (await demo.client.get(path)).json()["data"]["records"]
    assert "Ours" in {one["title"] for one in records}


async def test_a_file_has_a_name_that_leads_nowhere(demo: Demo) -> None:
    made = await demo.does("import", "hostile")
    path = f"{demo.space.path}/files/{made['item']['targetId']}"
    assert (await demo.client.get(path)).json()["data"]["name"] == "gnp.exe"


@pytest.mark.parametrize("external_id", ["calendar", "survey"])
async def test_other_types_are_unsupported(demo: Demo, external_id: str) -> None:
    answer = await demo.call("import", external_id)
    assert (answer.status_code, answer.json()["error"]) == (422, "unsupported")


async def test_a_key_gives_the_same_import(demo: Demo) -> None:
    key = {"Idempotency-Key": "one import"}
    first = await demo.call("import", "logo", headers=key)
    again = await demo.call("import", "logo", headers=key)
    assert again.json() == first.json()
    assert first.json()["data"]["imported"] == counts(created=1)


@pytest.mark.long
async def test_forms_become_forms(demo: Demo) -> None:
    key = {"Idempotency-Key": "one form"}
    survey = await demo.does("import-form", "survey", headers=key)
    assert await demo.does("import-form", "survey", headers=key) == survey
    assert (survey["title"], survey["fieldCount"]) == ("Team survey", 4)
    assert survey["skipped"] == ["Attach a photo of your desk"]
    item = (await demo.client.get(f"/v1/items/{survey['itemId']}")).json()["data"]
    assert item["kind"] == "form"
    opened = (await demo.client.get(f"/v1/surfaces/{survey['surfaceId']}")).json()["data"]
    assert (opened["kind"], opened["itemId"]) == ("form", item["id"])
    feedback = await demo.does("import-form", "feedback")
    assert (feedback["fieldCount"], feedback["skipped"]) == (3, ["Your signature"])
    refused = await demo.call("import-form", "welcome")
    assert (refused.status_code, refused.json()["error"]) == (422, "unsupported")


@pytest.mark.long
async def test_a_connection_fills_imports_and_previews(demo: Demo) -> None:
    resource = {
        "externalType": "table",
        "externalId": "prices",
        "name": "Prices.csv",
        "surfaceKind": "spreadsheet",
        "capabilities": [],
    }
    named = {"connectionId": demo.id, "resource": resource}
    body = {"label": "Prices", "kind": "connection", **named}
    path = f"{demo.space.path}/data-sources"
    made = await demo.client.post(f"{path}/import-spreadsheet", json=body)
    assert made.json()["data"]["recordCount"] == 3
    shown = await demo.client.post(f"{path}/preview", json={"kind": "connection", "config": named})
    assert len(shown.json()["data"]["rows"]) == 3
