"""Duplicate item of a database: the job's copy, answered as an item."""

from uuid import uuid4

from tests.support.client import Client
from tests.support.engine import Engine
from tests.support.items import make, make_item, read, titles
from tests.support.spaces import Space


async def test_a_database_is_copied_with_its_records(
    client: Client, space: Space, engine: Engine
) -> None:
    assert engine.database is space.database
    folder = await make_item(client, "folder")
    made = await make(client, "database", "Goods", parentItemId=folder["id"], icon="📦")
    records = f"/v1/databases/{made['target']['id']}/records"
    for title in ("one", "two"):
        read(await client.post(records, json={"title": title}), 201)
    path = f"/v1/items/{made['item']['id']}/duplicate"
    headers = {"Idempotency-Key": uuid4().hex}
    copy = read(await client.post(path, headers=headers), 201)
    assert (copy["kind"], copy["parentItemId"], copy["icon"]) == ("database", folder["id"], "📦")
    assert read(await client.get(f"/v1/items/{copy['id']}")) == copy
    copied = read(await client.get(f"/v1/databases/{copy['targetId']}/records"))["records"]
    assert {one["title"] for one in copied} == {"one", "two"}
    assert read(await client.post(path, headers=headers), 201) == copy
    assert await titles(client, folder) == ["Goods", "Goods copy"]
