"""Pages of data sources and imports: described, refreshed, followed, undone."""

import json
import re
from typing import Any

import pytest
from fastapi import FastAPI

from models.core.access.rules import Role
from tests.support.client import Client
from tests.support.items import read
from tests.support.related import make_database
from tests.support.spaces import Space
from tests.support.visitor import Visitor, signed_in

HOSTILE = "</pre><script>alert(1)</script>"
CONFIG = json.dumps({"url": "https://example.com/rows.json", "headers": {"X-Note": HOSTILE}})


async def make(owner: Visitor, space: Space, **fields: str) -> Any:
    page = f"/workspaces/{space.id}/data-sources/new"
    described = {"label": f"Orders {HOSTILE}", "kind": "http_json", "config": CONFIG, **fields}
    return await owner.send_form(f"/workspaces/{space.id}/data-sources", page, None, **described)


async def test_a_source_is_described_refreshed_cancelled_tried_again_and_removed(
    space: Space, owner: Visitor
) -> None:
    answer = await make(owner, space)
    assert answer.status_code == 303, answer.text
    path = answer.headers["location"]
    assert "Never synced" in (await owner.get(path)).text
    assert (await owner.send_form(f"{path}/refresh", path)).status_code == 303
    page = (await owner.get(path)).text
    (cancel,) = re.findall(r'action="([^"]+/cancel)"', page)
    assert (await owner.send_form(cancel, path)).status_code == 303
    (retry,) = re.findall(r'action="([^"]+/retry)"', (await owner.get(path)).text)
    assert (await owner.send_form(retry, path)).status_code == 303
    listed = (await owner.get(f"/workspaces/{space.id}/data-sources")).text
    assert path in listed
    assert HOSTILE not in page + listed
    assert (await owner.send_form(f"{path}/enable", path, None, enabled="false")).status_code == 303
    assert 'data-status="off"' in (await owner.get(f"/workspaces/{space.id}/data-sources")).text
    assert (await owner.send_form(f"{path}/delete", path)).status_code == 303
    assert (await owner.get(path)).status_code == 404


@pytest.mark.parametrize(
    ("field", "text", "words"),
    [
        ("config", "{", "JSON"),
        ("config", "[]", "config"),
        ("config", '{"url": "https://example.com", "depth": 1}', "depth"),
        ("kind", "carrier_pigeon", "kind"),
        ("label", "x" * 300, "label"),
        ("writeMode", "sometimes", "writeMode"),
    ],
)
async def test_each_error_is_shown_with_the_entered_values(
    space: Space, owner: Visitor, field: str, text: str, words: str
) -> None:
    answer = await make(owner, space, **{field: text})
    assert answer.status_code == 400
    assert words in answer.text
    assert HOSTILE not in answer.text
    assert 'action="' + f"/workspaces/{space.id}/data-sources" in answer.text
    typed = text if field == "label" else "Orders &lt;/pre&gt;"
    assert f'value="{typed}' in answer.text


async def test_a_database_that_is_closed_to_the_reader_is_not_named(
    app: FastAPI, client: Client, space: Space, owner: Visitor
) -> None:
    target = await make_database(client, space, "Payroll")
    path = (await make(owner, space)).headers["location"]
    made = f"{space.path}/data-sources/{path.rpartition('/')[2]}"
    read(await client.patch(made, json={"targetDatabaseId": target}))
    assert "Payroll" in (await owner.get(path)).text
    item = read(await client.get(f"{space.path}/databases/{target}"))["itemId"]
    closed = {"accessMode": "restricted"}
    assert (await client.patch(f"/v1/items/{item}", json=closed)).is_success
    viewer, _ = await space.member(Role.VIEWER)
    async with await signed_in(app, space, viewer) as reader:
        shown = await reader.get(path)
        assert (shown.status_code, "Payroll" in shown.text) == (200, False)


async def test_an_import_is_followed_and_cancelled(
    client: Client, space: Space, owner: Visitor
) -> None:
    body = {"label": "Prices", "kind": "inline", "format": "csv", "text": "name,price\nTea,3"}
    started = read(await client.post(f"{space.path}/imports", json=body))
    path = f"/workspaces/{space.id}/imports/{started['id']}"
    followed = (await owner.get(path)).text
    assert "data-refresh" in followed
    assert (await owner.send_form(f"{path}/cancel", path)).status_code == 303
    assert 'data-status="cancelled"' in (await owner.get(path)).text


async def test_pasted_rows_are_awaited(space: Space, owner: Visitor) -> None:
    page = f"/workspaces/{space.id}/import"
    previews = f"/workspaces/{space.id}/imports/previews"
    answer = await owner.send_form(previews, page, None, label="Prices", text="name,price\r\nTea,3")
    assert answer.status_code == 303, answer.text
    waiting = await owner.get(answer.headers["location"])
    assert ("data-refresh" in waiting.text, "noscript" in waiting.text) == (True, True)
    early = await owner.send_form(f"{answer.headers['location']}/start", page, None, label="Prices")
    assert early.status_code >= 400
    nothing = await owner.send_form(previews, page, None, label="Prices")
    assert (nothing.status_code, "paste rows" in nothing.text) == (400, True)
    wrong = await owner.send_form(previews, page, None, label="Prices", text="a", format="docx")
    assert wrong.status_code == 400


async def test_strangers_see_neither_sources_nor_imports(
    app: FastAPI, space: Space, foreign: Space, owner: Visitor
) -> None:
    path = (await make(owner, space)).headers["location"]
    async with await signed_in(app, foreign) as stranger:
        assert (await stranger.get(path)).status_code == 404
        assert (await stranger.send_form(f"{path}/refresh")).status_code == 404
        assert (await stranger.get(f"/workspaces/{space.id}/import")).status_code == 404
