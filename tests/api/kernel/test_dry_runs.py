"""`Prefer: dry-run`: a request is answered as it would be, with its changes, and keeps nothing."""

from typing import Any

from tests.support.client import Client
from tests.support.spaces import Space

DRY = {"Prefer": "dry-run"}


async def make(client: Client, space: Space) -> str:
    """The path of the records of a new database."""
    body = {"label": "Things", "fields": [{"label": "Part", "kind": "number"}]}
    answer = await client.post(f"{space.path}/databases", json=body)
    assert answer.status_code == 201, answer.text
    return f"/v1/databases/{answer.json()['data']['id']}/records"


async def titles(client: Client, records: str) -> list[str]:
    answer = await client.post(f"{records}/query", json={})
    return [one["title"] for one in answer.json()["data"]["records"]]


async def test_a_created_record_is_answered_and_not_kept(client: Client, space: Space) -> None:
    records = await make(client, space)
    body: dict[str, Any] = {"title": "Bolt", "data": {"part": 7}}
    answer = await client.post(records, json=body, headers=DRY)
    assert answer.status_code == 201, answer.text
    assert answer.headers["Preference-Applied"] == "dry-run"
    tried = answer.json()
    assert tried["changes"]["counts"] == [
        {"kind": "record", "created": 1, "updated": 0, "deleted": 0, "restored": 0}
    ]
    (change,) = tried["changes"]["resources"]
    assert change["after"] == {"title": "Bolt", "part": 7, "archived": False}
    assert await titles(client, records) == []
    made = (await client.post(records, json=body)).json()
    assert "changes" not in made
    own = {"id", "createdAt", "updatedAt"}
    assert made["data"].keys() == tried["data"].keys()
    assert {k: v for k, v in made["data"].items() if k not in own} == {
        k: v for k, v in tried["data"].items() if k not in own
    }
