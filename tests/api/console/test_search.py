"""The search of the console: what it finds for whom."""

import pytest
from fastapi import FastAPI

from models.core.access.rules import Role
from tests.support.client import Client
from tests.support.related import make_database
from tests.support.spaces import Space
from tests.support.visitor import Visitor, signed_in

HOSTILE = "Zebra <b>&"


async def test_it_finds_pages_items_records_and_runs(
    client: Client, space: Space, owner: Visitor
) -> None:
    made = await make_database(client, space, HOSTILE)
    row = {"data": {"title": "Zebra one"}}
    record = (await client.post(f"/v1/databases/{made}/records", json=row)).json()["data"]["id"]
    path = f"/workspaces/{space.id}/search"
    shown = (await owner.get(f"{path}?q=zebra")).text
    assert f"/records/{record}" in shown
    assert "Zebra &lt;b&gt;&amp;" in shown
    (item,) = [part.split('"')[0] for part in shown.split('href="/items/')[1:]]
    led = await owner.get(f"/items/{item}")
    assert led.headers["location"] == f"/workspaces/{space.id}/databases/{made}"
    assert f"/workspaces/{space.id}/runs?status=failed" in (await owner.get(f"{path}?q=fail")).text
    assert f"/runs/{record}" in (await owner.get(f"{path}?q={record}")).text
    assert "No results" in (await owner.get(f"{path}?q=%25nothing")).text


async def test_a_database_is_found_beside_any_number_of_records_of_its_name(
    client: Client, space: Space, owner: Visitor
) -> None:
    made = await make_database(client, space, "Zebras")
    rows = [{"op": "create", "title": f"Zebra {n}"} for n in range(21)]
    answer = await client.post(f"/v1/databases/{made}/records/batch", json={"operations": rows})
    assert answer.is_success
    shown = (await owner.get(f"/workspaces/{space.id}/search?q=zebra")).text
    assert 'href="/items/' in shown
    assert shown.index('href="/items/') < shown.index('href="/records/')
    assert "Record in Zebras" in shown
    assert shown.count('href="/records/') == 20
    assert "Only the newest matches are listed." in shown
    assert (
        "newest matches" not in (await owner.get(f"/workspaces/{space.id}/search?q=zebra+2")).text
    )


async def test_a_part_of_the_page_is_enough_for_the_palette(space: Space, owner: Visitor) -> None:
    headers = {"HX-Request": "true", "HX-Request-Type": "partial"}
    part = await owner.get(f"/workspaces/{space.id}/search?q=run", headers=headers)
    assert part.text.lstrip().startswith("<ul")


@pytest.mark.parametrize("role", [Role.VIEWER, Role.GUEST])
async def test_it_names_nothing_that_the_reader_does_not_see(
    app: FastAPI, client: Client, space: Space, role: Role
) -> None:
    made = await make_database(client, space, "Payroll")
    item = (await client.get(f"{space.path}/databases/{made}")).json()["data"]["itemId"]
    await client.patch(f"/v1/items/{item}", json={"accessMode": "restricted"})
    user_id, _ = await space.member(role)
    async with await signed_in(app, space, user_id) as reader:
        shown = await reader.get(f"/workspaces/{space.id}/search?q=payroll")
        assert (shown.status_code, "/items/" in shown.text) == (200, False)
        assert "New database" not in (await reader.get(f"/workspaces/{space.id}/search")).text
        assert (await reader.get(f"/items/{item}")).status_code == 404


async def test_strangers_search_nothing(app: FastAPI, space: Space, foreign: Space) -> None:
    async with await signed_in(app, foreign) as stranger:
        assert (await stranger.get(f"/workspaces/{space.id}/search?q=a")).status_code == 404
