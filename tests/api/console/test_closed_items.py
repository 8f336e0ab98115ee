"""Ids in the query of a page name nothing that is closed to the reader."""

from collections.abc import Callable
from typing import Any

import pytest
from fastapi import FastAPI

from models.core.access.rules import Role
from tests.support.client import Client
from tests.support.items import read
from tests.support.related import make_database
from tests.support.spaces import Space
from tests.support.visitor import signed_in

Ids = dict[str, Any]
PAGES: dict[str, Callable[[Ids], str]] = {
    "parent of another kind": lambda ids: f"items?kind=page&parent={ids['item']}",
    "target of an import": lambda ids: f"import?database={ids['database']}",
    "automation of runs": lambda ids: f"runs?automationId={ids['automation']}",
}


@pytest.fixture
async def closed(client: Client, space: Space) -> Ids:
    """A database and an automation, closed to all but managers."""
    database = await make_database(client, space, "Payroll")
    shown = read(await client.get(f"{space.path}/databases/{database}"))
    made = {"label": "Payroll", "graph": {"nodes": [], "edges": []}}
    automation = read(await client.post(f"{space.path}/automations", json=made), 201)
    for item in (shown["itemId"], automation["itemId"]):
        answer = await client.patch(f"/v1/items/{item}", json={"accessMode": "restricted"})
        assert answer.is_success, answer.text
    return {"database": database, "item": shown["itemId"], "automation": automation["id"]}


@pytest.mark.parametrize("page", PAGES)
async def test_a_closed_item_is_not_named(
    app: FastAPI, space: Space, closed: Ids, page: str
) -> None:
    path = f"/workspaces/{space.id}/{PAGES[page](closed)}"
    async with await signed_in(app, space) as owner:
        assert "Payroll" in (await owner.get(path)).text
    editor, _ = await space.member(Role.EDITOR)
    async with await signed_in(app, space, editor) as reader:
        assert "Payroll" not in (await reader.get(path)).text
