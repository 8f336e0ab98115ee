"""Shipped database templates: every one makes the database it describes."""

from typing import Any
from uuid import uuid4

import pytest

from models.core.access.rules import Role, Scope
from models.data.database_templates.templates import Template, shipped_templates
from tests.support.client import Client
from tests.support.spaces import Space

SHIPPED = shipped_templates()


async def listed(client: Client, space: Space) -> Any:
    answer = await client.get(f"{space.path}/database-templates")
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]["templates"]


async def test_the_list_says_what_each_template_holds(client: Client, space: Space) -> None:
    templates = await listed(client, space)
    assert [one["key"] for one in templates] == [template.key for template in SHIPPED]
    assert len({one["id"] for one in templates}) == len(templates) >= 8
    tasks = templates[0]
    assert tasks.keys() == {
        "id", "key", "label", "description", "icon", "category", "fields", "views",
        "recordTemplates",
    }  # fmt: skip
    assert {"key": "due", "label": "Due", "kind": "date"} in tasks["fields"]
    assert {"label": "Board", "kind": "board"} in tasks["views"]
    assert tasks["recordTemplates"] == ["Task", "Urgent task"]


async def test_the_ids_are_the_same_for_ever() -> None:
    assert (SHIPPED[0].key, str(SHIPPED[0].id)) == (
        "tasks",
        "28db3a3a-ea94-54bf-84b8-6378685616a1",
    )


@pytest.mark.parametrize("template", SHIPPED, ids=lambda template: template.key)
async def test_every_template_makes_what_it_describes(
    client: Client, space: Space, template: Template
) -> None:
    shown = next(one for one in await listed(client, space) if one["key"] == template.key)
    answer = await client.post(
        f"{space.path}/databases/from-template", json={"templateId": template.key}
    )
    assert answer.status_code == 201, answer.text
    made = answer.json()["data"]
    assert (made["label"], made["description"], made["icon"]) == (
        shown["label"],
        shown["description"],
        shown["icon"],
    )
    assert [
        {name: field[name] for name in ("key", "label", "kind")} for field in made["fields"]
    ] == shown["fields"]
    assert [{name: view[name] for name in ("label", "kind")} for view in made["views"]] == shown[
        "views"
    ]
    path = f"/v1/databases/{made['id']}"
    templates = (await client.get(f"{path}/record-templates")).json()["data"]["templates"]
    assert sorted(one["label"] for one in templates) == sorted(shown["recordTemplates"])
    for view in made["views"]:
        query = {"viewId": view["id"]}
        found = await client.post(f"{path}/records/query", json=query)
        assert found.status_code == 200, found.text
    record = await client.post(f"{path}/records", json={"title": "First"})
    assert record.status_code == 201, record.text


async def test_a_template_is_placed_and_called_as_asked(client: Client, space: Space) -> None:
    template = (await listed(client, space))[0]
    parent = (await client.post(f"{space.path}/databases", json={"label": "P"})).json()["data"]
    body = {"label": "Mine", "parentItemId": parent["itemId"], "order": 7.5}
    for path, named in (
        ("databases/from-template", {"templateId": template["id"]}),
        (f"database-templates/{template['id']}/databases", {}),
        (f"database-templates/{template['key']}/databases", {}),
    ):
        answer = await client.post(f"{space.path}/{path}", json={**body, **named})
        assert answer.status_code == 201, answer.text
        made = answer.json()["data"]
        assert (made["label"], made["parentItemId"], made["order"]) == (
            "Mine",
            parent["itemId"],
            7.5,
        )


@pytest.mark.parametrize(
    "name", ["nope", "6b8c3f5e-1111-7222-8333-944455556666", "Tasks", "tasks%00"]
)
async def test_an_unknown_template_is_not_found(client: Client, space: Space, name: str) -> None:
    alias = await client.post(f"{space.path}/database-templates/{name}/databases", json={})
    assert (alias.status_code, alias.json()["error"]) == (404, "not_found")
    path = f"{space.path}/databases/from-template"
    answer = await client.post(path, json={"templateId": name})
    assert (answer.status_code, answer.json()["error"]) == (404, "not_found")


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, "templateId"),
        ({"templateId": 7}, "templateId"),
        ({"templateId": ""}, "templateId"),
        ({"templateId": "tasks", "label": ""}, "label"),
        ({"templateId": "tasks", "fields": []}, "fields"),
    ],
)
async def test_a_body_that_is_wrong_is_refused(
    client: Client, space: Space, body: Any, path: str
) -> None:
    answer = await client.post(f"{space.path}/databases/from-template", json=body)
    assert answer.status_code == 400
    assert answer.json()["details"][0]["path"] == path


async def test_databases_from_templates_need_their_roles_and_scopes(
    client: Client, space: Space, foreign: Space
) -> None:
    path, body = f"{space.path}/databases/from-template", {"templateId": "tasks"}
    viewer = client.with_token((await space.member(Role.VIEWER))[1])
    assert (await viewer.get(f"{space.path}/database-templates")).status_code == 200
    assert (await viewer.post(path, json=body)).status_code == 403
    reader = client.with_token(await space.key([Scope.DATABASES_READ]))
    assert (await reader.post(path, json=body)).status_code == 403
    writer = client.with_token(await space.key([Scope.DATABASES_WRITE]))
    assert (await writer.post(path, json=body)).status_code == 201
    stranger = client.with_token(foreign.token)
    assert (await stranger.get(f"{space.path}/database-templates")).status_code == 404
    assert (await stranger.post(path, json=body)).status_code == 404
    theirs = await stranger.post(f"{foreign.path}/databases", json={"label": "F"})
    elsewhere = {**body, "parentItemId": theirs.json()["data"]["itemId"]}
    nowhere = {**body, "parentItemId": str(uuid4())}
    there, nothing = await client.post(path, json=elsewhere), await client.post(path, json=nowhere)
    assert (there.status_code, there.content) == (404, nothing.content)
