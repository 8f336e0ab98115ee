"""Imports: native content from resources, refreshed in place, and never over people's work."""

from typing import Any

import pytest

from tests.workflows.integrations.conftest import Demo

pytestmark = pytest.mark.takes(seconds=30)


def counts(**expected: int) -> dict[str, int]:
    return {"created": 0, "updated": 0, "unchanged": 0, "kept": 0, **expected}


async def blocks(demo: Demo, made: Any) -> list[Any]:
    answer = await demo.client.get(f"/v1/surfaces/{made['item']['targetId']}")
    return list(answer.json()["data"]["blocks"])


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
    assert (await demo.does("import", "travel"))["imported"] == counts(kept=1)
    assert "Edition 2" in str(await blocks(demo, made))


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


async def test_a_table_becomes_a_database(demo: Demo) -> None:
    made = await demo.does("import", "customers")
    assert (made["item"]["kind"], made["imported"]) == ("database", counts(created=1))
    assert (await demo.does("import", "customers"))["imported"] == counts(unchanged=1)
    await demo.becomes(edition=2)
    assert (await demo.does("import", "customers"))["imported"] == counts(updated=1)
    path = f"/v1/databases/{made['item']['targetId']}/records"
    found = (await demo.client.get(path)).json()["data"]["records"]
    assert len(found) == 4
    renamed = {"title": "Ours"}
    assert (await demo.client.patch(f"/v1/records/{found[0]['id']}", json=renamed)).is_success
    await demo.becomes(edition=3)
    assert (await demo.does("import", "customers"))["imported"] == counts(kept=1)


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
    assert (await demo.does("import", "budget"))["imported"] == counts(updated=1, kept=1)


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


async def test_forms_become_forms(demo: Demo) -> None:
    key = {"Idempotency-Key": "one form"}
    survey = await demo.does("import-form", "survey", headers=key)
    assert await demo.does("import-form", "survey", headers=key) == survey
    assert (survey["title"], survey["fieldCount"]) == ("Team survey", 4)
    assert survey["skipped"] == ["Attach a photo of your desk"]
    item = (await demo.client.get(f"/v1/items/{survey['itemId']}")).json()["data"]
    assert (item["kind"], item["targetId"]) == ("form", survey["surfaceId"])
    feedback = await demo.does("import-form", "feedback")
    assert (feedback["fieldCount"], feedback["skipped"]) == (3, ["Your signature"])
    refused = await demo.call("import-form", "welcome")
    assert (refused.status_code, refused.json()["error"]) == (422, "unsupported")


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
