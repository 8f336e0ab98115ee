"""Pages of the inbox, without scripts: listed, explained, looked at, replayed."""

import re
from html import unescape
from typing import Any

import pytest

from tests.api.console.test_run_operations import hidden
from tests.support.automations import path_of, read
from tests.support.client import Client
from tests.support.hooks import make_hook, send
from tests.support.run_operations import carry_out
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


@pytest.mark.parametrize("of_one", [True, False])
async def test_all_events_of_a_filter_are_replayed_by_forms_alone(
    client: Client, owner: Visitor, space: Space, of_one: bool
) -> None:
    """From the list of one automation, and from that of the workspace with one chosen."""
    made = await make_hook(client, space, filter="trigger.body.n > 5")
    stranger = client.with_token(None)
    for number in (1, 2, 9):
        sent = {"n": number, "password": "hunter2"} if number == 1 else {"n": number}
        read(await send(stranger, made, sent), 202)
    base = f"/workspaces/{space.id}"
    page = f"{base}/automations/{made['id']}/events" if of_one else f"{base}/trigger-events"
    listed = (await owner.get(page, params={"outcome": "filtered"})).text
    form = listed[listed.index('aria-label="Replay"') :]
    form = form[: form.index("</form>")]
    fields: dict[str, Any] = hidden(form)
    assert fields["filter.outcome"] == "filtered"
    if not of_one:
        assert made["id"] in form
        refused = await owner.send_form(
            f"{base}/runs/operations/preview", action="replay", **fields, automationId=""
        )
        assert refused.status_code == 400
        assert "Choose the automation" in refused.text
        fields["automationId"] = made["id"]
    preview = await owner.send_form(f"{base}/runs/operations/preview", action="replay", **fields)
    assert preview.status_code == 200, preview.text
    for part in (
        "<h1>Replay events</h1>",
        "<b>2</b> events that reached",
        "<b>1 event lacks values that were not kept</b>",
        "<code>body.password</code>",
    ):
        assert part in preview.text
    confirmed: dict[str, Any] = hidden(preview.text[preview.text.index('class="card form"') :])
    assert confirmed["filter.until"]
    begun = await owner.send_form(
        f"{base}/runs/operations", **confirmed, version="published", test="on"
    )
    assert begun.status_code == 303, begun.text
    await _is_replayed(client, owner, space, begun.headers["location"])


async def _is_replayed(client: Client, owner: Visitor, space: Space, location: str) -> None:
    """Carry out the operation of two events, and read its page and those of its runs."""
    base = f"/workspaces/{space.id}"
    (operation,) = read(await client.get(f"{space.path}/run-operations"))["runOperations"]
    assert operation["replay"]["test"] is True
    await carry_out(space.database, operation)
    shown = (await owner.get(location)).text
    assert "<h1>Replay events</h1>" in shown
    assert "On the published version, as a test" in shown
    assert "2 succeeded" in shown
    events = re.findall(rf'href="{base}/trigger-events/([^"]+)"', shown)
    runs = re.findall(r'href="/runs/([^"]+)"><code>', shown)
    assert (len(events), len(runs)) == (2, 2)
    pages = [unescape((await owner.get(f"/runs/{run}")).text) for run in runs]
    assert sum("in place of values that were not kept" in one for one in pages) == 1
    assert "Replay 2 events" in (await owner.get(f"{base}/runs/operations")).text


async def test_the_page_of_an_event_says_which_values_were_not_kept(
    client: Client, owner: Visitor, space: Space
) -> None:
    made = await make_hook(client, space, filter="trigger.body.n > 5")
    read(await send(client.with_token(None), made, {"n": 1, "<b>token</b>": "t"}), 202)
    answer = await client.get(f"{space.path}/trigger-events", params={"automationId": made["id"]})
    (event,) = read(answer)["events"]
    shown = (await owner.get(f"/workspaces/{space.id}/trigger-events/{event['id']}")).text
    assert "These values were not kept." in shown
    assert "<code>body.&lt;b&gt;token&lt;/b&gt;</code>" in shown


async def test_a_paused_event_says_what_was_paused(
    client: Client, owner: Visitor, space: Space
) -> None:
    made = await make_hook(client, space)
    read(await client.post(f"{space.path}/pause", json={"reason": "Stocktaking"}))
    read(await send(client.with_token(None), made), 202)
    listed = (await owner.get(f"/workspaces/{space.id}/trigger-events")).text
    assert "The workspace was paused." in listed
