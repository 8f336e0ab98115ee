"""A client of one workspace for the demo: HTTP with an API key, as any client."""

import asyncio
import time
from collections.abc import Sequence

from cli.api_client import ApiClient, Json
from cli.supervisor.errors import StartError

_BATCH = 500
"""Operations of one batch."""
_OPEN = {"queued", "running", "waiting"}


class WorkspaceClient(ApiClient):
    async def create_database(
        self, label: str, fields: Sequence[Json], views: Sequence[Json] = ()
    ) -> str:
        """A new database; its id."""
        body = {"label": label, "fields": list(fields), "views": list(views)}
        database = await self.call("POST", f"{self.workspace}/databases", json=body)
        return str(database["id"] if "id" in database else database["database"]["id"])

    async def create_records(self, database_id: str, rows: Sequence[Json]) -> None:
        """One record per row, so many in one call."""
        for first in range(0, len(rows), _BATCH):
            operations = [
                {"op": "create", "data": {"title": row.get("name"), **row}}
                for row in rows[first : first + _BATCH]
            ]
            path = f"/v1/databases/{database_id}/records/batch"
            await self.call("POST", path, json={"operations": operations})

    async def records(self, database_id: str) -> list[Json]:
        """The first records of a database."""
        answer = await self.call("GET", f"/v1/databases/{database_id}/records")
        return list(answer["records"])

    async def publish(self, label: str, graph: Json) -> str:
        """A published, enabled automation; its id."""
        body = {
            "label": label,
            "enabled": True,
            "triggerConfig": {"kind": "manual"},
            "graph": graph,
        }
        created = await self.call("POST", f"{self.workspace}/automations", json=body)
        automation_id = str(created["id"])
        await self.call("POST", f"{self.workspace}/automations/{automation_id}/publish", json={})
        return automation_id

    async def run(self, automation_id: str, payload: Json | None = None) -> str:
        """Start a run; its id."""
        path = f"{self.workspace}/automations/{automation_id}/run"
        body = {} if payload is None else {"triggerPayload": payload}
        return str((await self.call("POST", path, json=body))["id"])

    async def finished(self, automation_id: str, run_id: str, seconds: float) -> Json:
        """The run with its node runs once it has ended. Raises StartError when that is late."""
        path = f"{self.workspace}/automations/{automation_id}/runs/{run_id}"
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            run: Json = await self.call("GET", path)
            if run["status"] not in _OPEN:
                return run
            await asyncio.sleep(0.5)
        raise StartError(f"The run did not end within {seconds:.0f} s.")
