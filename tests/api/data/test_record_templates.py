"""Record templates over HTTP: what they prefill, which one is the default, who may change them."""

import asyncio
from typing import Any
from uuid import UUID, uuid4

import pytest

from models.core.access.rules import Role, Scope
from models.data import record_templates
from runtime.errors import NotFoundError
from tests.support.client import Client
from tests.support.spaces import Space

FIELDS = [
    {"label": "Code", "kind": "text", "required": True},
    {"label": "Price", "kind": "number", "settings": {"min": 0}},
    {"label": "Who", "kind": "person"},
    {"label": "Number", "kind": "auto_number"},
]


@pytest.fixture
async def path(client: Client, space: Space) -> str:
    """Where the templates of a fresh database are."""
    answer = await client.post(
        f"{space.path}/databases", json={"label": "Things", "fields": FIELDS}
    )
    return f"/v1/databases/{answer.json()['data']['id']}/record-templates"


async def make(client: Client, path: str, **body: Any) -> Any:
    answer = await client.post(path, json={"label": "A template", **body})
    assert answer.status_code == 201, answer.text
    return answer.json()["data"]


async def listed(client: Client, path: str) -> Any:
    answer = await client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]["templates"]


async def test_a_template_prefills_without_requiring(
    client: Client, space: Space, path: str
) -> None:
    made = await make(
        client,
        path,
        label="Bug",
        description="For bugs",
        icon="🐛",
        data={"title": "New bug", "price": 5, "code": None},
    )
    assert made.keys() == {
        "id", "workspaceId", "databaseId", "label", "description", "icon", "data", "relations",
        "contentSurfaceId", "isDefault", "createdAt", "updatedAt",
    }  # fmt: skip
    assert (made["data"], made["relations"]) == ({"title": "New bug", "price": 5}, {})
    assert (made["isDefault"], made["workspaceId"]) == (False, str(space.id))
    assert await listed(client, path) == [made]
    surface = await client.get(f"/v1/surfaces/{made['contentSurfaceId']}")
    assert surface.status_code == 200


async def test_templates_are_listed_by_label(client: Client, path: str) -> None:
    for label in ("b", "c", "a"):
        await make(client, path, label=label)
    assert [one["label"] for one in await listed(client, path)] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({"data": {"price": "5"}}, "data.price"),
        ({"data": {"price": -1}}, "data.price"),
        ({"data": {"nope": 1}}, "data.nope"),
        ({"data": {"number": 1}}, "data.number"),
        ({"data": []}, "data"),
        ({"data": {"who": [str(uuid4())]}}, "data.who"),
        ({"relations": {"price": []}}, "relations.price"),
        ({"label": ""}, "label"),
        ({"isDefault": "true"}, "isDefault"),
        ({"contentSurfaceId": str(uuid4())}, "contentSurfaceId"),
    ],
)
async def test_values_that_no_record_could_have_are_refused(
    client: Client, path: str, body: Any, where: str
) -> None:
    answer = await client.post(path, json={"label": "x", **body})
    assert answer.status_code == 400, answer.text
    assert [detail["path"] for detail in answer.json()["details"]] == [where]
    made = await make(client, path)
    patched = await client.patch(f"{path}/{made['id']}", json=body)
    assert patched.status_code == 400, patched.text
    assert await listed(client, path) == [made]


async def test_at_most_one_template_is_the_default(client: Client, path: str) -> None:
    made = [await make(client, path, label=f"{n}", isDefault=True) for n in range(3)]
    assert [one["isDefault"] for one in await listed(client, path)] == [False, False, True]
    answers = await asyncio.gather(
        *(client.patch(f"{path}/{one['id']}", json={"isDefault": True}) for one in made),
        *(client.post(path, json={"label": "x", "isDefault": True}) for _ in range(4)),
    )
    assert {answer.status_code for answer in answers} == {200, 201}
    defaults = [one for one in await listed(client, path) if one["isDefault"]]
    assert len(defaults) == 1
    unset = await client.patch(f"{path}/{defaults[0]['id']}", json={"isDefault": False})
    assert unset.json()["data"]["isDefault"] is False
    assert not any(one["isDefault"] for one in await listed(client, path))


async def test_a_template_is_changed_and_deleted(client: Client, path: str) -> None:
    made = await make(client, path, description="x", data={"price": 1})
    one = f"{path}/{made['id']}"
    answer = await client.patch(one, json={"data": {"code": "c"}, "description": None})
    changed = answer.json()["data"]
    assert (changed["data"], "description" in changed) == ({"code": "c"}, False)
    assert (changed["label"], changed["createdAt"]) == (made["label"], made["createdAt"])
    assert changed["updatedAt"] > made["updatedAt"]
    assert (await client.patch(one, json={})).json()["data"] == changed
    assert (await client.delete(one)).json() == {"data": {"id": made["id"]}}
    assert await listed(client, path) == []
    assert (await client.delete(one)).status_code == 404
    gone = await client.get(f"/v1/surfaces/{made['contentSurfaceId']}")
    assert gone.status_code == 404


async def test_a_template_gives_a_record_its_values(
    client: Client, space: Space, path: str
) -> None:
    made = await make(client, path, data={"price": 1}, isDefault=True)
    other = await make(client, path, data={"price": 2})
    empty = (await client.post(f"{space.path}/databases", json={"label": "E"})).json()["data"]
    async with space.database.transaction() as work:

        async def given(*template_ids: Any, database_id: Any = made["databaseId"]) -> Any:
            wanted = [UUID(str(template_id)) for template_id in template_ids]
            return await record_templates.template_prefills(
                work, space.id, UUID(database_id), wanted
            )

        for strange, database_id in ((uuid4(), made["databaseId"]), (made["id"], empty["id"])):
            with pytest.raises(NotFoundError):
                await given(strange, database_id=database_id)
        prefills = await given(made["id"], other["id"])
        assert {str(id_): one.data["price"] for id_, one in prefills.items()} == {
            made["id"]: 1,
            other["id"]: 2,
        }
        assert {one.content_surface_id for one in prefills.values()} == {None}
        await record_templates.remove_usages(work, space.id, made["databaseId"], "price")
        assert (await given(other["id"]))[UUID(other["id"])].data == {}


async def test_a_database_has_at_most_200_templates(
    client: Client, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_templates, "MAX_TEMPLATES", 3)
    answers = await asyncio.gather(*(client.post(path, json={"label": "x"}) for _ in range(5)))
    assert sorted(answer.status_code for answer in answers) == [201, 201, 201, 409, 409]


async def test_record_templates_need_their_roles_and_scopes(
    client: Client, space: Space, foreign: Space, path: str
) -> None:
    made = await make(client, path)
    one = f"{path}/{made['id']}"
    viewer = client.with_token((await space.member(Role.VIEWER))[1])
    assert await listed(viewer, path) == [made]
    for answer in (
        await viewer.post(path, json={"label": "x"}),
        await viewer.patch(one, json={"label": "x"}),
        await viewer.delete(one),
    ):
        assert (answer.status_code, answer.json()["error"]) == (403, "denied")
    reader = client.with_token(await space.key([Scope.DATABASES_READ]))
    assert (await reader.get(path)).status_code == 200
    assert (await reader.post(path, json={"label": "x"})).status_code == 403
    stranger = client.with_token(foreign.token)
    nowhere = path.replace(made["databaseId"], str(uuid4()))
    there, nothing = await stranger.get(path), await stranger.get(nowhere)
    assert (there.status_code, there.content) == (404, nothing.content)
    answer = await client.post(f"{foreign.path}/databases", json={"label": "F"})
    assert answer.status_code == 404
    second = (await client.post(f"{space.path}/databases", json={"label": "S"})).json()["data"]
    elsewhere = f"/v1/databases/{second['id']}/record-templates"
    wrong = await client.patch(f"{elsewhere}/{made['id']}", json={"label": "x"})
    unknown = await client.patch(f"{elsewhere}/{uuid4()}", json={"label": "x"})
    assert (wrong.status_code, wrong.content) == (404, unknown.content)


async def test_a_repeated_call_makes_one_template(client: Client, path: str) -> None:
    headers = {"Idempotency-Key": "once"}
    answers = [await client.post(path, json={"label": "x"}, headers=headers) for _ in range(2)]
    assert answers[0].content == answers[1].content
    assert len(await listed(client, path)) == 1
