"""Pages that say what holds runs up, what fails, and what it is about."""

from fastapi import FastAPI

from models.core.access.rules import Role
from tests.support.ageing import make_automation
from tests.support.automations import publish, read
from tests.support.client import Client
from tests.support.incidents import failed_run, grouped, incident_of, open_incident
from tests.support.spaces import Space
from tests.support.visitor import Visitor, signed_in


async def test_a_run_under_a_pause_says_so_in_lists_and_on_its_page(
    client: Client, owner: Visitor, space: Space
) -> None:
    made = await publish(client, space, label="Orders")
    path = f"{space.path}/automations/{made['id']}"
    reason = {"reason": "The <shop> moves."}
    read(await client.post(f"{path}/pause", json=reason))
    run = read(await client.post(f"{path}/run", json={}))["id"]
    for page in (f"/workspaces/{space.id}/runs", f"/runs/{run}"):
        assert "Automation paused: The &lt;shop&gt; moves." in (await owner.get(page)).text
    read(await client.post(f"{path}/resume", json={}))
    resuming = "Automation paused (resuming)"
    assert resuming in (await owner.get(f"/runs/{run}")).text


async def test_the_side_counts_open_incidents_that_the_person_sees(
    app: FastAPI, client: Client, owner: Visitor, space: Space
) -> None:
    made = await publish(client, space, label="Orders")
    home = f"/workspaces/{space.id}"
    assert 'aria-label="1 open"' not in (await owner.get(home)).text
    incident_id = await open_incident(space, made["id"], "It fell.")
    assert 'aria-label="1 open"' in (await owner.get(home)).text
    item = read(await client.get(f"{space.path}/automations/{made['id']}"))["itemId"]
    restricted = {"accessMode": "restricted", "grants": []}
    read(await client.put(f"/v1/items/{item}/access", json=restricted))
    user_id, _ = await space.member(Role.EDITOR)
    async with await signed_in(app, space, user_id) as member:
        assert 'aria-label="1 open"' not in (await member.get(home)).text
    await owner.send_form(f"{home}/incidents/{incident_id}/close")
    assert 'aria-label="1 open"' not in (await owner.get(home)).text


async def test_an_incident_leads_to_the_records_that_the_person_sees(
    app: FastAPI, client: Client, owner: Visitor, space: Space
) -> None:
    body = {"label": "Orders", "fields": []}
    database = read(await client.post(f"{space.path}/databases", json=body), 201)
    path = f"/v1/databases/{database['id']}/records"
    record = read(await client.post(path, json={"title": "<b>Order 17</b>"}), 201)["id"]
    payload = {"record": {"id": record}}
    run_id = await failed_run(space, await make_automation(space), trigger_payload=payload)
    await grouped(space.database)
    incident_id = (await incident_of(space.database, run_id)).id
    page = f"/workspaces/{space.id}/incidents/{incident_id}"
    link = f'href="/records/{record}">&lt;b&gt;Order 17&lt;/b&gt;'
    assert link in (await owner.get(page)).text
    restricted = {"accessMode": "restricted", "grants": []}
    read(await client.put(f"/v1/items/{database['itemId']}/access", json=restricted))
    user_id, _ = await space.member(Role.EDITOR)
    async with await signed_in(app, space, user_id) as editor:
        closed = await editor.get(page)
    assert closed.status_code == 200
    assert record not in closed.text
