"""Continuing a run without scripts: from a node, with other data, with an event."""

import json
import re
from html import unescape
from typing import Any

import pytest
from fastapi import FastAPI
from sqlalchemy import insert

from models.automation.automation_runs.tables import node_run
from models.automation.waits.store import run_wait
from models.core.access.rules import Role
from runtime.clock import utc_now
from tests.support.automations import create, path_of, publish, read
from tests.support.client import Client
from tests.support.spaces import Space
from tests.support.visitor import Visitor, signed_in

GRAPH: dict[str, Any] = {
    "nodes": [
        {"id": "read", "kind": "transform", "config": {"output": {"n": 1}}},
        {"id": "pay it", "kind": "transform", "config": {"output": {"n": 2}}},
    ],
    "edges": [{"from": "read", "to": "pay it"}],
}
WAITS = {"nodes": [{"id": "w", "kind": "wait_event", "config": {"eventKey": "paid"}}]}
HOSTILE = "<img src=x onerror=alert(1)>"


async def started(client: Client, made: Any, payload: Any) -> Any:
    return read(await client.post(f"{path_of(made)}/run", json={"triggerPayload": payload}))


def place(made: Any, run: Any) -> str:
    return f"{path_of(made).removeprefix('/v1')}/runs/{run['id']}"


@pytest.fixture
async def made(client: Client, space: Space) -> Any:
    graph = json.loads(json.dumps(GRAPH).replace("pay it", "pay"))
    graph["nodes"][1]["label"] = HOSTILE
    return await publish(client, space, graph=graph)


async def test_a_run_begins_at_a_node_with_what_was_typed(
    client: Client, owner: Visitor, made: Any
) -> None:
    run = await started(client, made, {"order": 7, "text": HOSTILE})
    path = f"{place(made, run)}/from-node"
    assert path in (await owner.get(f"/runs/{run['id']}")).text
    page = await owner.get(path, params={"nodeId": "pay"})
    assert '<option value="pay" selected>' in page.text
    assert "&#34;order&#34;: 7" in page.text
    assert "<img" not in page.text
    assert "run-from-node" in page.text, "the equal call"
    answer = await owner.send_form(
        path, page=path, nodeId="pay", payload='{"order": 8}', outputs='{"read": {"n": 5}}'
    )
    assert answer.status_code == 303
    begun = read(await client.get(f"/v1{answer.headers['location']}"))["run"]
    assert (begun["source"], begun["startNodeId"]) == ("from_node", "pay")
    assert (begun["replayOfRunId"], begun["triggerPayload"]) == (run["id"], {"order": 8})
    assert begun["automationVersionId"] == run["automationVersionId"]


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"nodeId": "gone"}, "has no node"),
        ({"nodeId": "pay", "payload": "{"}, "payload"),
        ({"nodeId": "pay", "outputs": "[]"}, 'id="h-outputs" class="fault">must be a JSON object'),
        ({"nodeId": "pay", "outputs": '{"gone": {}}'}, "has no node"),
        ({"nodeId": ""}, "nodeId"),
    ],
)
async def test_a_run_that_cannot_begin_is_reported_beside_the_entered_values(
    client: Client, owner: Visitor, made: Any, fields: dict[str, str], told: str
) -> None:
    run = await started(client, made, {})
    path = f"{place(made, run)}/from-node"
    body = {"payload": '{"typed": 1}', **fields, "csrfToken": await owner.token(path)}
    answer = await owner.post(path, data=body)
    assert answer.status_code == 400
    assert told in unescape(answer.text)
    assert body["payload"] in unescape(answer.text)


async def test_a_retry_takes_the_draft_where_there_is_one(
    client: Client, owner: Visitor, made: Any
) -> None:
    run = await started(client, made, {"order": 7})
    await client.post(f"{path_of(made)}/runs/{run['id']}/cancel", json={})
    assert '<option value="draft">' not in (await owner.get(f"/runs/{run['id']}")).text
    changed = {"graph": {"nodes": [GRAPH["nodes"][0]], "edges": []}}
    draft = read(await client.patch(path_of(made), json=changed))
    page = await owner.get(f"/runs/{run['id']}")
    assert '<option value="draft">' in page.text
    like = f"{path_of(made).removeprefix('/v1')}/run?like={run['id']}"
    assert like in unescape(page.text)
    assert "&#34;order&#34;: 7" in (await owner.get(like)).text
    fields: Any = {"from": "start", "version": "draft"}
    answer = await owner.send_form(f"{place(made, run)}/retry", page=f"/runs/{run['id']}", **fields)
    again = read(await client.get(f"/v1{answer.headers['location']}"))["run"]
    assert again["automationVersionId"] == draft["draftVersionId"]


async def test_the_payload_of_any_run_of_the_automation_is_offered_and_no_other(
    client: Client, owner: Visitor, space: Space, made: Any
) -> None:
    runs = [await started(client, made, {"order": number}) for number in range(7)]
    form = f"{path_of(made).removeprefix('/v1')}/run"
    assert "&#34;order&#34;: 0" in (await owner.get(f"{form}?like={runs[0]['id']}")).text
    other = await publish(client, space, graph=GRAPH | {"nodes": GRAPH["nodes"][:1], "edges": []})
    elsewhere = await started(client, other, {"secret": 1})
    assert (await owner.get(f"{form}?like={elsewhere['id']}")).status_code == 404


# ---- events


async def waiting(client: Client, space: Space, terms: dict[str, Any]) -> tuple[Any, Any]:
    """An automation, and a run whose node waits for an event."""
    made = await publish(client, space, graph=WAITS)
    run = await started(client, made, {})
    key = {"run_id": run["id"], "node_id": "w", "scope_key": "", "workspace_id": space.id}
    async with space.database.transaction() as work:
        await work.execute(
            insert(node_run).values(
                **key, node_kind="wait_event", status="waiting", attempt=1, started_at=utc_now()
            )
        )
        await work.execute(
            insert(run_wait).values(
                **key,
                kind="wait_event",
                workflow_id=f"automation-run/{run['id']}",
                event_key="paid",
                terms=terms,
                responses=[],
                created_at=utc_now(),
            )
        )
    return made, run


async def test_an_event_is_sent_to_a_node_that_waits(
    client: Client, app: FastAPI, owner: Visitor, space: Space
) -> None:
    terms = {"filter": "data.order == 7 && data.paid"}
    made, run = await waiting(client, space, terms)
    page = await owner.get(f"/runs/{run['id']}")
    assert "is waiting for event paid" in page.text
    assert "data.order == 7" in page.text
    (typed,) = re.findall(r'<textarea name="data"[^>]*>\n(.*?)</textarea>', page.text, re.DOTALL)
    assert json.loads(unescape(typed)) == {"order": None, "paid": None}
    user_id, _ = await space.member(Role.VIEWER)
    async with await signed_in(app, space, user_id) as viewer:
        assert "is waiting for event" not in (await viewer.get(f"/runs/{run['id']}")).text
    path = f"{place(made, run)}/nodes/w/event"
    answer = await owner.send_form(path, page=f"/runs/{run['id']}", data='{"order": 8}')
    assert answer.status_code == 400
    assert "order" in unescape(answer.text), "it comes back"
    answer = await owner.send_form(path, page=f"/runs/{run['id']}", data="[1]")
    assert answer.status_code == 400
    data = '{"order": 7, "paid": true}'
    answer = await owner.send_form(path, page=f"/runs/{run['id']}", data=data)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/runs/{run['id']}")
    assert "is waiting for event" not in (await owner.get(f"/runs/{run['id']}")).text
    answer = await owner.send_form(path, page=f"/runs/{run['id']}", data='{"order": 7}')
    assert answer.status_code == 409


async def test_a_draft_alone_makes_no_page_of_runs(
    client: Client, owner: Visitor, space: Space
) -> None:
    made = await create(client, space)
    missing = f"{path_of(made).removeprefix('/v1')}/runs/{space.id}/from-node"
    assert (await owner.get(missing)).status_code == 404
