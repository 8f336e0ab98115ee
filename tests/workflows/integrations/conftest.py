"""A connection to the demo provider, and running workers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.client import Client
from tests.support.engine import Engine
from tests.support.patience import eventually
from tests.support.spaces import Space


@dataclass(frozen=True, slots=True)
class Demo:
    """A connection, and what a client does with it."""

    client: Client
    space: Space
    id: str

    async def call(self, verb: str, external_id: str, **body: Any) -> Any:
        """One of the operations on a resource; gives the answer."""
        resource = {
            "externalType": "any",
            "externalId": external_id,
            "name": "as a client says",
            "surfaceKind": "generic",
            "capabilities": [],
        }
        path = f"{self.space.path}/integrations/resources/{verb}"
        headers: Mapping[str, str] = body.pop("headers", {})
        sent = {"connectionId": self.id, "resource": resource, **body}
        return await self.client.post(path, json=sent, headers=headers)

    async def does(self, verb: str, external_id: str, **body: Any) -> Any:
        """The data of an operation that succeeds."""
        answer = await self.call(verb, external_id, **body)
        assert answer.is_success, answer.text
        return answer.json()["data"]

    async def browse(self, **body: Any) -> Any:
        path = f"{self.space.path}/integrations/resources/browse"
        return await self.client.post(path, json={"connectionId": self.id, **body})

    async def becomes(self, **config: Any) -> None:
        """What the provider holds, and withholds, from now on."""
        path = f"{self.space.path}/integrations/connections/{self.id}"
        answer = await self.client.patch(path, json={"config": config})
        assert answer.is_success, answer.text

    async def mount(self, mount_id: str) -> Any:
        answer = await self.client.get(f"{self.space.path}/mounts/{mount_id}")
        assert answer.is_success, answer.text
        return answer.json()["data"]

    async def synced(self, mount_id: str) -> Any:
        """A mount once its sync has ended."""

        async def over() -> bool:
            return not (await self.mount(mount_id))["syncing"]

        await eventually(over, what=f"the end of the sync of {mount_id}")
        return await self.mount(mount_id)

    async def sync(self, mount_id: str) -> Any:
        answer = await self.client.post(f"{self.space.path}/mounts/{mount_id}/sync")
        assert answer.is_success, answer.text
        return await self.synced(mount_id)


@pytest.fixture
async def demo(client: Client, space: Space, engine: Engine) -> Demo:
    assert engine.database is space.database
    body = {"provider": "demo", "label": "Demo"}
    made = await client.post(f"{space.path}/integrations/connections", json=body)
    assert made.status_code == 201, made.text
    return Demo(client, space, made.json()["data"]["id"])
