"""Changing and deleting databases over HTTP, and the layout of their record pages."""

from typing import Any
from uuid import uuid4

import pytest

from models.core.access.rules import Role, Scope
from tests.support.client import Client
from tests.support.spaces import Space


async def make(client: Client, space: Space, *fields: dict[str, Any], label: str = "Cars") -> Any:
    body = {"label": label, "fields": list(fields)}
    answer = await client.post(f"{space.path}/databases", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()["data"]


async def patch(client: Client, made: Any, **body: Any) -> Any:
    answer = await client.patch(at(made), json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


def at(made: Any) -> str:
    return f"/v1/workspaces/{made['workspaceId']}/databases/{made['id']}"


async def test_keys_in_the_body_are_replaced(client: Client, space: Space) -> None:
    made = await make(client, space)
    changed = await patch(
        client,
        made,
        label="Autos",
        description="All of them",
        icon="🚗",
        order=7.5,
        settings={"a": 1},
        archived=True,
    )
    expected = {"label": "Autos", "description": "All of them", "icon": "🚗", "order": 7.5}
    expected |= {"settings": {"a": 1}, "archived": True}
    assert {name: changed[name] for name in expected} == expected
    assert changed["updatedAt"] > made["updatedAt"]
    assert (changed["key"], changed["fields"]) == (made["key"], made["fields"])
    cleared = await patch(client, made, description=None, icon=None, archived=False)
    assert cleared.keys().isdisjoint({"description", "icon"})
    assert cleared["label"] == "Autos"
    assert cleared["archived"] is False
    assert (await client.get(at(made))).json()["data"] == cleared


async def test_the_label_is_the_title_of_the_item(client: Client, space: Space) -> None:
    made = await make(client, space)
    await patch(client, made, label="Autos")
    item = await client.get(f"/v1/items/{made['itemId']}")
    assert item.json()["data"]["title"] == "Autos"
    await client.patch(f"/v1/items/{made['itemId']}", json={"title": "Wagen"})
    assert (await client.get(at(made))).json()["data"]["label"] == "Wagen"


async def test_a_database_that_was_changed_since_stays(client: Client, space: Space) -> None:
    made = await make(client, space)
    read = {"If-Match": made["updatedAt"]}
    assert (await client.patch(at(made), json={"label": "A"}, headers=read)).status_code == 200
    stale = await client.patch(at(made), json={"label": "B"}, headers=read)
    assert (stale.status_code, stale.json()["error"]) == (409, "conflict")
    assert (await client.get(at(made))).json()["data"]["label"] == "A"


async def test_a_layout_is_changed_key_by_key(client: Client, space: Space) -> None:
    made = await make(client, space, {"label": "Price", "kind": "number"})
    layout = {
        "pageWidth": "wide",
        "propertyColumns": 2,
        "hiddenFieldKeys": ["price"],
        "sections": [{"id": "s", "label": "Money", "fieldKeys": ["price"]}],
        "collapsedSectionIds": ["s"],
        "autoAddNewFields": False,
    }
    changed = await patch(client, made, recordLayout=layout)
    assert changed["recordLayout"] == {**made["recordLayout"], **layout, "version": 2}
    again = await patch(client, made, recordLayout={"showComments": False, "version": 2})
    assert again["recordLayout"] == {**changed["recordLayout"], "showComments": False, "version": 3}
    stale = await client.patch(at(made), json={"recordLayout": {"version": 2}})
    assert (stale.status_code, stale.json()["error"]) == (409, "conflict")


BAD: list[tuple[dict[str, Any], str]] = [
    ({"label": ""}, "label"),
    ({"key": "other"}, "key"),
    ({"fields": []}, "fields"),
    ({"settings": [1]}, "settings"),
    ({"archived": "yes"}, "archived"),
    ({"recordLayout": {"pageWidth": "huge"}}, "recordLayout.pageWidth"),
    ({"recordLayout": {"propertyColumns": 5}}, "recordLayout.propertyColumns"),
    ({"recordLayout": {"color": "red"}}, "recordLayout.color"),
    ({"recordLayout": {"propertyOrder": ["title", "gone"]}}, "recordLayout.propertyOrder.1"),
    ({"recordLayout": {"hiddenFieldKeys": ["gone"]}}, "recordLayout.hiddenFieldKeys.0"),
    ({"recordLayout": {"pinnedFieldKeys": ["gone"]}}, "recordLayout.pinnedFieldKeys.0"),
    (
        {"recordLayout": {"sections": [{"id": "a", "label": "A", "fieldKeys": ["gone"]}]}},
        "recordLayout.sections.0.fieldKeys.0",
    ),
    (
        {"recordLayout": {"sections": [{"id": "a", "label": "A"}, {"id": "a", "label": "B"}]}},
        "recordLayout.sections.1.id",
    ),
    ({"recordLayout": {"collapsedSectionIds": ["a"]}}, "recordLayout.collapsedSectionIds.0"),
    ({"recordLayout": {"relationViews": {"title": {}}}}, "recordLayout.relationViews.title"),
    (
        {"recordLayout": {"relationViews": {"title": {"position": "up"}}}},
        "recordLayout.relationViews.title.position",
    ),
]


@pytest.mark.parametrize(("body", "path"), BAD)
async def test_bad_changes_are_refused_where_they_are_wrong(
    client: Client, space: Space, body: dict[str, Any], path: str
) -> None:
    made = await make(client, space)
    answer = await client.patch(at(made), json=body)
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")
    assert answer.json()["details"][0]["path"] == path
    assert (await client.get(at(made))).json()["data"] == made


async def test_a_layout_names_views_of_the_related_database_alone(
    client: Client, space: Space
) -> None:
    target = await make(client, space, label="Makers")
    other = await make(client, space, label="Others")
    relation = {"label": "Maker", "kind": "relation", "settings": {"databaseId": target["id"]}}
    made = await make(client, space, relation)
    good = {"defaultViewId": target["views"][0]["id"], "position": "tab", "collapsed": True}
    changed = await patch(client, made, recordLayout={"relationViews": {"maker": good}})
    assert changed["recordLayout"]["relationViews"] == {"maker": good}
    answers = [
        await client.patch(
            at(made), json={"recordLayout": {"relationViews": {"maker": {"defaultViewId": id_}}}}
        )
        for id_ in (other["views"][0]["id"], str(uuid4()))
    ]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].content == answers[1].content


async def test_a_deleted_database_is_in_the_trash(client: Client, space: Space) -> None:
    made = await make(client, space)
    answer = await client.delete(at(made))
    assert (answer.status_code, answer.json()["data"]) == (200, made)
    gone = await client.get(at(made))
    unknown = await client.get(f"{space.path}/databases/{uuid4()}")
    assert (gone.status_code, gone.content) == (404, unknown.content)
    assert (await client.delete(at(made))).status_code == 404
    restored = await client.post(f"/v1/items/{made['itemId']}/restore")
    assert restored.status_code == 200, restored.text
    assert (await client.get(at(made))).json()["data"]["fields"] == made["fields"]


@pytest.mark.parametrize("role", [Role.VIEWER, Role.COMMENTER])
async def test_readers_change_nothing(client: Client, space: Space, role: Role) -> None:
    made = await make(client, space)
    _, token = await space.member(role)
    reader = client.with_token(token)
    for answer in (await reader.patch(at(made), json={"bad": 1}), await reader.delete(at(made))):
        assert (answer.status_code, answer.json()["error"]) == (403, "denied")
    bare = client.with_token(await space.key([Scope.DATABASES_READ]))
    assert (await bare.patch(at(made), json={"label": "A"})).status_code == 403
