"""Pages of plain resources: listed, made, changed and deleted by forms, without scripts."""

import json
import re
import shlex
from typing import Any
from uuid import uuid4

import pytest
from fastapi import FastAPI

from api.console.rendering import Appearance, Shell
from api.kernel.routing import Route, route_of
from api.routers.automation import incidents
from api.routers.registry import ROUTERS
from models.core.access.rules import Role
from models.people.users import make_platform_admin
from tests.api.console.test_fields import HOSTILE, Json, inputs
from tests.support.automations import read
from tests.support.client import Client
from tests.support.related import make_database
from tests.support.spaces import Space
from tests.support.visitor import Visitor, signed_in

pytestmark = pytest.mark.takes(seconds=10)


@pytest.fixture
async def goods(client: Client, space: Space) -> str:
    """The id of a database with a price and a state."""
    state = {"label": "State", "kind": "select", "options": [{"name": "Open"}, {"name": HOSTILE}]}
    return await make_database(client, space, "Goods", {"label": "Price", "kind": "number"}, state)


@pytest.mark.long
async def test_a_record_template_is_made_changed_and_deleted(
    client: Client, owner: Visitor, space: Space, goods: str
) -> None:
    place = f"/databases/{goods}/record-templates"

    async def templates() -> list[Json]:
        listed: list[Json] = read(await client.get(f"/v1{place}"))["templates"]
        return listed

    assert place in (await owner.get(f"/workspaces/{space.id}/databases/{goods}")).text
    empty = (await owner.get(place)).text
    assert "No record templates" in empty
    form = (await owner.get(f"{place}/new")).text
    assert all(f'name="{name}"' in form for name in ("label", "isDefault", "field.price"))
    values = {"field.price": "3.5", "field.state": "open", "field.title": "Tea"}
    sent: Json = {"label": HOSTILE, "isDefault": "on", "description": "Usual", **values}
    answer = await owner.send_form(place, **sent)
    assert (answer.status_code, answer.headers["location"]) == (303, f"{place}?notice=added")
    (made,) = await templates()
    assert (made["label"], made["isDefault"], made["description"]) == (HOSTILE, True, "Usual")
    assert made["data"] == {"title": "Tea", "price": 3.5, "state": "open"}
    listed = (await owner.get(answer.headers["location"])).text
    assert ("Added" in listed, HOSTILE in listed) == (True, False)
    own = f"{place}/{made['id']}/edit"
    shown = inputs((await owner.get(own)).text)
    assert shown["field.price"] == "3.5"
    # The form as it is shown, sent back, changes nothing.
    assert (await owner.send_form(own, **shown)).status_code == 303
    assert [{**one, "updatedAt": ""} for one in await templates()] == [{**made, "updatedAt": ""}]
    changed = {**shown, "label": "Tea", "field.price": "", "description": ""}
    del changed["isDefault"]
    assert (await owner.send_form(own, **changed)).status_code == 303
    (made,) = await templates()
    assert (made["label"], made["isDefault"], made.get("description")) == ("Tea", False, None)
    assert made["data"] == {"title": "Tea", "state": "open"}
    assert (await owner.send_form(f"{place}/{made['id']}/delete")).status_code == 303
    assert await templates() == []
    assert (await owner.get(own)).status_code == 404


UNKNOWN = "01890000-0000-7000-8000-000000000000"


@pytest.mark.parametrize(
    ("sent", "fault"),
    [
        ({"label": ""}, 'id="h-label" class="fault"'),
        ({"label": "Tea", "field.price": "cheap"}, "Enter a valid number"),
        ({"label": "Tea", "field.state": "gone"}, 'class="fault"'),
    ],
)
async def test_a_refused_template_comes_back_filled_in(
    client: Client, owner: Visitor, goods: str, sent: Json, fault: str
) -> None:
    place = f"/databases/{goods}/record-templates"
    answer = await owner.send_form(place, **{"description": HOSTILE, "field.title": "Tea", **sent})
    assert answer.status_code == 400, answer.text
    assert fault in answer.text
    assert HOSTILE not in answer.text
    assert inputs(answer.text)["field.title"] == "Tea"
    assert read(await client.get(f"/v1{place}"))["templates"] == []


async def test_a_viewer_reads_templates_and_changes_none(
    app: FastAPI, client: Client, space: Space, goods: str
) -> None:
    place = f"/databases/{goods}/record-templates"
    made = read(await client.post(f"/v1{place}", json={"label": "Tea"}), 201)
    user_id, _ = await space.member(Role.VIEWER)
    async with await signed_in(app, space, user_id) as viewer:
        page = (await viewer.get(place)).text
        assert ("Tea" in page, f"{place}/new" in page, "Delete" in page) == (True, False, False)
        assert (await viewer.get(f"{place}/new")).status_code == 403
        assert (await viewer.send_form(f"{place}/{made['id']}/delete")).status_code == 403


@pytest.mark.long
async def test_a_page_and_a_dashboard_are_made_renamed_moved_and_deleted(
    client: Client, owner: Visitor, space: Space
) -> None:
    place = f"/workspaces/{space.id}/items"
    page = (await owner.get(place)).text
    assert f"{place}/new?kind=dashboard" in page
    made: dict[str, Any] = {}
    for kind in ("folder", "page", "note", "dashboard", "canvas"):
        form = inputs((await owner.get(f"{place}/new?kind={kind}")).text)
        assert form["kind"] == kind
        answer = await owner.send_form(place, **{**form, "title": f"My {kind}", "icon": "🙂"})
        assert answer.status_code == 303, answer.text
        listed = read(await client.get("/v1/items", params={"workspaceId": str(space.id)}))
        (made[kind],) = [one for one in listed["items"] if one["kind"] == kind]
        below = f"{place}?parent={made[kind]['id']}"
        written = f"/surfaces/{made[kind].get('targetId')}"
        assert answer.headers["location"] == (below if kind == "folder" else written)
    own = f"{place}/{made['dashboard']['id']}/edit"
    assert own in (await owner.get(f"{place}?parent={made['dashboard']['id']}")).text
    shown = inputs((await owner.get(own)).text)
    assert "kind" not in shown
    moved = {**shown, "title": HOSTILE, "parentItemId": made["folder"]["id"], "icon": ""}
    assert (await owner.send_form(own, **moved)).status_code == 303
    found = read(await client.get(f"/v1/items/{made['dashboard']['id']}"))
    assert (found["title"], found["icon"]) == (HOSTILE, None)
    assert found["parentItemId"] == made["folder"]["id"]
    conflict = await owner.send_form(own, **{**moved, "title": "Late"})
    assert conflict.status_code == 409, "it was changed since the page was made"
    back = {**inputs((await owner.get(own)).text), "parentItemId": ""}
    assert (await owner.send_form(own, **back)).status_code == 303
    assert read(await client.get(f"/v1/items/{made['dashboard']['id']}"))["parentItemId"] is None
    assert (await owner.send_form(own.replace("/edit", "/delete"))).status_code == 303
    assert (await client.get(f"/v1/items/{made['dashboard']['id']}")).status_code == 404


async def test_an_item_cannot_be_moved_below_itself(
    client: Client, owner: Visitor, space: Space
) -> None:
    place = f"/workspaces/{space.id}/items"
    body = {"workspaceId": str(space.id), "kind": "folder", "title": "Outer"}
    outer = read(await client.post("/v1/items", json=body), 201)["item"]
    inner = {**body, "title": "Inner", "parentItemId": outer["id"]}
    inside = read(await client.post("/v1/items", json=inner), 201)["item"]
    own = f"{place}/{outer['id']}/edit"
    shown = inputs((await owner.get(own)).text)
    refused = await owner.send_form(own, **{**shown, "parentItemId": inside["id"], "title": "New"})
    assert refused.status_code in {400, 409}
    assert inputs(refused.text)["title"] == "New"
    assert read(await client.get(f"/v1/items/{outer['id']}"))["title"] == "Outer"


async def test_a_workspace_is_made_and_listed(owner: Visitor, space: Space) -> None:
    listed = (await owner.get("/workspaces")).text
    assert f'href="/workspaces/{space.id}"' in listed
    assert 'href="/workspaces/new"' in listed
    slug = f"ours-{uuid4().hex[:8]}"
    answer = await owner.send_form("/workspaces", page="/workspaces/new", name=HOSTILE, slug=slug)
    assert answer.status_code == 303
    home = await owner.get(answer.headers["location"])
    assert (home.status_code, HOSTILE in home.text) == (200, False)
    taken = await owner.send_form("/workspaces", page="/workspaces/new", name="Ours", slug=slug)
    assert taken.status_code in {400, 409}
    assert (inputs(taken.text)["name"], inputs(taken.text)["slug"]) == ("Ours", slug)


async def test_the_look_of_pages_is_chosen_and_holds(owner: Visitor, space: Space) -> None:
    place = f"/workspaces/{space.id}/settings/profile"
    assert place in (await owner.get(f"/workspaces/{space.id}")).text
    page = (await owner.get(place)).text
    assert "data-theme" not in page
    sent: Json = {"theme": "dark", "timeZone": "Europe/Berlin", "language": "de"}
    answer = await owner.send_form(place, page=place, **sent)
    assert (answer.status_code, answer.headers["location"]) == (303, f"{place}?notice=saved")
    assert 'data-theme="dark"' in (await owner.get(f"{place}/unknown")).text
    for path in (place, f"/workspaces/{space.id}", "/workspaces"):
        shown = (await owner.get(path)).text
        for attribute in ("theme", "zone", "language"):
            assert f"data-{attribute}=" in shown, path
    assert inputs((await owner.get(place)).text)["timeZone"] == "Europe/Berlin"
    wrong = await owner.send_form(place, page=place, theme="pink", timeZone="Mars/Base")
    assert wrong.status_code == 400
    assert wrong.text.count('aria-invalid="true"') == 2
    await owner.send_form(place, page=place, theme="system")
    assert "data-theme" not in (await owner.get(place)).text


@pytest.mark.parametrize("text", ["", "theme=pink", "%00", "theme=dark&timeZone=<b>", "x" * 5000])
async def test_a_broken_cookie_of_the_look_is_that_of_the_system(
    owner: Visitor, space: Space, text: str
) -> None:
    owner.cookies.set("appearance", text, domain="platform.test", path="/")
    page = await owner.get(f"/workspaces/{space.id}/settings/profile")
    assert (page.status_code, "data-theme" in page.text) == (200, False)


@pytest.mark.parametrize(
    "path",
    ["sign-in", "sign-in/unknown", "approvals/unknown", f"v1/share/{UNKNOWN}", f"forms/{UNKNOWN}"],
)
async def test_pages_for_everyone_have_the_look_of_the_browser(nobody: Visitor, path: str) -> None:
    nobody.cookies.set("appearance", "theme=dark", domain="platform.test", path="/")
    assert '<html lang="en" data-theme="dark">' in (await nobody.get(f"/{path}")).text


async def test_experiments_and_segments_are_made_by_forms(app: FastAPI, space: Space) -> None:
    async with space.database.transaction() as work:
        await make_platform_admin(work, space.user_id)
    key = f"large_{uuid4().hex[:8]}"
    settings = f"/workspaces/{space.id}/settings"
    async with await signed_in(app, space) as visitor:
        place = f"{settings}/segments"
        rule = '{"field": "workspace.memberCount", "op": "gte", "value": 50}'
        sent: Json = {"key": key, "label": HOSTILE, "rule": rule}
        wrong = await visitor.send_form(place, **{**sent, "rule": "{"})
        assert (wrong.status_code, inputs(wrong.text)["key"]) == (400, key)
        assert (await visitor.send_form(place, **sent)).status_code == 303
        listed = (await visitor.get(place)).text
        assert (key in listed, HOSTILE in listed) == (True, False)
        place = f"{settings}/experiments"
        form = (await visitor.get(f"{place}/new")).text
        assert f'value="{key}"' in form
        fields: Json = {
            "name": "Short",
            "targetType": "flag",
            "flagKey": f"flag_{uuid4().hex}",
            "audience": key,
            "allocation": "50",
            "variants.0.id": "control",
            "variants.0.label": "Current",
            "variants.0.split": "50",
            "variants.1.label": "Short",
            "variants.1.split": "40",
        }
        refused = await visitor.send_form(place, **fields)
        assert refused.status_code == 400
        assert inputs(refused.text)["variants.1.label"] == "Short"
        made = await visitor.send_form(place, **{**fields, "variants.1.split": "50"})
        assert made.status_code == 303, made.text
        own = made.headers["location"].partition("?")[0]
        assert "Current" in (await visitor.get(own)).text
        shown = inputs((await visitor.get(f"{own}/edit")).text)
        assert shown["variants.0.id"] == "control"
        answer = await visitor.send_form(f"{own}/edit", **{**shown, "name": "Shorter"})
        assert answer.status_code == 303, answer.text
        assert "Shorter" in (await visitor.get(own)).text


def test_each_page_of_a_resource_asks_for_what_its_operation_asks_for() -> None:
    pages = {
        route.operation.name: route.operation.access
        for router in ROUTERS
        for route in router.routes
        if route.operation.access.page
    }
    same = {
        "create_record_template_by_form": "create_record_template",
        "edit_record_template": "update_record_template",
        "delete_record_template_by_form": "delete_record_template",
        "create_item_by_form": "create_item",
        "edit_item": "update_item",
        "delete_item_by_form": "delete_item",
        "create_workspace_by_form": "create_workspace",
        "create_segment_by_form": "create_audience_segment",
        "create_experiment_by_form": "create_experiment",
        "edit_experiment": "update_experiment",
    }
    operations = {
        route.operation.name: route.operation
        for router in ROUTERS
        for route in router.routes
        if not route.operation.access.page
    }
    for page, name in same.items():
        wanted, access = operations[name].access, pages[page]
        assert access.scopes == wanted.scopes
        assert (access.level, access.resource) == (wanted.level, wanted.resource)
        assert access.platform_admin == wanted.platform_admin
        assert (access.idempotent, access.joins, access.page) == (True, True, True)


async def test_the_first_wrong_field_has_the_focus(owner: Visitor, goods: str) -> None:
    answer = await owner.send_form(
        f"/databases/{goods}/record-templates", label="x" * 201, icon="y" * 101
    )
    assert answer.status_code == 400
    assert len(re.findall(r"<input[^>]* autofocus", answer.text)) == 1
    assert re.search(r'<input id="f-label"[^>]*autofocus', answer.text)


SHELL = Shell(
    person="Ada",
    workspaces=(),
    workspace=None,
    scopes=frozenset(),
    token="",
    base="https://platform.test",
    unread=0,
    incidents=0,
    parameters={"alertRuleId": "rule"},
    appearance=Appearance(),
)
OPERATIONS = [
    route
    for router in ROUTERS
    for route in router.routes
    if route.path.startswith("/v1/") and not route.operation.access.page
]


@pytest.mark.parametrize("route", OPERATIONS, ids=lambda route: route.operation.name)
def test_the_call_of_an_operation_is_its_method_path_and_example(route: Route) -> None:
    operation = route.operation
    if route_of(operation.endpoint) is not route:
        return
    command = shlex.split(SHELL.call(operation.endpoint).replace("\\\n", " "))
    path = route.path.replace("{alertRuleId}", "rule")
    assert command[0] == "curl"
    assert f"https://platform.test{path}" in command
    assert (operation.method == "GET") is ("-X" not in command)
    if "-d" in command and (body := json.loads(command[command.index("-d") + 1])):
        assert operation.body is not None
        operation.body.adapter.validate_json(json.dumps(body))


def test_calls_are_named_by_their_operations_and_have_their_own_bodies() -> None:
    update = (incidents.update_alert_rule, {"enabled": False})
    listing = (incidents.list_incidents, {"state": "open", "automationId": None})
    calls = SHELL.calls(incidents.get_alert_rule, update, listing, workspace_id="here")
    assert [*calls] == ["Get alert rule", "Update alert rule", "List incidents"]
    assert calls["Get alert rule"].startswith(
        "curl https://platform.test/v1/workspaces/here/alert-rules/rule \\\n"
    )
    assert calls["Update alert rule"].endswith("-d '{\"enabled\": false}'")
    assert "/v1/workspaces/here/incidents?state=open" in calls["List incidents"]
    assert "-d" not in calls["List incidents"]
