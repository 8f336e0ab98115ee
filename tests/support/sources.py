"""Data sources as tests use them: rows behind a server, refreshes, and the records they make."""

from typing import Any
from uuid import uuid4

from tests.support.client import Client
from tests.support.endpoint import Answer, Endpoint, Serve, reply
from tests.support.patience import eventually
from tests.support.spaces import Space

FIELDS = [
    {"sourcePath": "code", "fieldKey": "code", "label": "Code", "kind": "text"},
    {"sourcePath": "name", "fieldKey": "title", "label": "Name", "kind": "text"},
    {"sourcePath": "price", "fieldKey": "price", "label": "Price", "kind": "number"},
]


def goods(*rows: tuple[str, str, float | None]) -> bytes:
    return reply(200, [{"code": code, "name": name, "price": price} for code, name, price in rows])


class Source:
    """A data source and the server it reads from."""

    def __init__(self, client: Client, space: Space, endpoint: Endpoint, created: Any) -> None:
        self.client, self.space, self.endpoint = client, space, endpoint
        self.id, self.target = created["id"], created["targetDatabaseId"]
        self.path = f"{space.path}/data-sources/{self.id}"

    def answers(self, *answers: Answer) -> None:
        self.endpoint.answers[:] = answers
        self.endpoint.requests.clear()

    async def refresh(self, **body: Any) -> Any:
        """A refresh that has ended."""
        asked = await self.client.post(f"{self.path}/refresh", json=body)
        assert asked.status_code == 200, asked.text
        return await self.ended(asked.json()["data"]["id"])

    async def ended(self, run_id: str) -> Any:
        async def over() -> bool:
            return (await self.run(run_id))["status"] not in {"queued", "running"}

        await eventually(over, what=f"the end of run {run_id}")
        return await self.run(run_id)

    async def run(self, run_id: str) -> Any:
        return (await self.client.get(f"{self.path}/runs/{run_id}")).json()["data"]

    async def records(self) -> dict[str, Any]:
        """The records of the target that are not archived, by code."""
        read = await self.client.get(f"/v1/databases/{self.target}/records?limit=100")
        return {one["data"]["code"]: one for one in read.json()["data"]["records"]}


async def make_source(client: Client, space: Space, serve: Serve, **changes: Any) -> Source:
    """A data source of JSON rows, keyed by their code."""
    endpoint = await serve(goods())
    body = {
        "label": f"Goods {uuid4().hex[:6]}",
        "kind": "http_json",
        "config": {"url": endpoint.url},
        "fields": FIELDS,
        "keyFields": ["code"],
        **changes,
    }
    created = await client.post(f"{space.path}/data-sources", json=body)
    assert created.status_code == 201, created.text
    return Source(client, space, endpoint, created.json()["data"])
