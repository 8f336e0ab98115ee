"""Forms of limits of outbound calls, without scripts."""

from typing import Any

import pytest
from fastapi import FastAPI

from models.core.access.rules import Role
from tests.support.automations import read
from tests.support.client import Client
from tests.support.spaces import Space
from tests.support.visitor import Visitor, signed_in


def place_of(space: Space) -> str:
    return f"/workspaces/{space.id}/integrations/outbound-limits"


async def limits(client: Client, space: Space) -> list[dict[str, Any]]:
    path = f"{space.path}/integrations/outbound-limits"
    listed: list[dict[str, Any]] = read(await client.get(path))["limits"]
    return listed


async def test_a_host_is_limited_the_limit_changed_and_removed(
    client: Client, owner: Visitor, space: Space
) -> None:
    place = place_of(space)
    assert "No limits" in (await owner.get(place)).text
    made = await owner.send_form(place, host="API.example.com", perSecond="0.5", atOnce="2")
    assert made.status_code == 303, made.text
    (limit,) = await limits(client, space)
    assert (limit["host"], limit["perSecond"], limit["atOnce"]) == ("api.example.com", 0.5, 2)
    own = f"{place}/{limit['id']}"
    assert f'href="{own}"' in (await owner.get(place)).text
    assert "0.5 per second, 2 concurrent" in (await owner.get(own)).text
    await owner.send_form(f"{own}/edit", perSecond="", atOnce="3")
    (limit,) = await limits(client, space)
    assert (limit.get("perSecond"), limit["atOnce"]) == (None, 3)
    await owner.send_form(f"{own}/delete")
    assert await limits(client, space) == []


async def test_a_connection_leads_to_its_limit(
    client: Client, owner: Visitor, space: Space
) -> None:
    body = {"provider": "demo", "label": "Theirs <"}
    path = f"{space.path}/integrations/connections"
    connection = read(await client.post(path, json=body), 201)["id"]
    page = (await owner.get(f"/workspaces/{space.id}/integrations/connections/{connection}")).text
    assert f"{place_of(space)}?connectionId={connection}" in page
    form = (await owner.get(f"{place_of(space)}?connectionId={connection}")).text
    assert f'value="{connection}" selected' in form
    await owner.send_form(place_of(space), connectionId=connection, atOnce="1")
    assert "Theirs &lt;" in (await owner.get(place_of(space))).text


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"host": "https://api.example.com", "atOnce": "1"}, "h-host"),
        ({"host": "api.example.com", "perSecond": "often"}, "h-perSecond"),
        ({"host": "api.example.com", "perSecond": "nan"}, "h-perSecond"),
        ({"host": "api.example.com", "atOnce": "0"}, "h-atOnce"),
        ({"host": "api.example.com"}, "h-perSecond"),
        ({"atOnce": "1"}, "h-host"),
    ],
)
async def test_each_error_is_shown_beside_its_field(
    client: Client, owner: Visitor, space: Space, fields: dict[str, Any], fault: str
) -> None:
    answer = await owner.send_form(place_of(space), **fields)
    assert answer.status_code == 400, answer.text
    assert 'class="fault">' in answer.text
    assert f'id="{fault}" class="fault"' in answer.text
    assert await limits(client, space) == []


async def test_a_member_who_may_not_change_sees_no_form(
    app: FastAPI, client: Client, space: Space
) -> None:
    body = {"host": "api.example.com", "atOnce": 1}
    path = f"{space.path}/integrations/outbound-limits"
    limit = read(await client.post(path, json=body), 201)["id"]
    user_id, _ = await space.member(Role.VIEWER)
    async with await signed_in(app, space, user_id) as viewer:
        page = (await viewer.get(f"{place_of(space)}/{limit}")).text
        assert "api.example.com" in page
        assert "/edit" not in page
        assert "Add limit" not in (await viewer.get(place_of(space))).text
