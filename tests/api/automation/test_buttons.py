"""Buttons of records: what they hand to their action, and who may press them."""

from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import select, update

from models.core.access.rules import Role, Scope
from models.data.fields.tables import field
from models.messages.events.store import trigger_event
from tests.api.automation.test_action_runs import create
from tests.support.client import Client
from tests.support.items import Json, read, refused
from tests.support.spaces import Space

BINDINGS = {
    "fixed": {"type": "literal", "value": [1, {"a": None}]},
    "price": {"type": "field", "value": "price"},
    "name": {"type": "field", "value": "title"},
    "id": {"type": "record", "value": "id"},
    "title": {"type": "record", "value": "title"},
    "base": {"type": "record", "value": "databaseId"},
    "who": {"type": "user", "value": "id"},
    "mail": {"type": "user", "value": "email"},
    "sum": {"type": "expression", "value": "record.price * 2"},
}


class Desk:
    """A record with a button, and the action behind it."""

    def __init__(self, client: Client, space: Space) -> None:
        self.client = client
        self.space = space

    async def furnish(self, bindings: Json, **action: Any) -> "Desk":
        self.action = await create(self.client, self.space, **action)
        path = f"{self.space.path}/databases"
        price = {"label": "Price", "kind": "number"}
        made = read(await self.client.post(path, json={"label": "D", "fields": [price]}), 201)
        self.database = made["id"]
        settings = {"actionId": self.action.rpartition("/")[2], "bindings": bindings}
        body = {"label": "Press", "kind": "button", "settings": settings}
        fields = f"/v1/databases/{self.database}/fields"
        self.field = read(await self.client.post(fields, json=body), 201)["id"]
        records = f"/v1/databases/{self.database}/records"
        given = {"title": "Tea", "data": {"price": 3}}
        self.record = read(await self.client.post(records, json=given), 201)["id"]
        return self

    async def press(self, client: Client | None = None, key: str = "press", **body: Any) -> Any:
        path = f"/v1/records/{self.record}/buttons/{key}/run"
        return await (client or self.client).post(path, json={"wait": False, **body})

    async def settings(self, value: Json) -> None:
        """Settings that could not be saved today."""
        async with self.space.database.transaction() as work:
            this = update(field).where(field.c.id == self.field)
            await work.execute(this.values(settings=value))


@pytest.fixture
def desk(client: Client, space: Space) -> Desk:
    return Desk(client, space)


async def test_a_button_hands_over_what_its_bindings_say(desk: Desk, space: Space) -> None:
    await desk.furnish(BINDINGS)
    run = read(await desk.press())
    assert run["actionId"] == desk.action.rpartition("/")[2]
    assert run["input"] == {
        "fixed": [1, {"a": None}],
        "price": 3,
        "name": "Tea",
        "id": desk.record,
        "title": "Tea",
        "base": desk.database,
        "who": str(space.user_id),
        "mail": space.email,
        "sum": 6,
    }
    assert read(await desk.client.get(f"{desk.action}/runs"))[0]["id"] == run["id"]


async def test_input_of_the_call_is_laid_over(desk: Desk) -> None:
    await desk.furnish({"a": {"type": "literal", "value": 1}, "b": {"type": "literal", "value": 2}})
    run = read(await desk.press(input={"b": 3, "c": 4}))
    assert run["input"] == {"a": 1, "b": 3, "c": 4}


async def test_a_repeated_press_is_one_run(desk: Desk) -> None:
    await desk.furnish({})
    path = f"/v1/records/{desk.record}/buttons/press/run"
    headers = {"Idempotency-Key": uuid4().hex}
    bodies = {
        (await desk.client.post(path, json={"wait": False}, headers=headers)).content
        for _ in range(3)
    }
    assert len(bodies) == 1
    assert len(read(await desk.client.get(f"{desk.action}/runs"))) == 1


@pytest.mark.parametrize("key", ["title", "price", "nothing", "x" * 300])
async def test_a_field_that_is_no_button_is_a_validation_error(desk: Desk, key: str) -> None:
    await desk.furnish({})
    assert refused(await desk.press(key=key)) == (400, "validation_error")


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"actionId": "nonsense"},
        {"actionId": None, "bindings": {}},
        {"bindings": {"a": {"type": "field", "value": 7}}},
        {"bindings": {"a": {"type": "record", "value": "secret"}}},
        {"bindings": {"a": {"type": "user", "value": "password"}}},
        {"bindings": {"a": {"type": "expression", "value": "1 +"}}},
        {"bindings": {"a": {"type": "expression", "value": "1 / 0"}}},
        {"bindings": {"a": {"type": "node", "value": "x"}}},
        {"bindings": {"a": "text"}},
        {"bindings": "text"},
    ],
    ids=lambda broken: str(broken)[:40],
)
async def test_settings_that_cannot_be_read_are_a_validation_error(
    desk: Desk, broken: Json
) -> None:
    await desk.furnish({})
    whole = {"actionId": desk.action.rpartition("/")[2], **broken}
    await desk.settings(whole if "bindings" in broken and "actionId" not in broken else broken)
    assert refused(await desk.press()) == (400, "validation_error")
    assert read(await desk.client.get(f"{desk.action}/runs")) == []


async def test_a_disabled_action_is_refused_and_a_deleted_one_is_gone(desk: Desk) -> None:
    await desk.furnish({})
    read(await desk.client.patch(desk.action, json={"enabled": False}))
    assert refused(await desk.press()) == (400, "validation_error")
    read(await desk.client.delete(desk.action, params={"force": "true"}))
    assert refused(await desk.press()) == (404, "not_found")


async def test_edit_access_to_the_action_is_needed(desk: Desk, space: Space) -> None:
    await desk.furnish({})
    user_id, token = await space.member(Role.EDITOR)
    editor = desk.client.with_token(token)
    assert read(await desk.press(editor))["status"] == "started"
    item_id = read(await desk.client.get(desk.action))["itemId"]
    for level, answer in (("run", (403, "denied")), (None, (404, "not_found"))):
        grants = [] if level is None else [{"userId": str(user_id), "level": level}]
        body = {"accessMode": "restricted", "grants": grants}
        read(await desk.client.put(f"/v1/items/{item_id}/access", json=body))
        assert refused(await desk.press(editor)) == answer
    scopes = [scope for scope in Scope if scope is not Scope.ACTIONS_RUN]
    without = desk.client.with_token(await space.key(scopes))
    assert refused(await desk.press(without)) == (403, "denied")


async def test_a_record_that_is_not_seen_has_no_button(
    desk: Desk, space: Space, foreign: Space
) -> None:
    await desk.furnish({})
    assert refused(await desk.press(desk.client.with_token(foreign.token))) == (404, "not_found")
    _, token = await space.member(Role.GUEST)
    assert refused(await desk.press(desk.client.with_token(token)))[0] in {403, 404}
    read(await desk.client.delete(f"/v1/records/{desk.record}"))
    assert refused(await desk.press()) == (404, "not_found")


async def test_automations_that_listen_hear_of_it_once(desk: Desk, space: Space) -> None:
    await desk.furnish({})
    config = {"kind": "button_pressed", "databaseId": desk.database, "fieldKey": "press"}
    graph = {"nodes": [{"id": "a", "kind": "transform", "config": {"output": {}}}]}
    body = {"label": "L", "enabled": True, "triggerConfig": config, "graph": graph}
    made = read(await desk.client.post(f"{space.path}/automations", json=body), 201)
    path = f"{space.path}/automations/{made['id']}/publish"
    read(await desk.client.post(path, json={}))
    headers = {"Idempotency-Key": uuid4().hex}
    for _ in range(2):
        path = f"/v1/records/{desk.record}/buttons/press/run"
        read(await desk.client.post(path, json={"wait": False}, headers=headers))
    refused(await desk.press(key="title"))
    async with space.database.transaction() as work:
        rows = await work.rows(
            select(trigger_event).where(trigger_event.c.workspace_id == space.id)
        )
    (event,) = [row for row in rows if row.kind == "button_pressed"]
    assert event.payload["record"]["title"] == "Tea"
    assert event.payload["user"]["id"] == str(space.user_id)
