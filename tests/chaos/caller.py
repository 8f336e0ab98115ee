"""A client that retries for ever and keeps a journal of the promises it got."""

import asyncio
import uuid
from collections import Counter
from collections.abc import Mapping
from typing import Any

import httpx2

from tests.support.patience import ENOUGH

Json = dict[str, Any]


class Caller:
    """Calls of one workspace; an answer that never came is asked for again with the same key."""

    def __init__(self, connection: Mapping[str, Any]) -> None:
        self._http = httpx2.AsyncClient(
            base_url=connection["baseUrl"],
            headers={"Authorization": f"Bearer {connection['apiKey']}"},
            trust_env=False,
            timeout=10,
        )
        self._workspace = f"/v1/workspaces/{connection['workspaceId']}"
        self.journal: dict[str, str] = {}
        """Run ids by Idempotency-Key: what was answered with 2xx."""
        self.troubles: Counter[str] = Counter()

    async def close(self) -> None:
        await self._http.aclose()

    async def create_database(self) -> str:
        body = {"label": "Effects", "fields": []}
        return str((await self._call(f"{self._workspace}/databases", body, None))["id"])

    async def publish(self, graph: Json) -> str:
        body = {"label": "Story", "enabled": True, "graph": graph}
        made = await self._call(f"{self._workspace}/automations", body, uuid.uuid4().hex)
        path = f"{self._workspace}/automations/{made['id']}/publish"
        await self._call(path, {}, uuid.uuid4().hex)
        return str(made["id"])

    async def run(self, automation_id: str) -> None:
        """Start a run and note its id."""
        key = uuid.uuid4().hex
        path = f"{self._workspace}/automations/{automation_id}/run"
        self.journal[key] = str((await self._call(path, {}, key))["id"])

    async def bring_in(self, body: Json, rows: list[Json]) -> Json:
        """Import rows and wait for the result; a repeated request continues the same import."""
        named = {**body, "rows": rows, "clientMutationId": uuid.uuid4().hex}
        return await self._call(f"{self._workspace}/data-sources/import-spreadsheet", named, None)

    async def _call(self, path: str, body: Json, key: str | None) -> Json:
        headers = {} if key is None else {"Idempotency-Key": key}
        async with asyncio.timeout(ENOUGH):
            while True:
                try:
                    answer = await self._http.post(path, json=body, headers=headers)
                except httpx2.TransportError as error:
                    self.troubles[type(error).__name__] += 1
                else:
                    if answer.is_success:
                        data: Json = answer.json()["data"]
                        return data
                    # A refusal would be a bug; a process that is away is what is tested.
                    code = answer.json()["error"]
                    assert code in {"unavailable", "in_progress"}, answer.text
                    self.troubles[code] += 1
                await asyncio.sleep(0.2)
