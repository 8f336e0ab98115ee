"""Settings of an automation: its trigger in words, its webhook, its name, a copy, and its end."""

import re
from typing import Any

import pytest
from fastapi import FastAPI

from api.console.automations.settings import in_words
from models.automation.automations.rules.triggers.kinds import TriggerKind
from models.core.access.rules import Role
from tests.support.automations import DAY, create, path_of, read
from tests.support.client import Client
from tests.support.spaces import Space
from tests.support.visitor import Visitor, form_key, signed_in

HOSTILE = "<img src=x onerror=alert(1)>"


def page_of(made: Any) -> str:
    return path_of(made).removeprefix("/v1")


async def test_a_schedule_is_shown_with_its_next_ten_times(
    client: Client, space: Space, owner: Visitor
) -> None:
    config = {"kind": "schedule", "cron": "0 9 * * 1-5", "timezone": "Europe/Berlin"}
    made = await create(client, space, graph=DAY, triggerConfig=config)
    page = (await owner.get(f"{page_of(made)}/settings")).text
    assert "0 9 * * 1-5 (Europe/Berlin)" in page
    assert page.count("09:00 Europe/Berlin") == 10
    wrong = await create(client, space, graph=DAY, triggerConfig={**config, "cron": "0 9"})
    answer = await owner.get(f"{page_of(wrong)}/settings")
    assert (answer.status_code, 'class="fault"' in answer.text) == (200, True)


async def test_a_webhook_has_its_address_and_a_secret_that_is_shown_once(
    client: Client, space: Space, owner: Visitor
) -> None:
    made = await create(client, space, graph=DAY, triggerConfig={"kind": "webhook"})
    path = f"{page_of(made)}/settings"
    page = await owner.get(path)
    assert made["webhookPath"] in page.text
    assert made["webhookSecret"] not in page.text
    fields = {"idempotencyKey": form_key(page)}
    answer = await owner.send_form(f"{path}/webhook-secret", path, None, **fields)
    (secret,) = re.findall(r"whsec_[\w+/=]+", answer.text)
    assert answer.headers["cache-control"].startswith("no-store")
    assert secret == read(await client.get(path_of(made)))["webhookSecret"]
    assert secret != made["webhookSecret"]
    again = await owner.send_form(f"{path}/webhook-secret", path, None, **fields)
    assert secret in again.text, "a second press is the same one"
    assert secret not in (await owner.get(path)).text
    assert (await owner.get(f"{path}/webhook-secret")).status_code == 303


async def test_it_is_renamed_copied_and_deleted(
    client: Client, space: Space, owner: Visitor
) -> None:
    made = await create(client, space)
    path = page_of(made)
    answer = await owner.send_form(f"{path}/settings/rename", path, None, label=HOSTILE)
    assert answer.status_code == 303
    page = (await owner.get(answer.headers["location"])).text
    assert ("Saved" in page, HOSTILE in page) == (True, False)
    refused = await owner.send_form(f"{path}/settings/rename", path, None, label="")
    assert (refused.status_code, 'class="fault"' in refused.text) == (400, True)
    copy = await owner.send_form(f"{path}/duplicate", path)
    assert copy.status_code == 303
    assert read(await client.get(f"/v1{copy.headers['location']}"))["enabled"] is False
    assert (await owner.send_form(f"{path}/delete", path)).status_code == 303
    assert (await owner.get(path)).status_code == 404


async def test_readers_and_strangers_change_nothing(
    app: FastAPI, client: Client, space: Space, foreign: Space
) -> None:
    path = page_of(await create(client, space))
    viewer, _ = await space.member(Role.VIEWER)
    async with await signed_in(app, space, viewer) as reader:
        listed = (await reader.get(f"/workspaces/{space.id}/automations")).text
        assert "New automation" not in listed
        assert (await reader.get(f"/workspaces/{space.id}/automations/new")).status_code == 403
        assert (await reader.get(f"{path}/settings")).status_code == 403
        for form in ("settings/rename", "settings/webhook-secret", "duplicate", "delete"):
            assert (await reader.send_form(f"{path}/{form}")).status_code == 403
    async with await signed_in(app, foreign) as stranger:
        assert (await stranger.get(f"{path}/settings")).status_code == 404
        assert (await stranger.send_form(f"{path}/delete")).status_code == 404


@pytest.mark.parametrize("kind", TriggerKind)
def test_every_trigger_has_a_sentence(kind: TriggerKind) -> None:
    sentence = in_words({"kind": kind.value, "cron": "0 9 * * *"})
    assert sentence.endswith(".")
    assert in_words({"kind": "schedule", "intervalSeconds": 300}) == ("Runs every 5 min 00 s.")
