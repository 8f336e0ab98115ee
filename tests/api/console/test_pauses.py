"""Pauses in the console, without scripts: begun with a reason, ended at once or at a rate."""

import pytest

from tests.support.automations import path_of, publish, read
from tests.support.client import Client
from tests.support.spaces import Space
from tests.support.visitor import Visitor


async def test_an_automation_is_paused_and_resumed_by_forms(
    client: Client, owner: Visitor, space: Space
) -> None:
    made = await publish(client, space)
    place = path_of(made).removeprefix("/v1")
    page = f"{place}/pause"
    assert f'href="{page}"' in (await owner.get(place)).text
    answer = await owner.send_form(page, page=page, reason="<b>Moving</b>")
    assert answer.status_code == 303
    read(await client.post(f"{path_of(made)}/run", json={}))
    shown = (await owner.get(page)).text
    assert "1 run queued" in shown
    assert "<b>Moving" not in shown
    assert "Paused: new runs are queued." in (await owner.get(place)).text
    for rate in ("much", "0", "-1"):
        answer = await owner.send_form(f"{page}/resume", page=page, rate=rate)
        assert answer.status_code == 400
        assert 'role="alert"' in answer.text
    answer = await owner.send_form(f"{page}/resume", page=page, rate="60")
    assert answer.status_code == 303
    assert "at 60 runs per minute" in (await owner.get(page)).text


@pytest.mark.parametrize("subject", ["workspace", "connection"])
async def test_a_workspace_and_a_connection_are_paused_and_resumed_by_forms(
    client: Client, owner: Visitor, space: Space, subject: str
) -> None:
    page = f"{space.path.removeprefix('/v1')}/settings/pause"
    if subject == "connection":
        connections = f"{space.path}/integrations/connections"
        body = {"provider": "demo", "label": "Prices"}
        connection = read(await client.post(connections, json=body), 201)["id"]
        place = f"{connections}/{connection}".removeprefix("/v1")
        page = f"{place}/pause"
        assert f'href="{page}"' in (await owner.get(place)).text
    answer = await owner.send_form(page, page=page, reason="<b>Closing</b>")
    assert answer.status_code == 303
    shown = (await owner.get(page)).text
    assert "Paused since" in shown
    assert "<b>Closing" not in shown
    for rate in ("much", "0", "-1", "9" * 5_000):
        answer = await owner.send_form(f"{page}/resume", page=page, rate=rate)
        assert answer.status_code == 400
        assert 'role="alert"' in answer.text
    answer = await owner.send_form(f"{page}/resume", page=page, rate="60")
    assert answer.status_code == 303
    assert "Paused since" not in (await owner.get(page)).text


async def test_a_circuit_breaker_is_set_changed_and_removed_by_forms(
    client: Client, owner: Visitor, space: Space
) -> None:
    made = await publish(client, space)
    place = path_of(made).removeprefix("/v1")
    page = f"{place}/pause"
    assert "Not set up." in (await owner.get(page)).text
    for failures, seconds in (("5", "300"), ("3", "60")):
        path = f"{place}/circuit-breaker"
        answer = await owner.send_form(path, page=page, failures=failures, pauseSeconds=seconds)
        assert answer.status_code == 303
        breaker = read(await client.get(f"{path_of(made)}/circuit-breaker"))
        assert (breaker["failures"], breaker["pauseSeconds"]) == (int(failures), int(seconds))
    path = f"{place}/circuit-breaker"
    answer = await owner.send_form(path, page=page, failures="0", pauseSeconds="never")
    assert answer.status_code == 400
    assert 'value="never"' in answer.text
    answer = await owner.send_form(f"{place}/circuit-breaker/remove", page=page)
    assert answer.status_code == 303
    assert "Not set up." in (await owner.get(page)).text
