"""Pauses in the console, without scripts: begun with a reason, ended at once or at a rate."""

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
    assert "1 runs rest" in shown
    assert "<b>Moving" not in shown
    assert "It is paused: runs are accepted, and rest." in (await owner.get(place)).text
    for rate in ("much", "0", "-1"):
        answer = await owner.send_form(f"{page}/resume", page=page, rate=rate)
        assert answer.status_code == 400
        assert 'role="alert"' in answer.text
    answer = await owner.send_form(f"{page}/resume", page=page, rate="60")
    assert answer.status_code == 303
    assert "at 60 runs a minute" in (await owner.get(page)).text
