"""Floods: one workspace asks for one thing as fast as its rate limits allow, in its own process.

`python -m bench.flooders NAME` reads a key and a workspace from its standard input, prepares the
flood, prints a line and continues until its input ends. Then it prints the numbers of its calls
that were done and that were refused. It heeds no refusal and no Retry-After.
"""

import asyncio
import base64
import json
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from itertools import count
from typing import Any

import httpx2

from bench.attacks import GROWING
from bench.endpoint import endpoint
from bench.graphs import THREE_QUICK

AT_ONCE = 4
"""Concurrent requests."""
FAILING_ENDPOINTS = 12
IMPORTED_ROWS = 12_000
"""Rows of a CSV of 600 KB."""
BATCH = 500
UPLOADED = bytes(50_000_000)
WEBHOOK_BODY = json.dumps({"text": "x" * 50_000}).encode()
RECORDS, FIELDS = 50_000, 10
OCTETS = {"Content-Type": "application/octet-stream"}
REFUSALS = frozenset({400, 409, 429, 502, 503, 504})
"""Any other answer than these and a success says that the flood is none."""
AFTER_WORK = frozenset({400, 502, 504})
"""Refusals after the work: of a formula that takes too long, of a server that does not answer."""

Call = Callable[[], Awaitable[httpx2.Response]]


class Flooder:
    """A client of one workspace."""

    def __init__(self, http: httpx2.AsyncClient, workspace_id: str) -> None:
        self._http = http
        self._place = f"/v1/workspaces/{workspace_id}"

    async def exports(self) -> Call:
        return lambda: self._http.post(f"{self._place}/workspace-exports", json={})

    async def sheets(self) -> Call:
        """Two exports at once, as many as a workspace has running."""
        path = f"/v1/databases/{await self._filled_database()}/export"
        return lambda: self._http.post(path, json={"format": "xlsx"})

    async def deliveries(self) -> Call:
        """Ordinary changes of a workspace whose endpoints fail."""
        failing = await endpoint(status=500).__aenter__()
        for _ in range(FAILING_ENDPOINTS):
            body = {"url": failing, "eventTypes": []}
            await self._made(f"{self._place}/webhook-endpoints", body)
        path = f"/v1/databases/{await self._database()}/records"
        return lambda: self._http.post(path, json={"title": "Flood"})

    async def imports(self) -> Call:
        rows = "".join(f"{number},{'y' * 40}\n" for number in range(IMPORTED_ROWS))
        content = base64.b64encode(f"number,text\n{rows}".encode()).decode()
        body = {"label": "Flood", "kind": "inline", "format": "csv", "content": content}
        path = f"{self._place}/data-sources/import-spreadsheet"
        numbers = count()
        return lambda: self._http.post(
            path, json={**body, "fields": [], "clientMutationId": f"flood-{next(numbers)}"}
        )

    async def batches(self) -> Call:
        path = f"/v1/databases/{await self._database()}/records/batch"
        body = {"operations": [{"op": "create", "title": f"Record {n}"} for n in range(BATCH)]}
        return lambda: self._http.post(path, json=body)

    async def uploads(self) -> Call:
        path = f"{self._place}/files"
        return lambda: self._http.post(
            path, params={"name": "flood.bin"}, content=UPLOADED, headers=OCTETS
        )

    async def runs(self) -> Call:
        path = f"{self._place}/automations/{(await self._published({}))['id']}/run"
        return lambda: self._http.post(path, json={})

    async def webhooks(self) -> Call:
        hook = await self._published({"triggerConfig": {"kind": "webhook", "auth": "none"}})
        headers = {"Content-Type": "application/json"}
        return lambda: self._http.post(hook["webhookPath"], content=WEBHOOK_BODY, headers=headers)

    async def queries(self) -> Call:
        """Searches in a text that has no index, with an aggregate over all that fits."""
        database_id = await self._filled_database()
        body = {
            "filter": {"field": "note", "op": "contains", "value": "99 1"},
            "sorts": [{"field": "note"}],
            "aggregates": [{"field": "note", "op": "count", "as": "n"}],
        }
        return lambda: self._http.post(f"/v1/databases/{database_id}/records/query", json=body)

    async def expressions(self) -> Call:
        """Runs whose expression takes all the processor time that one may."""
        output = {"x": {"type": "expression", "value": GROWING}}
        node = {"id": "n", "kind": "transform", "config": {"output": output}}
        flood = await self._published({"graph": {"nodes": [node], "edges": []}})
        return lambda: self._http.post(f"{self._place}/automations/{flood['id']}/run", json={})

    async def formulas(self) -> Call:
        """Saves of a formula that takes too long, which are refused."""
        path = f"/v1/databases/{await self._database()}/fields"
        settings = {"expression": GROWING, "resultKind": "text"}
        body = {"label": "Flood", "kind": "formula", "settings": settings}
        return lambda: self._http.post(path, json=body)

    async def previews(self) -> Call:
        """Previews of a server that does not answer."""
        silent = await endpoint(status=None).__aenter__()
        body = {"kind": "http_json", "config": {"url": silent}}
        return lambda: self._http.post(f"{self._place}/data-sources/preview", json=body)

    async def _filled_database(self) -> str:
        """A database of 50,000 records with ten fields."""
        names = ["title", "note", *(f"number{n}" for n in range(FIELDS - 2))]
        rows = "".join(
            ",".join([f"Record {row}", f"{row} " * 20, *(str(row + n) for n in range(FIELDS - 2))])
            + "\n"
            for row in range(RECORDS)
        )
        answer = await self._http.post(
            f"{self._place}/files",
            params={"name": "flood.csv"},
            content=f"{','.join(names)}\n{rows}".encode(),
            headers=OCTETS,
        )
        answer.raise_for_status()
        body = {
            "label": "Flood",
            "kind": "file",
            "fileId": answer.json()["data"]["fileId"],
            "fields": [],
            "clientMutationId": "filled",
        }
        imported = await self._made(f"{self._place}/data-sources/import-spreadsheet", body)
        return str(imported["databaseId"])

    async def _database(self) -> str:
        fields = [{"label": "Note", "kind": "long_text"}]
        body = {"label": "Flood", "fields": fields}
        return str((await self._made(f"{self._place}/databases", body))["id"])

    async def _published(self, more: dict[str, Any]) -> dict[str, Any]:
        body = {"label": "Flood", "enabled": True, "graph": THREE_QUICK, **more}
        made = await self._made(f"{self._place}/automations", body)
        return await self._made(f"{self._place}/automations/{made['id']}/publish", {})

    async def _made(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        while (answer := await self._http.post(path, json=body)).status_code in {409, 429}:
            await asyncio.sleep(1)
        assert answer.is_success, answer.text
        data: dict[str, Any] = answer.json()["data"]
        return data


FLOODS: Mapping[str, Callable[[Flooder], Awaitable[Call]]] = {
    "exports": Flooder.exports,
    "exports of 50,000 records": Flooder.sheets,
    "deliveries": Flooder.deliveries,
    "imports of 600 KB": Flooder.imports,
    "batches of 500": Flooder.batches,
    "uploads of 50 MB": Flooder.uploads,
    "runs": Flooder.runs,
    "webhooks of 50 KB": Flooder.webhooks,
    "queries over 50,000 records": Flooder.queries,
    "expressions": Flooder.expressions,
    "formulas": Flooder.formulas,
    "previews that hang": Flooder.previews,
}


async def main() -> None:
    """Flood until the input ends."""
    connection = json.loads(sys.stdin.readline())
    headers = {"Authorization": f"Bearer {connection['token']}"}
    async with httpx2.AsyncClient(
        base_url=connection["baseUrl"], headers=headers, timeout=120
    ) as http:
        call = await FLOODS[sys.argv[1]](Flooder(http, connection["workspaceId"]))
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        answers: Counter[bool] = Counter()
        over = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
        flood = [asyncio.create_task(_call_on(call, answers)) for _ in range(AT_ONCE)]
        first, rest = await asyncio.wait([over, *flood], return_when=asyncio.FIRST_COMPLETED)
        for task in first:
            task.result()
        for task in rest:
            task.cancel()
    sys.stdout.write(json.dumps({"done": answers[True], "refused": answers[False]}) + "\n")


async def _call_on(call: Call, answers: Counter[bool]) -> None:
    while True:
        try:
            answer = await call()
        except httpx2.TransportError:
            await asyncio.sleep(0.1)
            continue
        assert answer.is_success or answer.status_code in REFUSALS, answer.text
        is_done = answer.is_success or answer.status_code in AFTER_WORK
        answers[is_done] += 1
        if not is_done:
            await asyncio.sleep(0.02)


if __name__ == "__main__":
    asyncio.run(main())
