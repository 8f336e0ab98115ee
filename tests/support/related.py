"""Databases that relations connect, made and filled over HTTP."""

from typing import Any

from tests.support.client import Client
from tests.support.spaces import Space

Json = dict[str, Any]


async def make_database(client: Client, space: Space, label: str, *fields: Json) -> str:
    """The id of a new database."""
    body = {"label": label, "fields": list(fields)}
    answer = await client.post(f"{space.path}/databases", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["data"]["id"])


async def add_field(client: Client, database_id: str, label: str, kind: str, **more: Any) -> Json:
    """A new field, as it is answered."""
    body = {"label": label, "kind": kind, **more}
    answer = await client.post(f"/v1/databases/{database_id}/fields", json=body)
    assert answer.status_code == 201, answer.text
    made: Json = answer.json()["data"]
    return made


async def relate(client: Client, one: str, other: str, label: str, **settings: Any) -> Json:
    """A relation field of one database into another; settings by their wire names."""
    given = {"databaseId": other, **settings}
    return await add_field(client, one, label, "relation", settings=given)


async def add(client: Client, database_id: str, title: str = "", **body: Any) -> str:
    """The id of a new record."""
    answer = await client.post(
        f"/v1/databases/{database_id}/records", json={"title": title, **body}
    )
    assert answer.status_code == 201, answer.text
    return str(answer.json()["data"]["id"])


async def change(client: Client, record_id: str, **body: Any) -> Json:
    """A record after a change."""
    answer = await client.patch(f"/v1/records/{record_id}", json=body)
    assert answer.status_code == 200, answer.text
    changed: Json = answer.json()["data"]
    return changed


async def get(client: Client, record_id: str) -> Json:
    """A record as it is."""
    answer = await client.get(f"/v1/records/{record_id}")
    assert answer.status_code == 200, answer.text
    found: Json = answer.json()["data"]
    return found


async def computed(client: Client, record_id: str) -> Json:
    """The computed values of a record."""
    values: Json = (await get(client, record_id))["computed"]
    return values


async def linked(client: Client, record_id: str, key: str) -> list[str]:
    """The records a relation field shows."""
    shown: list[str] = (await get(client, record_id))["relations"][key]
    return shown
