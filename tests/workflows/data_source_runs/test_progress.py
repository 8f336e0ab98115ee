"""How far a run has come, for users over HTTP and for operators in Temporal."""

import asyncio
import base64
import json
from typing import Any
from uuid import uuid4

import pytest
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import WorkflowExecutionStatus, WorkflowHandle

from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.client import Client
from tests.support.endpoint import Script, Serve, never, reply
from tests.support.engine import Engine
from tests.support.patience import eventually
from tests.support.spaces import Space

ROWS = 5_000
CSV = "code,price\n" + "".join(f"a{number},{number}\n" for number in range(ROWS))


def halved(answer: bytes, ready: asyncio.Event) -> Script:
    """An answer whose second half is held back until `ready`."""

    async def held(writer: asyncio.StreamWriter) -> None:
        half = len(answer) // 2
        writer.write(answer[:half])
        await writer.drain()
        await ready.wait()
        writer.write(answer[half:])
        await writer.drain()

    return held


@pytest.fixture
def read(client: Client, engine: Engine, space: Space) -> Any:
    """What stands under `data` of an answer; workers are running."""
    assert engine.database is space.database

    async def call(method: str, path: str, **given: Any) -> Any:
        answer = await client.request(method, path, **given)
        assert answer.status_code in {200, 201}, answer.text
        return answer.json()["data"]

    return call


@pytest.fixture
def source(read: Any, space: Space) -> Any:
    """Makes a data source of a CSV file at a URL."""

    async def make(url: str) -> Any:
        body = {"label": "Price list", "kind": "http_csv", "config": {"url": url}}
        return await read("POST", f"{space.path}/data-sources", json=body)

    return make


async def states(client: Client, run_id: str) -> list[Any]:
    """The data of the events `state` of a run until it ends; a stream that stops is read anew."""
    found: list[Any] = []
    while True:
        text = (await client.get(f"/v1/data-source-runs/{run_id}/events")).text
        for part in text.split("\n\n"):
            name, _, data = part.partition("\n")
            if name == "event: end":
                return found
            if name == "event: state":
                found.append(json.loads(data.removeprefix("data: ")))


async def details(handle: WorkflowHandle[Any, Any]) -> str:
    metadata = await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
    return str(metadata.current_details)


@pytest.mark.long
async def test_a_refresh_is_followed_from_its_first_bytes_to_its_counts(
    client: Client, space: Space, engine: Engine, serve: Serve, source: Any, read: Any
) -> None:
    ready = asyncio.Event()
    answer = reply(200, CSV, type_="text/csv")
    endpoint = await serve(halved(answer, ready))
    made = await source(endpoint.url)
    path = f"{space.path}/data-sources/{made['id']}"
    run = await read("POST", f"{path}/refresh", json={})
    assert run["pageUrl"] == f"/data-source-runs/{run['id']}"

    async def has_bytes() -> bool:
        shown = await read("GET", f"{path}/runs/{run['id']}")
        return bool(shown.get("progress", {}).get("bytes", 0))

    await eventually(has_bytes, what="the first bytes")
    shown = await read("GET", f"{path}/runs/{run['id']}")
    assert shown["progress"]["stage"] == "fetch"
    assert 0 < shown["progress"]["bytes"] < len(CSV), "in the middle of the page"
    assert shown["stats"]["bytesFetched"] == shown["progress"]["bytes"]
    handle = engine.client.get_workflow_handle(f"data-source-refresh/{run['id']}")
    assert "| fetch | ▶ running | - |" in await details(handle)
    following = asyncio.create_task(states(client, run["id"]))
    await asyncio.sleep(0)
    ready.set()
    told = await following
    assert told[0]["progress"]["stage"] == "fetch"
    assert (told[-1]["status"], told[-1]["progress"]) == (
        "succeeded",
        {"stage": "apply", "rows": ROWS, "bytes": len(CSV)},
    )
    stats = told[-1]["stats"]
    assert (stats["rowsInserted"], stats["bytesFetched"]) == (ROWS, len(CSV))
    described = await handle.describe()
    assert await described.static_summary() == "Refresh · Price list → Price list"
    # The row says its end before the execution has heard of it.
    await handle.result()
    shown = await details(handle)
    assert f"| fetch | ✔ succeeded | 1 pages, {len(CSV):,} bytes |" in shown
    assert f"| stage | ✔ succeeded | {ROWS:,} rows |" in shown
    assert f"| apply | ✔ succeeded | {ROWS:,} inserted, 0 updated" in shown


async def test_an_import_is_started_followed_and_named_after_what_goes_where(
    client: Client, space: Space, engine: Engine, read: Any
) -> None:
    content = base64.b64encode(CSV.encode()).decode()
    body = {"label": "Prices", "kind": "inline", "format": "csv", "content": content, "fields": []}
    begun = await read("POST", f"{space.path}/imports", json=body)
    assert begun["status"] in {"queued", "running"}
    told = await states(client, begun["id"])
    assert told[-1]["progress"] == {"stage": "apply", "rows": ROWS, "bytes": len(CSV)}
    ended = await read("GET", f"{space.path}/imports/{begun['id']}")
    assert ended["stats"]["bytesFetched"] == len(CSV)
    assert ended["result"]["recordCount"] == ROWS
    overview = await read("GET", f"/v1/data-source-runs/{begun['id']}")
    assert overview["title"] == "Import · csv of the request → Prices (new)"
    assert overview["databaseId"] == ended["result"]["databaseId"]
    workflow_id = WorkflowKind.SPREADSHEET_IMPORT.workflow_id(begun["id"])
    assert overview["metadata"]["temporal"]["workflowId"] == workflow_id
    described = await engine.client.get_workflow_handle(workflow_id).describe()
    assert await described.static_summary() == overview["title"]
    assert described.workflow_type == "SpreadsheetImport"


@pytest.mark.parametrize("by", ["api", "operator"])
async def test_a_cancelled_import_brings_nothing_in(
    space: Space, engine: Engine, serve: Serve, read: Any, by: str
) -> None:
    endpoint = await serve(never)
    body = {"label": f"Silent {uuid4().hex[:6]}", "kind": "url", "url": f"{endpoint.url}a.csv"}
    begun = await read("POST", f"{space.path}/imports", json={**body, "fields": []})
    await endpoint.reached.wait()
    handle = engine.client.get_workflow_handle(f"spreadsheet-import/{begun['id']}")
    if by == "api":
        ended = await read("POST", f"{space.path}/imports/{begun['id']}/cancel", json={})
        assert (ended["status"], ended["errorKind"]) == ("cancelled", "cancelled")
    else:
        await handle.cancel()

    async def over() -> bool:
        return (await handle.describe()).status is not WorkflowExecutionStatus.RUNNING

    await eventually(over, what="the end of the execution")
    assert (await handle.describe()).status is WorkflowExecutionStatus.CANCELED
    ended = await read("GET", f"{space.path}/imports/{begun['id']}")
    assert (ended["status"], ended["progress"]["stage"]) == ("cancelled", "fetch")
