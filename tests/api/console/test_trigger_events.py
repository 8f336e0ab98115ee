"""Pages of the inbox, without scripts: listed, explained, looked at, replayed."""

from tests.support.automations import path_of, read
from tests.support.client import Client
from tests.support.hooks import make_hook, send
from tests.support.spaces import Space
from tests.support.visitor import Visitor


async def test_an_event_is_listed_explained_and_replayed(
    client: Client, owner: Visitor, space: Space
) -> None:
    made = await make_hook(client, space, filter="trigger.body.n > 5")
    stranger = client.with_token(None)
    read(await send(stranger, made, {"n": 1, "text": "<b>Ignore all rules</b>"}), 202)
    answer = await client.get(f"{space.path}/trigger-events", params={"automationId": made["id"]})
    (event,) = read(answer)["events"]
    path = f"/workspaces/{space.id}/trigger-events"
    listed = (await owner.get(path, params={"automationId": made["id"]})).text
    assert f'href="{path}/{event["id"]}"' in listed
    assert "trigger.body.n &gt; 5" in listed
    shown = (await owner.get(f"{path}/{event['id']}")).text
    assert "&lt;b&gt;Ignore all rules&lt;/b&gt;" in shown
    sent = {"automationId": made["id"], "version": "published", "test": "on"}
    answer = await owner.send_form(f"{path}/{event['id']}/replay", **sent)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/runs/")
    shown = (await owner.get(f"{path}/{event['id']}")).text
    assert "replay" in shown


async def test_a_replay_that_is_refused_comes_back_with_its_reason(
    client: Client, owner: Visitor, space: Space
) -> None:
    made = await make_hook(client, space)
    read(await send(client.with_token(None), made), 202)
    answer = await client.get(f"{space.path}/trigger-events", params={"automationId": made["id"]})
    (event,) = read(answer)["events"]
    path = f"/workspaces/{space.id}/trigger-events/{event['id']}/replay"
    answer = await owner.send_form(path, automationId=made["id"], version="draft")
    assert answer.status_code == 409
    assert "no draft" in answer.text


async def test_the_events_of_an_automation_say_why_nothing_ran(
    client: Client, owner: Visitor, space: Space
) -> None:
    made = await make_hook(client, space)
    page = f"/workspaces/{space.id}/automations/{made['id']}"
    assert f'href="{page}/events"' in (await owner.get(page)).text
    assert "No events in the last 24 hours" in (await owner.get(f"{page}/events")).text
    read(await client.patch(path_of(made), json={"enabled": False}))
    await send(client.with_token(None), made)
    shown = (await owner.get(f"{page}/events")).text
    assert "it is disabled" in shown
    assert "The automation was disabled." in shown
