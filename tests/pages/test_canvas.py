"""The canvas of an automation in a real browser: it is built, tested and mended without JSON."""

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from models.automation.automations.rules.graph.shapes import Graph
from tests.support.browser import Page
from tests.support.canvas import (
    CLIPBOARD,
    add_after,
    choose,
    draft,
    drag,
    edges,
    face,
    fill,
    is_there,
    keys,
    middle,
    one,
    opened,
    press,
    saved,
    tick,
    with_control,
)
from tests.support.endpoint import Serve, reply
from tests.support.engine import Json, graph, node
from tests.support.hooks import signed
from tests.support.patience import eventually
from tests.support.person import Person, axis, quoted, sign_in, violations
from tests.support.server import Server

pytestmark = [pytest.mark.takes(seconds=40)]

RANDOM_EDITS = (Path(__file__).parent / "random_edits.js").read_text()
HOSTILE = "</script><img src=x onerror=alert(1)>"


@pytest.mark.long
async def test_random_edits_leave_a_document_and_can_be_undone(
    page: Page, server: Server, person: Person
) -> None:
    await page.open(f"{server.url}/sign-in")
    kinds = ["transform", "http_request", "condition", "for_each", "approval"]
    found = await page.evaluate(f"({RANDOM_EDITS})({list(range(1, 41))}, 60, {kinds})")
    assert found["failures"] == []
    automation_id = await person.automation(small(), publish=False)
    path = f"{person.space.path}/automations/{automation_id}/validate"
    for document in found["documents"]:
        content = document["graph"]
        del content["unknown"]
        for part in [*content["nodes"], *content["edges"]]:
            part.pop("mystery", None)
            part.pop("odd", None)
        Graph.model_validate(content)
    # The API reads the result as a graph, and names its problems.
    issues = [
        (await person.call("POST", path, {"graph": one["graph"]}))["referenceIssues"]
        for one in found["documents"][:5]
    ]
    assert all(isinstance(one, list) for one in issues)


def reading() -> Json:
    """A graph whose second node reads the first in every way."""
    config = {
        "collect": "read",
        "expression": "nodes.read.total > 1 && nodes.reader.x",
        "text": {"type": "template", "value": 'nodes.read {{ nodes["read"].total }}'},
        "list": [
            {"type": "node", "value": "read[0]"},
            {"type": "node", "value": "reader.x"},
            {"type": "literal", "value": {"type": "node", "value": "read"}},
        ],
    }
    nodes = [
        {"id": "read", "kind": "transform", "config": {}},
        {
            "id": "use",
            "kind": "for_each",
            "config": config,
            "input": {"a": {"type": "node", "value": "read.total"}},
        },
    ]
    return {
        "nodes": nodes,
        "edges": [{"id": "e", "from": "read", "to": "use"}],
        "entryNodeIds": ["read"],
    }


@pytest.mark.long
async def test_ids_that_change_are_read_by_their_new_name(page: Page, server: Server) -> None:
    await page.open(f"{server.url}/sign-in")
    content = reading()
    change = "{ id: 'fetch order', kind: 'transform' }"
    renamed = await page.evaluate(
        "import('/pages/canvas/graph.js').then((g) => g.changeNode({ graph: "
        f"{json.dumps(content)}, trigger: {{}} }}, 'read', {change}).graph)"
    )
    first, second = renamed["nodes"]
    assert (first["id"], renamed["entryNodeIds"], renamed["edges"][0]["from"]) == (
        "fetch order",
        ["fetch order"],
        "fetch order",
    )
    assert second["input"] == {"a": {"type": "node", "value": "fetch order.total"}}
    assert second["config"] == {
        "collect": "fetch order",
        "expression": 'nodes["fetch order"].total > 1 && nodes.reader.x',
        "text": {"type": "template", "value": 'nodes.read {{ nodes["fetch order"].total }}'},
        "list": [
            {"type": "node", "value": "fetch order[0]"},
            {"type": "node", "value": "reader.x"},
            {"type": "literal", "value": {"type": "node", "value": "read"}},
        ],
    }


def small() -> Json:
    return graph(
        node("read", "transform", label="Read the order", output={"total": 42}),
        node("check", "condition", label="Is it large?", expression="nodes.read.total > 10.0"),
        node("tell", "transform", label="Tell", output={"told": True}),
        edges=[("read", "check"), ("check", "tell", "true")],
    )


async def built(page: Page, url: str, database_id: str) -> None:
    """Build an automation from nothing by the mouse."""
    await page.click(face(":trigger"))
    await choose(page, "#trigger-kind", "webhook")
    await add_after(page, ":trigger", "http_request")
    await fill(page, "config.url", url)
    await add_after(page, "http_request", "condition")
    await fill(page, "config.expression", "nodes.http_request.status == 200")
    await add_after(page, "condition", "approval", "True")
    await fill(page, "config.title", "Order it?")
    await choose(page, '[data-path="config.role"] select', "owner")
    await press(page, "More options")
    await tick(page, "config.allowSelf")
    await add_after(page, "approval", "create_record", "Approved")
    await choose(page, '[data-path="config.databaseId"] select', database_id)
    await fill(page, "config.title", "From the canvas")
    await add_after(page, "create_record", "notify")
    await fill(page, "config.title", "Ordered")
    await press(page, "Role")
    await choose(page, '[data-path="config.role"] select', "owner")
    await page.press("Escape")


async def called(person: Person, published: Json) -> Json:
    """Call the webhook of an automation, and approve what its run asks. The run that ended."""
    content = b'{"order": 1}'
    headers = {"Content-Type": "application/json", **signed(published["webhookSecret"], content)}
    async with httpx2.AsyncClient(base_url=person.server.url, trust_env=False) as http:
        answer = await http.post(published["webhookPath"], content=content, headers=headers)
    assert answer.status_code == 202, answer.text
    path = f"{person.space.path}/automations/{published['id']}/runs"

    async def waits() -> bool:
        runs = (await person.call("GET", path))["runs"]
        return [one["status"] for one in runs] == ["waiting"]

    await eventually(waits, "a run that waits for approval")
    run = (await person.call("GET", path))["runs"][0]
    await person.call("POST", f"{path}/{run['id']}/nodes/approval/resume", {"decision": "approved"})
    ended = await person.call("GET", f"{path}/{run['id']}?wait=30")
    return dict(ended)


@pytest.mark.long
async def test_an_automation_is_built_and_published_by_mouse(
    page: Page, person: Person, serve: Serve, screens: Path
) -> None:
    endpoint = await serve(reply(200, {"stock": 7}))
    space = person.space
    fields = [{"key": "name", "label": "Name", "kind": "text"}]
    database = await person.call(
        "POST", f"{space.path}/databases", {"label": "Orders", "fields": fields}
    )
    made = await person.call(
        "POST", f"{space.path}/automations", {"label": "From nothing", "enabled": True}
    )
    await opened(page, person, made["id"])
    await page.screenshot(screens / "canvas-0-nodes.png")
    await built(page, endpoint.url, database["id"])
    await saved(page)
    await page.screenshot(screens / "canvas-5-nodes.png")
    assert (await draft(person, made["id"]))["referenceIssues"] == []

    await press(page, "Publish")
    await page.until(
        "document.querySelector('dialog#publish .changes-of').innerText.includes('first version')"
    )
    await page.click("dialog#publish [type=submit]")
    await page.until("document.querySelector('dialog#publish') === null")
    published = await draft(person, made["id"])
    assert (published["version"], published["hasUnpublishedChanges"]) == (1, False)
    ended = await called(person, published)
    assert (ended["status"], ended.get("error")) == ("succeeded", None)
    records = (await person.call("GET", f"/v1/databases/{database['id']}/records"))["records"]
    assert [one["title"] for one in records] == ["From the canvas"]


@pytest.mark.long
async def test_nodes_are_added_connected_deleted_and_restored_by_keys(
    page: Page, person: Person
) -> None:
    automation_id = await person.automation(small(), publish=False)
    await opened(page, person, automation_id)
    await page.evaluate(f"{one(face('check'))}.focus()")
    await page.press("n")
    await page.until("document.activeElement.classList.contains('find-node')")
    await keys(page, *"delay", "Enter")
    await page.until(is_there("delay"))
    # It follows the focused node, by its first way that leads nowhere yet.
    await saved(page)
    assert ("check", "delay", "false") in await edges(person, automation_id)
    await page.press("Escape")
    await page.until("document.querySelector('.panel-of') === null")
    await page.until("document.activeElement.dataset.face === 'delay'")
    await page.press("c")
    await page.until("document.querySelector('dialog#connect') !== null")
    assert await page.evaluate(
        "[...document.querySelector('#connect .join select').options].map(o => o.value)"
    ) == ["tell"]
    await keys(page, "Tab", "Enter")
    await page.until(
        "document.querySelector('#connect .connections').innerText.includes('Delay → Tell')"
    )
    await page.press("Escape")
    await saved(page)
    assert ("delay", "tell", "always") in await edges(person, automation_id)


@pytest.mark.long
async def test_keys_move_delete_undo_and_redo(page: Page, person: Person) -> None:
    content = small()
    content["nodes"].append(node("delay", "delay", label="Delay", seconds=1))
    content["edges"] += [
        {"from": "check", "to": "delay", "outcome": "false"},
        {"from": "delay", "to": "tell", "outcome": "always"},
    ]
    automation_id = await person.automation(content, publish=False)
    await opened(page, person, automation_id)
    before = await edges(person, automation_id)
    await page.evaluate(f"{one(face('delay'))}.focus()")
    await page.press("ArrowRight")
    await page.until("document.activeElement.dataset.face === 'tell'")
    await page.press("ArrowLeft")
    await page.until("document.activeElement.dataset.face === 'check'")
    await page.evaluate(f"{one(face('delay'))}.focus()")
    await page.press("Delete")
    await page.until(f"!({is_there('delay')})")
    await saved(page)
    # What led to it leads to what followed.
    assert ("check", "tell", "false") in await edges(person, automation_id)
    await with_control(page, "z")
    await page.until(is_there("delay"))
    await saved(page)
    assert await edges(person, automation_id) == before
    await with_control(page, "z", shift=True)
    await page.until(f"!({is_there('delay')})")
    await with_control(page, "z")
    await page.until(
        "[...document.querySelectorAll('.button')].find(b => b.innerText === 'Undo').disabled"
    )
    await saved(page)
    content = (await draft(person, automation_id))["graph"]
    assert [one["id"] for one in content["nodes"]] == ["read", "check", "tell", "delay"]
    assert "position" not in content["nodes"][0]


async def places(person: Person, automation_id: str) -> dict[str, Any]:
    content = (await draft(person, automation_id))["graph"]
    return {each["id"]: each.get("position") for each in content["nodes"]}


@pytest.mark.long
async def test_nodes_are_dragged_and_connected_by_mouse(page: Page, person: Person) -> None:
    automation_id = await person.automation(small(), publish=False)
    await opened(page, person, automation_id)
    # The palette leaves a graph its room, until a node is asked for.
    assert not await page.evaluate(f"{one('.palette-of-nodes')}.checkVisibility()")
    await press(page, "Add node")
    canvas = await middle(page, ".flow")
    await page.evaluate(f"{one('[data-kind=delay]')}.scrollIntoView()")
    await drag(page, await middle(page, "[data-kind=delay]"), [canvas[0], canvas[1] + 220])
    await page.until(is_there("delay"))
    await page.press("Escape")
    await page.until("document.querySelector('.panel-of') === null")
    handle = '.step[data-node="check"] .vue-flow__handle[data-handleid="false"]'
    target = '.step[data-node="delay"] .vue-flow__handle-left'
    await drag(page, await middle(page, handle), await middle(page, target))
    await page.until(f"{one('.step[data-node=check] .more')} === null")
    await saved(page)
    assert ("check", "delay", "false") in await edges(person, automation_id)
    await page.until("document.querySelectorAll('.vue-flow__edge').length === 4")

    before = await places(person, automation_id)
    start = await middle(page, face("delay"))
    await drag(page, start, [start[0] + 60, start[1] + 40])
    await page.until("document.querySelector('.save-state').innerText !== 'Draft saved'")
    await saved(page)
    after = await places(person, automation_id)
    assert after["delay"]["x"] > before["delay"]["x"]
    assert {**after, "delay": None} == {**before, "delay": None}


@pytest.mark.long
async def test_a_node_that_is_dropped_into_a_loop_runs_in_it(page: Page, person: Person) -> None:
    items = {"type": "trigger", "value": "lines"}
    content = graph(
        node("loop", "for_each", label="Each line", items=items),
        node("mail", "transform", label="Mail", output={}),
        node("lone", "transform", label="Lone", output={}),
        edges=[("loop", "mail", "item")],
    )
    automation_id = await person.automation(content, publish=False)
    await opened(page, person, automation_id)
    await page.until("document.querySelectorAll('.step').length === 4")
    at = await middle(page, face("lone"))
    await drag(page, at, [at[0], at[1] - 40])
    await saved(page)
    assert await edges(person, automation_id) == [("loop", "mail", "item")]
    inside = (
        "(() => { const at = document.querySelector('.loop').getBoundingClientRect();"
        " return [at.x + at.width / 2, at.bottom - 30]; })()"
    )
    await drag(page, await middle(page, face("lone")), await page.evaluate(inside))
    await page.until("document.querySelector('.bars').innerText.includes('a part of the loop')")
    await saved(page)
    assert await edges(person, automation_id) == [
        ("loop", "mail", "item"),
        ("mail", "lone", "always"),
    ]
    # The place and the edge are one step.
    await press(page, "Undo")
    await saved(page)
    assert await edges(person, automation_id) == [("loop", "mail", "item")]


@pytest.mark.long
async def test_nodes_are_inserted_duplicated_and_tidied_by_mouse(
    page: Page, person: Person
) -> None:
    automation_id = await person.automation(small(), publish=False)
    await opened(page, person, automation_id)
    between = "Add a node between Read the order and Is it large?"
    await page.click(f".edge-tools .into[aria-label='{between}']")
    await page.until("document.activeElement.classList.contains('find-node')")
    await page.click("[data-kind=transform]")
    await page.until(is_there("transform"))
    await saved(page)
    assert await edges(person, automation_id) == [
        ("check", "tell", "true"),
        ("read", "transform", "always"),
        ("transform", "check", "always"),
    ]
    await page.press("Escape")
    await page.until("document.querySelector('.panel-of') === null")
    await with_control(page, "a")
    await press(page, "Duplicate")
    await page.until(is_there("check_2"))
    await saved(page)
    nodes = (await draft(person, automation_id))["graph"]["nodes"]
    names = ["read", "check", "tell", "transform"]
    assert [each["id"] for each in nodes] == [*names, *(f"{name}_2" for name in names)]
    assert nodes[5]["config"]["expression"] == "nodes.read_2.total > 10.0"
    apart = await places(person, automation_id)
    await press(page, "Tidy up")
    await page.until("document.querySelector('.save-state').innerText !== 'Draft saved'")
    await saved(page)
    assert await places(person, automation_id) != apart


@pytest.mark.long
async def test_nodes_are_copied_to_another_automation(page: Page, person: Person) -> None:
    first = await person.automation(small(), publish=False)
    second = await person.automation(graph(node("read", "transform", output={})), publish=False)
    await opened(page, person, first)
    await with_control(page, "a")
    text = await page.evaluate(f"{CLIPBOARD}('copy')")
    assert [one["id"] for one in json.loads(text)["nodes"]] == ["read", "check", "tell"]
    await opened(page, person, second)
    await page.evaluate(f"{CLIPBOARD}('paste', {json.dumps(text)})")
    await page.until(is_there("read_2"))
    await saved(page)
    found = (await draft(person, second))["graph"]
    assert [one["id"] for one in found["nodes"]] == ["read", "read_2", "check", "tell"]
    assert found["nodes"][2]["config"]["expression"] == "nodes.read_2.total > 10.0"
    assert await edges(person, second) == [
        ("check", "tell", "true"),
        ("read_2", "check", "always"),
    ]
    await page.evaluate(f"{CLIPBOARD}('paste', 'no nodes')")
    await page.until("document.querySelector('.bars').innerText.includes('no nodes')")
    await with_control(page, "a")
    await page.evaluate(f"{CLIPBOARD}('cut')")
    await page.until("document.querySelectorAll('.step').length === 1")


@pytest.mark.long
async def test_someone_elses_change_is_a_conflict(page: Page, person: Person) -> None:
    automation_id = await person.automation(small(), publish=False)
    path = f"{person.space.path}/automations/{automation_id}"
    await opened(page, person, automation_id)
    # Another label is no conflict.
    await person.call("PATCH", path, {"label": "Renamed"})
    await page.click(face("tell"))
    await fill(page, "label", "Mine")
    await saved(page)
    assert (await draft(person, automation_id))["graph"]["nodes"][2]["label"] == "Mine"
    theirs = graph(node("theirs", "transform", output={}))
    await person.call("PATCH", path, {"graph": theirs})
    await fill(page, "label", "Mine again")
    await page.until(f"{one('.canvas-bar.wrong')}.innerText.includes('changed this draft')")
    assert [one["id"] for one in (await draft(person, automation_id))["graph"]["nodes"]] == [
        "theirs"
    ]
    await press(page, "Keep mine")
    await saved(page)
    assert (await draft(person, automation_id))["graph"]["nodes"][2]["label"] == "Mine again"
    page.problems = [one for one in page.problems if "409" not in one]


@pytest.mark.long
async def test_a_test_shows_states_and_data_on_the_canvas(page: Page, person: Person) -> None:
    automation_id = await person.automation(small(), publish=False)
    await opened(page, person, automation_id)
    await press(page, "Test")
    await page.until("document.querySelector('dialog#test') !== null")
    assert "Nothing is sent or written" in await page.text("dialog#test")
    await page.click("dialog#test [type=submit]")
    await page.until(
        "document.querySelector('.canvas-bar[data-run]').dataset.status === 'succeeded'"
    )
    await page.until(f"{one('.step[data-node=tell]')}.dataset.status === 'succeeded'")
    await page.click(face("tell"))
    await page.until("document.querySelector('.panel-out').innerText.includes('told')")
    await page.until("document.querySelector('.panel-in').innerText.includes('42')")
    await page.press("Escape")
    await page.click('.canvas-bar [aria-label="Hide the run"]')
    await page.until(f"{one('.step[data-node=tell]')}.dataset.status === undefined")
    await page.click(face("check"))
    await page.press("Escape")
    await press(page, "Test up to here")
    await page.click("dialog#test [type=submit]")
    await page.until(
        "document.querySelector('.canvas-bar[data-run]').dataset.status === 'succeeded'"
    )
    assert (
        await page.evaluate(f"{one('.step[data-node=tell]')}.dataset.status ?? ''") != "succeeded"
    )
    await press(page, "Run this node")
    assert "Requests, messages and records are real." in await page.text("dialog#run")
    await page.click("dialog#run .primary")
    await page.until(
        "document.querySelector('.canvas-bar[data-run]').innerText.includes('from node')"
    )
    await page.until(
        "document.querySelector('.canvas-bar[data-run]').dataset.status === 'succeeded'"
    )


@pytest.mark.long
async def test_a_failed_run_is_mended_and_retried(
    page: Page, person: Person, serve: Serve, screens: Path
) -> None:
    endpoint = await serve(reply(200, {"stock": 7}))
    broken = await serve(reply(404, {"error": "moved"}))
    content = graph(
        node("read", "transform", label="Read the order", output={"total": 42}),
        node("call", "http_request", label="Ask the warehouse", url=broken.url),
        edges=[("read", "call")],
    )
    run_id = await person.run(content, {"order": 7})

    async def failed() -> bool:
        run = await person.call("GET", f"/v1/runs/{run_id}")
        return bool(run["run"]["status"] == "failed")

    await eventually(failed, "a failed run")
    await sign_in(page, person.server, person.space)
    await page.open(f"{person.server.url}/runs/{run_id}")
    await press(page, "Fix and run again")
    await page.until("document.getElementById('editor')?.dataset.ready === 'true'")
    await page.until(f"{one('.step[data-node=call]')}.dataset.status === 'failed'")
    # The node that failed is open, with its error, its input and the response.
    await page.until("document.querySelector('.panel-out .problem') !== null")
    assert "moved" in await page.text(".panel-out .code-field")
    assert "order" in await page.text(".panel-in")
    await page.screenshot(screens / "canvas-failed-run.png")
    await fill(page, "config.url", endpoint.url)
    await page.press("Escape")
    await press(page, "Retry from failed node")
    await page.until(f"document.querySelector('.canvas-bar[data-run]').dataset.run !== '{run_id}'")
    await page.until(
        "document.querySelector('.canvas-bar[data-run]').dataset.status === 'succeeded'"
    )
    assert len(endpoint.requests) == 1


def wide(nodes: int) -> Json:
    """A graph with this number of nodes, in branches of five."""
    names = [f"n{number}" for number in range(nodes)]
    links = [(names[(number - 1) // 2], names[number]) for number in range(1, nodes)]
    return graph(
        *(node(name, "transform", label=f"{HOSTILE} {name}", output={"a": 1}) for name in names),
        edges=links,
    )


@pytest.mark.long
@pytest.mark.parametrize("nodes", [60, 200])
async def test_a_large_graph_with_hostile_labels_is_usable(
    page: Page, person: Person, screens: Path, nodes: int
) -> None:
    automation_id = await person.automation(wide(nodes), publish=False, label=HOSTILE)
    await opened(page, person, automation_id)
    await page.until(f"document.querySelectorAll('.step').length === {nodes + 1}")
    for dark in (False, True):
        await page.show(dark=dark)
        await page.screenshot(screens / f"canvas-{nodes}-nodes-{'dark' if dark else 'light'}.png")
    assert await page.evaluate("document.querySelector('img') === null")
    last = face(f"n{nodes - 1}")
    await page.evaluate(f"{one(last)}.click()")
    await page.until("document.querySelector('.panel-of') !== null")
    await fill(page, "label", "Renamed")
    await page.until(f"{one(last + ' .label')}.innerText === 'Renamed'")
    await saved(page)
    await page.press("Escape")
    await page.show(width=390, height=780)
    await page.open(f"{person.home}/automations/{automation_id}/edit")
    await page.until(f"document.querySelectorAll('.step').length === {nodes + 1}")
    await page.screenshot(screens / f"canvas-{nodes}-nodes-390.png")
    assert await axis(page) <= 0
    await page.show()


@pytest.mark.long
async def test_the_libraries_are_loaded_by_the_editor_alone(
    page: Page, server: Server, person: Person
) -> None:
    automation_id = await person.automation(small())
    libraries = ("vue", "ace", "canvas/")
    own = f"{person.home}/automations/{automation_id}"
    await sign_in(page, server, person.space)
    for path in (
        person.home,
        f"{person.home}/automations",
        own,
        f"{own}/run",
    ):
        page.requests.clear()
        await page.open(path)
        names = [one.split("/")[-1] for one in page.requests]
        assert not [one for one in names if one.startswith(libraries)], path
        assert not [one for one in page.requests if "/canvas/" in one], path
    page.requests.clear()
    await opened(page, person, automation_id)
    assert {"vue.js", "vue-flow.js", "ace.js"} <= {one.split("/")[-1] for one in page.requests}


@pytest.mark.long
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_the_canvas_breaks_no_rule_of_accessibility(
    page: Page, person: Person, dark: bool
) -> None:
    automation_id = await person.automation(wide(12), publish=False)
    await page.show(dark=dark)
    await opened(page, person, automation_id)
    await page.until("document.querySelector('.vue-flow__minimap') !== null")
    assert await violations(page) == []
    await page.click(face(":trigger"))
    await page.until("document.querySelector('.panel-of') !== null")
    assert await violations(page) == []
    await page.press("Escape")
    for key, name in (("?", "canvas-shortcuts"), ("c", "connect")):
        await page.press(key)
        await page.until(f"{one(f'dialog#{name}')} !== null")
        assert await violations(page) == [], name
        await page.press("Escape")
        await page.until(f"{one(f'dialog#{name}')} === null")
    for label, name in (("Test", "test"), ("Publish", "publish")):
        await press(page, label)
        await page.until(f"{one(f'dialog#{name}')} !== null")
        assert await violations(page) == [], name
        await page.press("Escape")
        await page.until(f"{one(f'dialog#{name}')} === null")
    await page.show()


async def test_problems_are_said_once_at_their_fields_and_before_a_test(
    page: Page, person: Person
) -> None:
    trigger = {"kind": "record_matches"}
    content = graph(node("check", "condition", label="Large?", expression="1 >"))
    automation_id = await person.automation(content, publish=False, triggerConfig=trigger)
    await opened(page, person, automation_id)
    await page.click(face(":trigger"))
    required = one("[data-path='triggerConfig.databaseId'] .fault")
    await page.until(f"{required}.innerText === 'Required'")
    assert await page.evaluate(one(".panel-problems")) is None
    await page.press("Escape")
    await page.click(face("check"))
    said = "The expression does not compile at line 1, column 4: unexpected end"
    field = one("[data-path='config.expression']")
    await page.until(f"{field}.innerText.includes({quoted(said)})")
    await page.until(f"{one('.panel-of')}.innerText.split({quoted(said)}).length === 2")
    await page.press("Escape")
    await page.until("document.querySelector('.panel-of') === null")
    await press(page, "Test")
    await press(page, "Run test")
    await page.until(f"{one('.canvas-bar.wrong')} !== null")
    told = await page.text(".canvas-bar.wrong span")
    assert told.startswith("Fix these 3 problems first. "), told
    assert "Trigger: Database is required" in told
    assert f"Large?: Expression: {said}" in told
