"""A page of a long log costs as much to who sees little of it as to who sees all."""

from typing import Any

import pytest

from models.core.access.rules import Scope
from models.workspace import feeds
from tests.support.client import Client
from tests.support.items import make_item, read
from tests.support.spaces import Space


async def pages(client: Client, space: Space, limit: int) -> list[list[dict[str, Any]]]:
    """All pages of a workspace's log: there is another while there is a cursor."""
    shown: list[list[dict[str, Any]]] = []
    cursor = ""
    while True:
        query = f"limit={limit}&cursor={cursor}" if cursor else f"limit={limit}"
        data = read(await client.get(f"{space.path}/events?{query}"))
        shown.append(data["events"])
        if (cursor := data["cursor"]) is None:
            return shown


async def test_a_reader_of_few_kinds_goes_through_a_log_in_bounded_steps(
    client: Client, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "LOOKED_THROUGH", 5)
    for number in range(12):
        await make_item(client, f"Page {number}")
    assert (await client.patch(space.path, json={"name": "Renamed"})).status_code == 200
    few = client.with_token(await space.key([Scope.WORKSPACE_READ]))
    stepwise = await pages(few, space, 100)
    assert len(stepwise) >= 3
    assert not stepwise[0]
    assert [one["type"] for page in stepwise for one in page] == ["workspace.updated"]
    whole = [one["seq"] for page in await pages(client, space, 3) for one in page]
    assert len(whole) >= 13
    assert whole == sorted(set(whole))
