"""Pages of change sets: planned in words, looked at, tried, applied as far as ticked, rejected."""

from typing import Any

import pytest
from fastapi import FastAPI

from models.core.access.rules import Role
from models.messages.jobs.store import accept_job
from runtime.ids import new_id
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.client import Client
from tests.support.items import read
from tests.support.spaces import Space
from tests.support.visitor import Visitor, signed_in

HOSTILE = "<img src=x onerror=alert(1)>'\"{{7*7}}"


@pytest.fixture
async def item_id(client: Client, space: Space) -> str:
    body = {"workspaceId": str(space.id), "kind": "page", "title": "Before"}
    return str(read(await client.post("/v1/items", json=body), 201)["item"]["id"])


async def proposed(client: Client, space: Space, *operations: dict[str, Any]) -> str:
    """The page of a change set."""
    body = {"title": f"A plan {HOSTILE}", "operations": list(operations)}
    changes = read(await client.post(f"{space.path}/changes", json=body), 201)
    return f"/workspaces/{space.id}/changes/{changes['id']}"


def rename(item_id: str) -> dict[str, Any]:
    return {"kind": "update_item", "input": {"itemId": item_id, "title": f"After {HOSTILE}"}}


CREATION = {"kind": "create_database", "input": {"label": "Leads", "fields": []}}


async def test_changes_are_planned_in_words_and_told_on_the_first_page(
    space: Space, owner: Visitor
) -> None:
    listed = f"/workspaces/{space.id}/changes"
    assert "No changes yet" in (await owner.get(listed)).text
    fields = {"instruction": "Add a database for customer feedback"}
    planned = await owner.send_form(listed, listed, None, **fields)
    assert planned.status_code == 303
    led = await owner.get(planned.headers["location"])
    assert led.status_code == 303
    page = await owner.get(led.headers["location"])
    assert "create database" in page.text
    assert led.headers["location"] in (await owner.get(listed)).text
    assert led.headers["location"] in (await owner.get(f"/workspaces/{space.id}")).text
    refused = await owner.send_form(listed, listed, None, instruction="x")
    assert refused.status_code == 400


async def test_a_try_keeps_nothing(
    client: Client, space: Space, owner: Visitor, item_id: str
) -> None:
    path = await proposed(client, space, CREATION, rename(item_id))
    page = await owner.get(path)
    assert (HOSTILE in page.text, 'name="operation.1"' in page.text) == (False, True)
    assert 'name="operation.0"' not in page.text
    fields: dict[str, str] = {"operation.1": "on", "try": "on"}
    tried = await owner.send_form(f"{path}/apply", path, None, **fields)
    assert (tried.status_code, "2 would be applied" in tried.text) == (200, True)
    assert 'name="operation.1" checked' in tried.text
    assert read(await client.get(f"/v1/items/{item_id}"))["title"] == "Before"


async def test_changes_are_applied_once(client: Client, space: Space, owner: Visitor) -> None:
    path = await proposed(client, space, CREATION)
    applied = await owner.send_form(f"{path}/apply", path)
    assert (applied.status_code, applied.headers["location"]) == (303, path)
    page = await owner.get(path)
    assert ("applying" in page.text, 'hx-trigger="every 1s"' in page.text) == (True, True)
    assert (await owner.send_form(f"{path}/apply", path)).status_code == 409
    assert (await owner.send_form(f"{path}/reject", path)).status_code == 409


async def test_changes_are_rejected_with_a_reason(
    client: Client, space: Space, owner: Visitor
) -> None:
    path = await proposed(client, space, CREATION)
    fields = {"reason": f"Not now {HOSTILE}"}
    assert (await owner.send_form(f"{path}/reject", path, None, **fields)).status_code == 303
    page = await owner.get(path)
    assert ("Not now &lt;img" in page.text, f"{path}/apply" in page.text) == (True, True)
    assert 'type="checkbox"' not in page.text


async def test_others_see_no_changes_of_an_owner(
    app: FastAPI, client: Client, space: Space, foreign: Space
) -> None:
    path = await proposed(client, space, CREATION)
    editor, _ = await space.member(Role.EDITOR)
    async with await signed_in(app, space, editor) as reader:
        assert (await reader.get(path)).status_code == 404
        assert path not in (await reader.get(f"/workspaces/{space.id}")).text
    async with await signed_in(app, foreign) as stranger:
        assert (await stranger.get(path)).status_code == 404
        assert (await stranger.send_form(f"{path}/apply")).status_code == 404


async def test_only_who_asked_for_a_plan_waits_for_it(
    app: FastAPI, space: Space, owner: Visitor
) -> None:
    plan_id = new_id()
    async with space.database.transaction() as work:
        await accept_job(
            work, space.actor, WorkflowKind.CHANGE_PLAN, plan_id, plan_id, summary="Plan", input={}
        )
    path = f"/workspaces/{space.id}/changes/{plan_id}/plan"
    assert "planning" in (await owner.get(path)).text
    editor, _ = await space.member(Role.EDITOR)
    async with await signed_in(app, space, editor) as other:
        assert (await other.get(path)).status_code == 404


async def test_a_proposed_request_is_looked_at_and_applied(
    client: Client, space: Space, owner: Visitor, item_id: str
) -> None:
    body = {"title": f"After {HOSTILE}"}
    headers = {"Prefer": "propose"}
    answer = await client.patch(f"/v1/items/{item_id}", json=body, headers=headers)
    assert answer.status_code == 202, answer.text
    path = f"/workspaces/{space.id}/changes/{answer.json()['proposal']['id']}"
    page = await owner.get(path)
    assert page.status_code == 200
    assert f"PATCH /v1/items/{item_id}" in page.text
    assert (HOSTILE in page.text, "After &lt;img" in page.text) == (False, True)
    assert "Before" in page.text
    applied = await owner.send_form(f"{path}/apply", path)
    assert (applied.status_code, applied.headers["location"]) == (303, path)
    assert read(await client.get(f"/v1/items/{item_id}"))["title"] == body["title"]
    assert "applied" in (await owner.get(path)).text
    assert (await owner.send_form(f"{path}/apply", path)).status_code == 409
