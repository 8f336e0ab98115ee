"""Canaries in the console, without scripts: started at a share, promoted, rolled back."""

from typing import Any

import pytest
from fastapi import FastAPI

from models.core.access.rules import Role
from tests.support.automations import create, path_of, publish, read
from tests.support.client import Client
from tests.support.engine import graph, node
from tests.support.spaces import Space
from tests.support.visitor import Visitor, form_key, signed_in

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"


async def drafted(client: Client, space: Space) -> Any:
    """A published automation with an open draft."""
    made = await publish(
        client, space, label=HOSTILE, graph=graph(node("a", "transform", output={}))
    )
    changed = {"graph": graph(node("b", "transform", output={}))}
    return read(await client.patch(path_of(made), json=changed))


@pytest.mark.long
async def test_a_canary_is_started_and_promoted_by_forms(
    client: Client, app: FastAPI, owner: Visitor, space: Space
) -> None:
    made = await drafted(client, space)
    place = path_of(made).removeprefix("/v1")
    assert f'href="{place}/canary"' in (await owner.get(place)).text
    page = await owner.get(f"{place}/canary")
    assert "Draft, v2" in page.text
    fields = {"draftVersionId": made["draftVersionId"], "idempotencyKey": form_key(page)}
    for percent in ("", "much", "100", "0", "nan"):
        answer = await owner.send_form(
            f"{place}/canary", page=place, percent=percent, draftVersionId=made["draftVersionId"]
        )
        assert answer.status_code == 400
        assert 'class="fault"' in answer.text
    answers = [
        await owner.post(
            f"{place}/canary",
            data={"percent": "12.5", "csrfToken": await owner.token(place), **fields},
        )
        for _ in range(2)  # pressed twice
    ]
    assert [one.status_code for one in answers] == [303, 303]
    shown = (await owner.get(place)).text
    assert "Canary running: v2 gets 12.5 % of runs" in shown
    for _ in range(6):
        read(await client.post(f"{path_of(made)}/run", json={}))
    page = await owner.get(f"{place}/canary")
    assert "87.5 % of runs" in page.text
    assert f"automationVersionId={made['publishedVersionId']}&amp;status=queued" in page.text
    assert "<img" not in page.text
    user_id, _ = await space.member(Role.VIEWER)
    async with await signed_in(app, space, user_id) as viewer:
        page = await viewer.get(f"{place}/canary")
        assert "12.5 % of runs" in page.text
        assert f'action="{place}/canary/promote"' not in page.text
    answer = await owner.send_form(f"{place}/canary/promote", page=place)
    assert (answer.status_code, answer.headers["location"]) == (303, place)
    assert "Canary running" not in (await owner.get(place)).text
    found = read(await client.get(path_of(made)))
    assert found["publishedVersionId"] == made["draftVersionId"]


async def test_a_canary_is_rolled_back(client: Client, owner: Visitor, space: Space) -> None:
    made = await drafted(client, space)
    place = path_of(made).removeprefix("/v1")
    answer = await owner.send_form(f"{place}/canary", page=place, percent="50")
    assert answer.status_code == 303
    again = await owner.send_form(f"{place}/canary", page=place, percent="50")
    assert again.status_code == 409
    answer = await owner.send_form(f"{place}/canary/stop", page=place)
    assert answer.status_code == 303
    found = read(await client.get(path_of(made)))
    assert found["publishedVersionId"] == made["publishedVersionId"]
    assert (await owner.send_form(f"{place}/canary/stop", page=place)).status_code == 409
    page = await owner.get(f"{place}/canary")
    assert "v2, previously published" in page.text


async def test_without_a_published_version_the_page_says_so(
    client: Client, owner: Visitor, space: Space
) -> None:
    made = await create(client, space)
    place = path_of(made).removeprefix("/v1")
    assert "No published version" in (await owner.get(f"{place}/canary")).text
    assert "/canary" not in (await owner.get(place)).text
