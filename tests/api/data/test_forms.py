"""Forms over HTTP: what the public sees and sends, and what their makers decide."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

import pytest
import pytest_asyncio
from fastapi import FastAPI
from sqlalchemy import func, select

from api.kernel.limits import RateLimits
from models.content.items.commands import create_item_for
from models.content.items.rules import ItemKind
from models.core.access.rules import Level, Role
from models.data.forms.commands import copy_form, create_form
from models.data.forms.queries import form, form_submission
from models.data.records.tables import record
from models.people.workspaces import workspace
from runtime.configuration.settings import Settings
from runtime.errors import DeniedError, NotFoundError, ValidationError
from runtime.ids import new_id
from tests.support.client import Client
from tests.support.spaces import Space
from tests.support.surfaces import Placed, change_item, grant, make_form, restrict, trash

FIELDS: list[dict[str, Any]] = [
    {"label": "Name", "kind": "text", "required": True},
    {"label": "Mail", "kind": "email"},
    {
        "label": "Topic",
        "kind": "select",
        "options": [{"name": "Bug", "color": "red"}, {"name": "Praise", "color": "green"}],
        "settings": {"allowCreate": True},
    },
    {"label": "Steps", "kind": "long_text"},
    {"label": "Votes", "kind": "number", "settings": {"min": 1, "max": 5}},
    {"label": "Owner", "kind": "person"},
    {"label": "Internal", "kind": "text", "defaultValue": "unseen"},
    {"label": "Serial", "kind": "auto_number"},
]

ASKED: list[dict[str, Any]] = [
    {"key": "name"},
    {"key": "topic", "required": True, "label": "What is it about?", "help": "Choose one."},
    {
        "key": "steps",
        "required": True,
        "visibleIf": {"field": "topic", "op": "eq", "value": "bug"},
    },
    {"key": "votes"},
]

GOOD = {"name": "Ada", "topic": "praise"}


@pytest_asyncio.fixture
async def target(client: Client, space: Space) -> Any:
    """The database answers go to."""
    answer = await client.post(f"{space.path}/databases", json={"label": "In", "fields": FIELDS})
    assert answer.status_code == 201, answer.text
    return answer.json()["data"]


def config(target: Any, **more: Any) -> dict[str, Any]:
    return {"databaseId": target["id"], "fields": ASKED, "public": True, **more}


async def test_a_form_is_created_at_its_own_path(client: Client, space: Space, target: Any) -> None:
    folder = await client.post("/v1/items", json={"kind": "folder", "title": "In here"})
    parent = folder.json()["data"]["item"]["id"]
    body = {"label": "Contact", "databaseId": target["id"], "fields": ASKED, "public": True}
    made = await client.post(f"{space.path}/forms", json={**body, "parentItemId": parent})
    assert made.status_code == 201, made.text
    shown = made.json()["data"]
    assert (await client.get(f"{space.path}/forms/{shown['id']}")).json()["data"] == shown
    item = (await client.get(f"/v1/items/{shown['itemId']}")).json()["data"]
    assert (item["kind"], item["title"], item["targetId"]) == ("form", "Contact", shown["id"])
    assert (await client.get(f"/v1/forms/{shown['itemId']}")).json()["data"]["title"] == "Contact"
    unknown = {**body, "fields": [{"key": "nothing"}]}
    refused = await client.post(f"{space.path}/forms", json=unknown)
    assert (refused.status_code, refused.json()["details"][0]["path"]) == (400, "fields.0.key")
    elsewhere = {**body, "databaseId": str(uuid4())}
    assert (await client.post(f"{space.path}/forms", json=elsewhere)).status_code == 404


async def test_a_form_has_a_surface_of_its_own(client: Client, space: Space, target: Any) -> None:
    body = {"kind": "form", "title": "Ask", "config": config(target)}
    made = (await client.post("/v1/items", json=body)).json()["data"]
    item, id_ = made["item"], made["target"]["surfaceId"]
    shown = (await client.get(f"/v1/surfaces/{id_}")).json()["data"]
    assert (shown["id"], shown["kind"], shown["itemId"]) == (id_, "form", item["id"])
    path = f"{space.path}/forms/{item['targetId']}"
    assert (await client.get(path)).json()["data"]["surfaceId"] == id_ != item["targetId"]
    changed = await client.patch(path, json={"description": "Ask away"})
    assert changed.json()["data"]["surfaceId"] == id_
    words = {"kind": "paragraph", "content": {"text": "For us"}}
    await client.post(f"/v1/surfaces/{id_}/blocks", json={"blocks": [words]})
    assert "For us" not in (await client.get(f"/v1/forms/{item['id']}")).text
    copied = (await client.post(f"/v1/items/{item['id']}/duplicate")).json()["data"]
    copy = (await client.get(f"{space.path}/forms/{copied['targetId']}")).json()["data"]
    other = (await client.get(f"/v1/surfaces/{copy['surfaceId']}")).json()["data"]
    assert (other["itemId"], len(other["blocks"])) == (copied["id"], 1)
    assert other["id"] != id_
    _, viewer = await space.member(Role.VIEWER)
    reader = client.with_token(viewer)
    assert (await reader.get(f"/v1/surfaces/{id_}")).status_code == 200
    closed = {"accessMode": "restricted", "grants": []}
    assert (await client.put(f"/v1/items/{item['id']}/access", json=closed)).is_success
    assert (await reader.get(f"/v1/surfaces/{id_}")).status_code == 404
    await client.delete(f"/v1/items/{item['id']}")
    assert (await client.get(f"/v1/surfaces/{id_}")).status_code == 404


@pytest_asyncio.fixture
async def asking(space: Space, target: Any) -> Placed:
    """A public form."""
    return await make_form(space, config(target))


@pytest_asyncio.fixture
async def public(client: Client) -> AsyncIterator[Client]:
    """A client without a credential."""
    async with client.with_token(None) as anybody:
        yield anybody


def at(placed: Placed) -> str:
    return f"/v1/forms/{placed.item_id}"


async def submit(public: Client, placed: Placed, data: Any = GOOD) -> Any:
    return await public.post(f"{at(placed)}/submissions", json={"data": data})


async def records(space: Space) -> list[Any]:
    async with space.database.transaction() as work:
        statement = select(record).where(record.c.workspace_id == space.id)
        return list(await work.rows(statement.order_by(record.c.created_at, record.c.id)))


async def change(client: Client, space: Space, placed: Placed, **body: Any) -> Any:
    answer = await client.patch(f"{space.path}/forms/{placed.id}", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


async def test_the_public_sees_a_part_of_a_form(public: Client, asking: Placed) -> None:
    answer = await public.get(at(asking))
    assert answer.status_code == 200
    assert answer.json()["data"] == {
        "title": "A form",
        "submitLabel": "Submit",
        "accepting": True,
        "fields": [
            {
                "key": "name", "label": "Name", "kind": "text", "required": True,
                "options": [],
            },
            {
                "key": "topic", "label": "What is it about?", "kind": "select", "required": True,
                "help": "Choose one.",
                "options": [
                    {"key": "bug", "name": "Bug", "color": "red"},
                    {"key": "praise", "name": "Praise", "color": "green"},
                ],
            },
            {
                "key": "steps", "label": "Steps", "kind": "long_text", "required": True,
                "options": [],
                "visibleIf": {"field": "topic", "op": "eq", "value": "bug"},
            },
            {
                "key": "votes", "label": "Votes", "kind": "number", "required": False,
                "options": [],
            },
        ],
    }  # fmt: skip


async def test_an_answer_becomes_a_record(
    public: Client, space: Space, target: Any, asking: Placed
) -> None:
    answer = await submit(public, asking)
    assert answer.status_code == 201
    data = answer.json()["data"]
    assert data.keys() == {"submissionId", "confirmation"}
    assert data["confirmation"].startswith("Thank you")
    (made,) = await records(space)
    assert str(made.database_id) == target["id"]
    assert made.data == {**GOOD, "internal": "unseen"}
    assert made.created_by_user_id == space.user_id
    assert made.number == 1
    async with space.database.transaction() as work:
        rows = await work.rows(
            select(form_submission).where(form_submission.c.workspace_id == space.id)
        )
    assert [(row.form_id, row.record_id) for row in rows] == [(asking.id, made.id)]
    assert data["submissionId"] == str(rows[0].id) != str(made.id)


async def test_nothing_but_the_questions_is_taken(
    public: Client, space: Space, asking: Placed
) -> None:
    for key in ("internal", "owner", "mail", "serial", "title", "nothing"):
        answer = await submit(public, asking, {**GOOD, key: "x"})
        assert answer.status_code == 400
        assert [detail["path"] for detail in answer.json()["details"]] == [f"data.{key}"]
        assert "question of this form" in answer.json()["message"]
    several = await submit(public, asking, {**GOOD, "b": 1, "a": 1, "c": 1})
    assert [one["path"] for one in several.json()["details"]] == ["data.a", "data.b", "data.c"]
    for body in ({"data": GOOD, "title": "x"}, {"data": GOOD, "relations": {}}, {}, {"data": 1}):
        answer = await public.post(f"{at(asking)}/submissions", json=body)
        assert answer.status_code == 400
    assert await records(space) == []


@pytest.mark.parametrize(
    ("data", "path"),
    [
        ({}, "data.name"),
        ({**GOOD, "name": ""}, "data.name"),
        ({**GOOD, "name": 5}, "data.name"),
        ({**GOOD, "topic": None}, "data.topic"),
        ({**GOOD, "topic": "made up"}, "data.topic"),
        ({**GOOD, "topic": ["bug"]}, "data.topic"),
        ({**GOOD, "topic": "bug"}, "data.steps"),
        ({**GOOD, "votes": 6}, "data.votes"),
        ({**GOOD, "votes": "5"}, "data.votes"),
    ],
    ids=["none", "empty", "type", "null", "option", "list", "shown", "range", "text"],
)
async def test_a_bad_answer_is_refused_at_its_place(
    public: Client, space: Space, asking: Placed, data: dict[str, Any], path: str
) -> None:
    answer = await submit(public, asking, data)
    assert answer.status_code == 400
    assert answer.json()["details"][0]["path"] == path
    assert await records(space) == []


async def test_the_public_makes_no_options(
    client: Client, public: Client, space: Space, target: Any, asking: Placed
) -> None:
    """Though the field lets members make them (`allowCreate`)."""
    answer = await submit(public, asking, {**GOOD, "topic": "Bribery"})
    assert answer.status_code == 400
    found = await client.get(f"{space.path}/databases/{target['id']}")
    topic = next(one for one in found.json()["data"]["fields"] if one["key"] == "topic")
    assert [option["key"] for option in topic["options"]] == ["bug", "praise"]


async def test_answers_to_hidden_questions_are_left_out(
    public: Client, space: Space, asking: Placed
) -> None:
    assert (await submit(public, asking, {**GOOD, "steps": "stale"})).status_code == 201
    bug = {"name": "Bob", "topic": "bug", "steps": "1. Start."}
    assert (await submit(public, asking, bug)).status_code == 201
    first, second = await records(space)
    assert "steps" not in first.data
    assert second.data == {**bug, "internal": "unseen"}


async def test_forms_that_are_not_public_look_alike(
    client: Client, public: Client, space: Space, target: Any
) -> None:
    forms = {
        "private": await make_form(space, config(target, public=False)),
        "in the trash": await make_form(space, config(target)),
    }
    await trash(space, forms["in the trash"].item_id)
    paths = [
        *(at(one) for one in forms.values()),
        f"/v1/forms/{uuid4()}",
        f"/v1/forms/{target['itemId']}",
        f"/v1/forms/{forms['private'].id}",
        "/v1/forms/none",
    ]
    seen = {(await public.get(path)).content for path in paths}
    for path in paths:
        answer = await public.post(f"{path}/submissions", json={"data": GOOD})
        assert answer.status_code == 404
        seen.add(answer.content)
    assert len(seen) == 1
    # A member's key opens nothing more here.
    assert (await client.get(at(forms["private"]))).status_code == 404


async def test_a_form_goes_with_its_database_and_its_workspace(
    public: Client, space: Space, target: Any, asking: Placed
) -> None:
    unknown = await public.get(f"/v1/forms/{uuid4()}")

    async def gone() -> bool:
        answers = [await public.get(at(asking)), await submit(public, asking)]
        return all(answer.content == unknown.content for answer in answers)

    await trash(space, UUID(target["itemId"]))
    assert await gone()
    async with space.database.transaction() as work:
        folder = await create_item_for(work, space.actor, ItemKind.FOLDER, None, "Folder")
    await change_item(space, UUID(target["itemId"]), deleted_at=None, parent_item_id=folder)
    assert not await gone()
    await trash(space, folder)
    assert await gone()
    await change_item(space, folder, deleted_at=None)
    async with space.database.transaction() as work:
        statement = workspace.update().where(workspace.c.id == space.id)
        await work.execute(statement.values(deleted_at=work.now))
    assert await gone()


@pytest.mark.parametrize(
    "closing",
    [{"accepting": False}, {"closesAt": "2020-01-01T00:00:00Z"}],
    ids=["closed", "over"],
)
async def test_a_closed_form_shows_and_takes_nothing(
    client: Client, public: Client, space: Space, asking: Placed, closing: dict[str, Any]
) -> None:
    await change(client, space, asking, **closing)
    assert (await public.get(at(asking))).json()["data"]["accepting"] is False
    closed = await submit(public, asking)
    unknown = await public.post(f"/v1/forms/{uuid4()}/submissions", json={"data": GOOD})
    assert closed.status_code == 404
    assert closed.content == unknown.content
    assert await records(space) == []
    await change(client, space, asking, accepting=True, closesAt=None)
    assert (await submit(public, asking)).status_code == 201


async def test_an_archived_form_takes_nothing(public: Client, space: Space, asking: Placed) -> None:
    await change_item(space, asking.item_id, archived=True)
    assert (await public.get(at(asking))).json()["data"]["accepting"] is False
    assert (await submit(public, asking)).status_code == 404


async def test_a_restricted_form_is_public_all_the_same(
    public: Client, space: Space, asking: Placed
) -> None:
    await restrict(space, asking.item_id)
    assert (await submit(public, asking)).status_code == 201


async def test_no_more_than_the_most(
    client: Client, public: Client, space: Space, asking: Placed
) -> None:
    await change(client, space, asking, maxSubmissions=3)
    answers = await asyncio.gather(*(submit(public, asking) for _ in range(10)))
    assert sorted(answer.status_code for answer in answers) == [201] * 3 + [404] * 7
    assert len(await records(space)) == 3
    async with space.database.transaction() as work:
        kept = await work.scalar(select(func.count()).where(form_submission.c.form_id == asking.id))
    assert kept == 3
    assert (await public.get(at(asking))).json()["data"]["accepting"] is False
    shown = await change(client, space, asking, maxSubmissions=None)
    assert (shown["submissionCount"], "maxSubmissions" in shown) == (3, False)
    assert (await submit(public, asking)).status_code == 201


async def test_closing_wins_over_answers_under_way(
    client: Client, public: Client, space: Space, asking: Placed
) -> None:
    """After the answer to the closing PATCH no further record appears."""
    sending = [asyncio.create_task(submit(public, asking)) for _ in range(6)]
    await asyncio.sleep(0.01)
    await change(client, space, asking, accepting=False)
    before = len(await records(space))
    answers = await asyncio.gather(*sending)
    assert len(await records(space)) == before
    assert [answer.status_code for answer in answers].count(201) == before


async def test_a_field_that_is_gone_is_not_asked(public: Client, space: Space, target: Any) -> None:
    placed = await make_form(space, config(target))
    async with space.database.transaction() as work:
        asked = [
            {"key": "gone", "required": True},
            {"key": "name"},
            {"key": "votes", "visibleIf": {"field": "gone", "op": "eq", "value": "x"}},
        ]
        await work.execute(form.update().where(form.c.id == placed.id).values(fields=asked))
    shown = (await public.get(at(placed))).json()["data"]
    assert [field["key"] for field in shown["fields"]] == ["name"]
    assert shown["accepting"] is True
    assert (await submit(public, placed, {"name": "Ada"})).status_code == 201


async def test_a_form_that_lacks_what_its_database_requires_takes_nothing(
    public: Client, space: Space, target: Any
) -> None:
    placed = await make_form(space, config(target))
    async with space.database.transaction() as work:
        asked = [{"key": "votes"}]
        await work.execute(form.update().where(form.c.id == placed.id).values(fields=asked))
    assert (await public.get(at(placed))).json()["data"]["accepting"] is False
    answer = await submit(public, placed, {"votes": 2})
    assert answer.status_code == 404
    assert "name" not in answer.text


async def test_the_maker_reads_and_changes_it(
    client: Client, space: Space, target: Any, asking: Placed
) -> None:
    path = f"{space.path}/forms/{asking.id}"
    found = (await client.get(path)).json()["data"]
    assert (found["databaseId"], found["itemId"]) == (target["id"], str(asking.item_id))
    assert (found["public"], found["version"], found["submissionCount"]) == (True, 1, 0)
    changed = await change(
        client,
        space,
        asking,
        title="Tell us",
        fields=[{"key": "name", "label": "Who?"}],
        submitLabel="Send",
        closesAt="2099-01-01T00:00:00+02:00",
        public=False,
    )
    assert changed["version"] == 2
    assert changed["closesAt"] == "2098-12-31T22:00:00.000Z"
    assert (await client.get(path)).json()["data"] == changed
    stale = await client.patch(path, json={"title": "x"}, headers={"If-Match": "1"})
    assert stale.status_code == 409
    fresh = await client.patch(path, json={"title": None}, headers={"If-Match": "2"})
    assert "title" not in fresh.json()["data"]


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"fields": [{"key": "nothing"}, {"key": "name"}]}, "fields.0.key"),
        ({"fields": [{"key": "owner"}, {"key": "name"}]}, "fields.0.key"),
        ({"fields": [{"key": "serial"}, {"key": "name"}]}, "fields.0.key"),
        ({"fields": [{"key": "name"}, {"key": "name"}]}, "fields.1.key"),
        ({"fields": [{"key": "votes"}]}, "fields"),
        ({"fields": []}, "fields"),
        (
            {
                "fields": [
                    {"key": "votes"},
                    {"key": "name", "visibleIf": {"field": "votes", "op": "gt", "value": 1}},
                ]
            },
            "fields",
        ),
        (
            {"fields": [{"key": "name", "visibleIf": {"field": "votes", "op": "eq", "value": 1}}]},
            "fields.0.visibleIf.field",
        ),
        (
            {
                "fields": [
                    {"key": "name"},
                    {"key": "votes", "visibleIf": {"field": "name", "op": "after", "value": 1}},
                ]
            },
            "fields.1.visibleIf.op",
        ),
        ({"fields": [{"key": "name", "default": 1}]}, "fields.0.default"),
        ({"fields": None, "title": ""}, "title"),
        ({"maxSubmissions": 0}, "maxSubmissions"),
        ({"maxSubmissions": True}, "maxSubmissions"),
        ({"closesAt": "tomorrow"}, "closesAt"),
        ({"closesAt": 1_700_000_000}, "closesAt"),
        ({"public": "yes"}, "public"),
        ({"databaseId": str(uuid4())}, "databaseId"),
        ({"submissionCount": 0}, "submissionCount"),
    ],
    ids=lambda value: value.replace(".", "-") if isinstance(value, str) else "of",
)
async def test_a_bad_change_changes_nothing(
    client: Client, space: Space, asking: Placed, body: dict[str, Any], path: str
) -> None:
    answer = await client.patch(f"{space.path}/forms/{asking.id}", json=body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["details"][0]["path"] == path
    found = await client.get(f"{space.path}/forms/{asking.id}")
    assert found.json()["data"]["version"] == 1


async def create(space: Space, actor: Any, given: dict[str, Any]) -> None:
    async with space.database.transaction() as work:
        item_id = await create_item_for(work, space.actor, ItemKind.FORM, new_id(), "F")
        await create_form(work, actor, item_id, given)


async def test_creation_says_what_is_wrong_below_config(
    space: Space, foreign: Space, target: Any
) -> None:
    for given, path in [
        ({}, "config.databaseId"),
        ({"databaseId": 1}, "config.databaseId"),
        (config(target, fields=[{"key": "x"}]), "config.fields.0.key"),
        (config(target, closesAt="x"), "config.closesAt"),
        (config(target, unknown=1), "config.unknown"),
    ]:
        with pytest.raises(ValidationError) as refused:
            await create(space, space.actor, given)
        assert refused.value.details[0].path == path
    for stranger in (foreign.actor, space.actor):
        missing = {"databaseId": target["id"] if stranger is foreign.actor else str(uuid4())}
        with pytest.raises(NotFoundError):
            await create(space, stranger, missing)


async def test_a_form_needs_edit_access_to_its_database(
    client: Client, space: Space, target: Any, asking: Placed
) -> None:
    """Who may edit the form alone cannot let the public into the database."""
    user_id, token = await space.member(Role.EDITOR)
    editor = client.with_token(token)
    path = f"{space.path}/forms/{asking.id}"
    await restrict(space, UUID(target["itemId"]))
    assert (await editor.get(path)).status_code == 200
    assert (await editor.patch(path, json={"public": True})).status_code == 404
    await grant(space, UUID(target["itemId"]), user_id, Level.VIEW)
    assert (await editor.patch(path, json={"public": True})).status_code == 403


@pytest.mark.parametrize(
    ("role", "reads", "writes"),
    [
        (Role.EDITOR, 200, 200),
        (Role.COMMENTER, 200, 403),
        (Role.VIEWER, 200, 403),
        (Role.GUEST, 404, 403),
    ],
)
async def test_roles_decide_who_reads_and_changes_a_form(
    client: Client, space: Space, asking: Placed, role: Role, reads: int, writes: int
) -> None:
    _, token = await space.member(role)
    path = f"{space.path}/forms/{asking.id}"
    member = client.with_token(token)
    assert (await member.get(path)).status_code == reads
    assert (await member.patch(path, json={"title": "x"})).status_code == writes


async def test_without_fields_a_form_asks_all_it_can(
    public: Client, space: Space, target: Any
) -> None:
    placed = await make_form(space, {"databaseId": target["id"], "public": True})
    shown = (await public.get(at(placed))).json()["data"]
    keys = [field["key"] for field in shown["fields"]]
    assert keys == ["title", "name", "mail", "topic", "steps", "votes", "internal"]


async def test_a_copy_is_not_public(public: Client, space: Space, asking: Placed) -> None:
    await submit(public, asking)
    async with space.database.transaction() as work:
        item_id = await create_item_for(work, space.actor, ItemKind.FORM, new_id(), "Copy")
        copied = Placed(item_id, await copy_form(work, space.actor, asking.id, item_id))
    assert (await public.get(at(copied))).status_code == 404
    async with space.database.transaction() as work:
        rows = await work.rows(select(form).where(form.c.workspace_id == space.id))
    by_id = {row.id: row for row in rows}
    assert by_id[copied.id].fields == by_id[asking.id].fields
    assert by_id[copied.id].submission_count == 0


async def test_an_editor_makes_a_form(space: Space, target: Any) -> None:
    await restrict(space, UUID(target["itemId"]))
    user_id, _ = await space.member(Role.EDITOR)
    owner = space.actor
    editor = type(owner)(
        principal=type(owner.principal)(type=owner.principal.type, id=user_id, user_id=user_id),
        workspace_id=space.id,
        role=Role.EDITOR,
        scopes=owner.scopes,
    )
    with pytest.raises(NotFoundError):
        await create(space, editor, config(target))
    await grant(space, UUID(target["itemId"]), user_id, Level.COMMENT)
    with pytest.raises(DeniedError):
        await create(space, editor, config(target))


async def _count(client: Client, target: Any) -> int:
    listed = await client.get(f"/v1/databases/{target['id']}/records")
    return len(listed.json()["data"]["records"])


async def test_a_submission_key_makes_one_record(
    client: Client, public: Client, asking: Placed, target: Any
) -> None:
    path, headers = f"{at(asking)}/submissions", {"Idempotency-Key": "k"}
    first = await public.post(path, json={"data": GOOD}, headers=headers)
    again = await asyncio.gather(
        *(public.post(path, json={"data": GOOD}, headers=headers) for _ in range(6))
    )
    assert {(answer.status_code, answer.content) for answer in again} == {(201, first.content)}
    assert {answer.headers["Idempotency-Replayed"] for answer in again} == {"true"}
    other = await public.post(path, json={"data": {**GOOD, "name": "Bob"}}, headers=headers)
    assert (other.status_code, other.json()["error"]) == (422, "conflicting_mutation")
    assert await _count(client, target) == 1
    without = [await public.post(path, json={"data": GOOD}) for _ in range(2)]
    assert [answer.status_code for answer in without] == [201, 201]
    assert await _count(client, target) == 3


async def test_submissions_at_once_with_one_key_make_one_record(
    client: Client, public: Client, asking: Placed, target: Any
) -> None:
    path, headers = f"{at(asking)}/submissions", {"Idempotency-Key": "k"}
    answers = await asyncio.gather(
        *(public.post(path, json={"data": GOOD}, headers=headers) for _ in range(6))
    )
    assert len({(answer.status_code, answer.content) for answer in answers}) == 1
    assert await _count(client, target) == 1


async def test_a_refused_submission_frees_its_key(
    client: Client, public: Client, asking: Placed, target: Any
) -> None:
    path, headers = f"{at(asking)}/submissions", {"Idempotency-Key": "k"}
    refused = await public.post(path, json={"data": {}}, headers=headers)
    answered = await public.post(path, json={"data": GOOD}, headers=headers)
    assert [refused.status_code, answered.status_code] == [400, 201]
    assert await _count(client, target) == 1


async def test_too_many_submissions_are_refused_and_a_key_that_was_used_is_not(
    app: FastAPI,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    client: Client,
    public: Client,
    asking: Placed,
    target: Any,
) -> None:
    few = {"rate_limit_form_address": 2, "rate_limit_form_address_burst": 3}
    limits = RateLimits(settings.model_copy(update=few))
    monkeypatch.setattr(app.state.services, "limits", limits)
    path, headers = f"{at(asking)}/submissions", {"Idempotency-Key": "k"}
    first = await public.post(path, json={"data": GOOD}, headers=headers)
    answers = [await public.post(path, json={"data": GOOD}) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [201, 201, 429, 429]
    assert answers[-1].headers["Retry-After"] == "30"
    assert answers[-1].json()["message"] == "Too many submissions. Try again in 30 seconds."
    again = await public.post(path, json={"data": GOOD}, headers=headers)
    assert (again.status_code, again.content) == (201, first.content)
    assert await _count(client, target) == 3
