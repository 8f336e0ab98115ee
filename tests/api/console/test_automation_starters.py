"""Starters: each becomes an automation with its tables that can be published as it is."""

from collections.abc import Mapping

import pytest
from fastapi import FastAPI

from api.console.automations.starters import Place, Starter, filled, starters
from models.core.access.rules import Role
from tests.support.automations import read
from tests.support.client import Client
from tests.support.spaces import Space
from tests.support.visitor import Visitor, signed_in

HOSTILE = "<img src=x onerror=alert(1)>"
ALL: Mapping[str, Starter] = {
    key: one for group in starters().values() for key, one in group.items()
}
WITH_NODES = [key for key, one in ALL.items() if one.nodes]


async def begun(owner: Visitor, space: Space, key: str, **fields: str) -> str:
    """The path of an automation that a starter began."""
    home = f"/workspaces/{space.id}/automations"
    given = {"label": HOSTILE, "starter": key, **fields}
    answer = await owner.send_form(home, f"{home}/new?starter={key}", None, **given)
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"]).removesuffix("/edit")


def test_there_is_a_starter_for_many_jobs() -> None:
    assert len(ALL) >= 25
    assert sum(map(len, starters().values())) == len(ALL)
    assert all(one.title and one.says.endswith(".") for one in ALL.values())
    assert all(len(one.tables) <= 2 for one in ALL.values())


@pytest.mark.long
@pytest.mark.parametrize("key", WITH_NODES)
async def test_each_starter_can_be_published(
    client: Client, space: Space, owner: Visitor, key: str
) -> None:
    path = await begun(owner, space, key)
    made = read(await client.get(f"/v1{path}"))
    # The tests have no mail server, which is a warning of the nodes that send mail.
    assert all(one["severity"] == "warning" for one in made["referenceIssues"])
    assert made["label"] == HOSTILE
    assert made["trigger"] == ALL[key].trigger["kind"]
    assert "$" not in str(made["graph"]) + str(made["triggerConfig"])
    assert read(await client.post(f"/v1{path}/publish", json={}))["publishedVersionId"]
    for shown in (path, f"{path}/edit", f"{path}/run", f"{path}/settings"):
        assert HOSTILE not in (await owner.get(shown)).text
    databases = read(await client.get(f"/v1/workspaces/{space.id}/databases"))["databases"]
    assert len(databases) == len(ALL[key].tables)


async def test_the_gallery_leads_to_each_starter(space: Space, owner: Visitor) -> None:
    page = await owner.get(f"/workspaces/{space.id}/automations/new")
    for key in ALL:
        assert f"new?starter={key}" in page.text
    answer = await owner.get(f"/workspaces/{space.id}/automations/new?starter=nothing")
    assert answer.status_code == 400


async def test_a_name_that_is_refused_stays_in_the_form(
    client: Client, space: Space, owner: Visitor
) -> None:
    home = f"/workspaces/{space.id}/automations"
    fields = {"label": "x" * 600, "starter": "stock_alert", "firstTable": "new"}
    answer = await owner.send_form(home, f"{home}/new?starter=stock_alert", None, **fields)
    assert answer.status_code == 400
    assert "x" * 600 in answer.text
    assert 'value="stock_alert"' in answer.text
    for other in ({"label": ""}, {"label": "", "starter": "nothing"}):
        assert (await owner.send_form(home, f"{home}/new", None, **other)).status_code == 400
    # Neither the automation nor its table was created.
    databases = read(await client.get(f"/v1/workspaces/{space.id}/databases"))["databases"]
    assert databases == []


async def test_an_existing_table_is_used_by_the_names_of_its_fields(
    client: Client, space: Space, owner: Visitor
) -> None:
    fields = [
        {"key": "left", "label": "STOCK", "kind": "number"},
        {"key": "again", "label": "Order again", "kind": "checkbox"},
    ]
    made = read(
        await client.post(
            f"/v1/workspaces/{space.id}/databases", json={"label": HOSTILE, "fields": fields}
        ),
        201,
    )
    shown = await owner.get(f"/workspaces/{space.id}/automations/new?starter=stock_alert")
    assert (HOSTILE in shown.text, made["id"] in shown.text) == (False, True)
    path = await begun(owner, space, "stock_alert", firstTable=made["id"])
    found = read(await client.get(f"/v1{path}"))
    assert found["referenceIssues"] == []
    assert found["triggerConfig"]["databaseId"] == made["id"]
    assert found["triggerConfig"]["filter"]["field"] == "left"
    assert found["graph"]["nodes"][0]["config"]["data"] == {"again": True}


async def test_a_table_of_another_workspace_is_not_found(
    client: Client, space: Space, foreign: Space, owner: Visitor
) -> None:
    path = f"/v1/workspaces/{foreign.id}/databases"
    theirs = read(await client.with_token(foreign.token).post(path, json={"label": "Theirs"}), 201)
    home = f"/workspaces/{space.id}/automations"
    fields = {"label": "Mine", "starter": "stock_alert", "firstTable": theirs["id"]}
    answer = await owner.send_form(home, f"{home}/new?starter=stock_alert", None, **fields)
    assert answer.status_code == 400
    assert "Database not found" in answer.text


async def test_a_viewer_begins_nothing(app: FastAPI, space: Space) -> None:
    user_id, _ = await space.member(Role.VIEWER)
    async with await signed_in(app, space, user_id) as viewer:
        answer = await viewer.get(f"/workspaces/{space.id}/automations/new")
        assert answer.status_code == 403


def test_names_are_filled_in_at_every_depth_and_nothing_else() -> None:
    places = {"orders": Place("id", {"total": "sum"})}
    given = {
        "$orders.total": ["$orders", {"a": "x.$orders.total > 1"}],
        "cost": "$5, $unknown.total and $orders",
        "number": 1,
    }
    assert filled(given, places) == {
        "sum": ["id", {"a": "x.sum > 1"}],
        "cost": "$5, $unknown.total and id",
        "number": 1,
    }
