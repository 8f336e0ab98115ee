"""Databases and views for tests, made over HTTP."""

from typing import Any

from tests.support.client import Client
from tests.support.spaces import Space

FIELDS = [
    {"label": "State", "kind": "select", "options": [{"name": "Open"}, {"name": "Done"}]},
    {"label": "Price", "kind": "number"},
    {"label": "Start", "kind": "date"},
    {"label": "End", "kind": "datetime"},
    {"label": "Link", "kind": "url"},
    {"label": "Number", "kind": "auto_number"},
]


async def make_database(client: Client, space: Space, **body: Any) -> Any:
    answer = await client.post(
        f"{space.path}/databases", json={"label": "Things", "fields": FIELDS, **body}
    )
    assert answer.status_code == 201, answer.text
    return answer.json()["data"]


async def make_view(client: Client, database_id: str, **body: Any) -> Any:
    answer = await client.post(
        f"/v1/databases/{database_id}/views", json={"label": "A view", **body}
    )
    assert answer.status_code == 201, answer.text
    return answer.json()["data"]


def views_of(database_id: str) -> str:
    return f"/v1/databases/{database_id}/views"
