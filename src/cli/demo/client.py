"""A client of one workspace for the demo: HTTP with an API key, as any client."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import httpx2

from cli.supervisor.errors import StartError

Json = dict[str, Any]

_BATCH = 500
"""Operations of one batch."""
_OPEN = {"queued", "running", "waiting"}


class WorkspaceClient:
    """Calls of one workspace; every refusal is a StartError that quotes the answer."""

    def __init__(self, base_url: str, api_key: str, workspace_id: str) -> None:
        self._http = httpx2.AsyncClient(
            base_url=base_url,
            headers={"Authorization": f"Bearer {api_key}"},
            trust_env=False,
            timeout=30,
        )
        self._workspace = f"/v1/workspaces/{workspace_id}"

    async def close(self) -> None:
        await self._http.aclose()

    async def create_database(self, label: str, fields: Sequence[Json]) -> str:
        """A new database; its id."""
        body = {"label": label, "fields": list(fields)}
        database = await self._call("POST", f"{self._workspace}/databases", body)
        return str(database["id"] if "id" in database else database["database"]["id"])

    async def create_records(self, database_id: str, rows: Sequence[Json]) -> None:
        """One record per row, so many in one call."""
        for first in range(0, len(rows), _BATCH):
            operations = [
                {"op": "create", "title": row.get("name"), "data": row}
                for row in rows[first : first + _BATCH]
            ]
            path = f"/v1/databases/{database_id}/records/batch"
            await self._call("POST", path, {"operations": operations})

    async def records(self, database_id: str) -> list[Json]:
        """The first records of a database."""
        answer = await self._call("GET", f"/v1/databases/{database_id}/records")
        return list(answer["records"])

    async def publish(self, label: str, graph: Json) -> str:
        """A published, enabled automation; its id."""
        body = {
            "label": label,
            "enabled": True,
            "triggerConfig": {"kind": "manual"},
            "graph": graph,
        }
        created = await self._call("POST", f"{self._workspace}/automations", body)
        automation_id = str(created["id"])
        await self._call("POST", f"{self._workspace}/automations/{automation_id}/publish", {})
        return automation_id

    async def run(self, automation_id: str) -> str:
        """Start a run; its id."""
        path = f"{self._workspace}/automations/{automation_id}/run"
        return str((await self._call("POST", path, {}))["id"])

    async def finished(self, automation_id: str, run_id: str, seconds: float) -> Json:
        """The run with its node runs once it has ended. Raises StartError when that is late."""
        path = f"{self._workspace}/automations/{automation_id}/runs/{run_id}"
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            run = await self._call("GET", path)
            if run["status"] not in _OPEN:
                return run
            await asyncio.sleep(0.5)
        raise StartError(f"The run did not end within {seconds:.0f} s.")

    async def _call(self, method: str, path: str, body: Json | None = None) -> Json:
        try:
            answer = await self._http.request(method, path, json=body)
        except httpx2.TransportError:
            raise StartError(f"The platform does not answer at {self._http.base_url}.") from None
        if answer.is_error:
            raise StartError(f"{method} {path} was answered {answer.status_code}: {answer.text}")
        data: Json = answer.json()["data"]
        return data
