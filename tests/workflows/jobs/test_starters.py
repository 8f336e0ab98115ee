"""Starters, built by the job that production workers execute."""

from typing import Any
from uuid import uuid4

import pytest

from models.workspace.starters.seeding import templates
from tests.support.client import Client
from tests.support.engine import Engine
from tests.support.items import read, refused, titles
from tests.support.spaces import Space

pytestmark = [pytest.mark.usefixtures("engine"), pytest.mark.takes(seconds=20)]

Json = dict[str, Any]


async def databases(client: Client, space: Space) -> list[Json]:
    found: list[Json] = read(await client.get(f"{space.path}/databases", params={"limit": "100"}))[
        "databases"
    ]
    return found


async def events(client: Client, space: Space) -> list[Json]:
    found: list[Json] = []
    query = {"limit": "100"}
    while "cursor" not in query or query["cursor"]:
        page = read(await client.get(f"{space.path}/events", params=query))
        found += page["events"]
        query["cursor"] = page["cursor"]
    return [one for one in found if one["type"].startswith("onboarding.")]


@pytest.mark.long
@pytest.mark.parametrize("key", templates())
async def test_every_template_is_built_as_it_says(client: Client, space: Space, key: str) -> None:
    shown = read(await client.get(f"{space.path}/starter-templates"))["templates"]
    said = next(one for one in shown if one["key"] == key)
    body = {"templateKey": key}
    made = read(await client.post(f"{space.path}/starter-template", json=body))
    counts = {name: count for name, count in said.items() if name.endswith("Count")}
    assert made == {
        "templateKey": key,
        "headline": said["headline"],
        "itemIds": made["itemIds"],
        **counts,
    }
    found = await databases(client, space)
    assert sorted(one["label"] for one in found) == sorted(said["databases"])
    assert sum(len(one["views"]) for one in found) == counts["viewCount"]
    records = 0
    for one in found:
        page = read(await client.get(f"/v1/databases/{one['id']}/records", params={"limit": "100"}))
        records += len(page["records"])
    assert records == counts["recordCount"]
    automations = read(await client.get(f"{space.path}/automations"))["automations"]
    assert [(one["enabled"], one["hasUnpublishedChanges"]) for one in automations] == [
        (False, False)
    ] * counts["automationCount"]
    assert [one["type"].rpartition(".")[2] for one in await events(client, space)] == [
        "started",
        "completed",
    ]


@pytest.mark.long
async def test_building_twice_builds_it_twice(client: Client, space: Space, engine: Engine) -> None:
    assert engine.database is space.database
    path, body = f"{space.path}/starter-template", {"templateKey": "team_tasks"}
    headers = {"Idempotency-Key": uuid4().hex}
    first = read(await client.post(path, json=body, headers=headers))
    assert read(await client.post(path, json=body, headers=headers)) == first
    again = read(await client.post(path, json=body))
    assert set(again["itemIds"]).isdisjoint(first["itemIds"])
    assert len(await databases(client, space)) == 2 * first["databaseCount"]


@pytest.mark.long
async def test_a_draft_is_built_as_it_was_drafted(client: Client, space: Space) -> None:
    described = {"description": "A bakery with customers, orders and suppliers."}
    plan = read(await client.post("/v1/onboarding/workspace-draft", json=described))
    assert await databases(client, space) == []
    made = read(await client.post(f"{space.path}/starter-draft", json={"plan": plan}))
    built = [node["label"] for node in plan["nodes"] if node["type"] == "database"]
    pages = sum(node["type"] == "page" for node in plan["nodes"])
    assert made == {
        "headline": plan["headline"],
        "databaseCount": len(built),
        "pageCount": pages,
    }
    assert sorted(one["label"] for one in await databases(client, space)) == sorted(built)
    assert await titles(client) == ["Start here", "Data", "Overview", "New: Order"]


async def test_a_plan_that_is_hostile_is_built_as_far_as_it_makes_sense(
    client: Client, space: Space
) -> None:
    nodes = [
        {"type": "folder", "ref": "a", "label": "<script>x</script>A", "parentRef": "b"},
        {"type": "folder", "ref": "b", "label": "B", "parentRef": "a"},
        {"type": "rocket", "label": "C"},
        {"type": "database", "label": "D", "parentRef": "a", "records": [{"title": "One"}]},
        *({"type": "page", "label": f"Page {place}"} for place in range(1_000)),
    ]
    made = read(await client.post(f"{space.path}/starter-draft", json={"plan": {"nodes": nodes}}))
    assert made == {"headline": "A", "databaseCount": 1, "pageCount": 37}


async def test_an_empty_plan_is_refused(client: Client, space: Space) -> None:
    path = f"{space.path}/starter-draft"
    for plan in ({}, {"headline": "x", "nodes": []}, {"nodes": [{"type": "rocket"}]}):
        assert refused(await client.post(path, json={"plan": plan})) == (400, "validation_error")
    assert refused(await client.post(path, json={"plan": "x"})) == (400, "validation_error")
    unknown = await client.post(f"{space.path}/starter-template", json={"templateKey": "none"})
    assert refused(unknown) == (404, "not_found")
    assert await events(client, space) == []


@pytest.mark.long
async def test_nothing_is_left_of_what_cannot_be_built(
    client: Client, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = templates()["team_tasks"]
    broken = template.operations[-1].model_copy(update={"input": {"automationId": str(uuid4())}})
    operations = (*template.operations[:-1], broken)
    known = {"team_tasks": type(template)(**{**_columns(template), "operations": operations})}
    monkeypatch.setattr("models.workspace.starters.seeding.templates", lambda: known)
    answer = await client.post(f"{space.path}/starter-template", json={"templateKey": "team_tasks"})
    assert refused(answer) == (409, "conflict")
    assert await databases(client, space) == []
    assert await titles(client) == []
    failed = (await events(client, space))[-1]
    assert failed["type"] == "onboarding.starter_seed.failed"
    assert failed["data"]["errorCode"] == "not_found"


def _columns(template: Any) -> Json:
    return {name: getattr(template, name) for name in type(template).__slots__}


@pytest.mark.parametrize(
    "description", ["123456789", "x" * 4_001, "", None, 7, ["A bakery with customers"]]
)
async def test_descriptions_have_bounds(client: Client, description: Any) -> None:
    answer = await client.post("/v1/onboarding/workspace-draft", json={"description": description})
    assert refused(answer) == (400, "validation_error")


async def test_descriptions_at_their_bounds_are_drafted(client: Client) -> None:
    for description in ("1234567890", "x " * 2_000):
        body = {"description": description}
        assert read(await client.post("/v1/onboarding/workspace-draft", json=body))["nodes"]
