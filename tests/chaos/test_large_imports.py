"""Large imports at once: what the worker, the processes that read for it, and the API hold."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import httpx2
import pytest
from pydantic import SecretStr

from bench.memory import watched
from runtime.configuration.settings import Settings
from runtime.crypto import KeyRing
from tests.chaos.processes import SECRET, Workers
from tests.chaos.queries import fetch
from tests.support.engine import Engine
from tests.support.exploring import exploring
from tests.support.items import read
from tests.support.patience import ENOUGH, eventually
from tests.support.server import serving
from tests.support.spaces import Space, make_space

pytestmark = [pytest.mark.crash, pytest.mark.takes(seconds=30), pytest.mark.long]

AT_ONCE, MIB = 10, 50 if exploring() else 5
"""Imports, and what each holds: what one may, or a tenth of it."""
WORKER, API = 400 if exploring() else 300, 100
"""MiB beside what they hold idle. Four files are read at once, however many there are."""
WORDS = "some words that fill a cell and are none too easily packed "


def table(number: int) -> bytes:
    """CSV of this number of MiB, whose rows have 4 KB."""
    cells = [f"{number}-{row},{(WORDS + str(row)) * 60}" for row in range(MIB * 265)]
    return "\n".join(["title,words", *cells]).encode()


async def imported(client: httpx2.AsyncClient, space: Space, content: bytes) -> str:
    """The id of an import of a file that was uploaded for it."""
    headers = {"Authorization": f"Bearer {space.token}"}
    upload = {**headers, "Content-Type": "application/octet-stream"}
    answer = await client.post(
        f"{space.path}/files", params={"name": "rows.csv"}, content=content, headers=upload
    )
    file_id = read(answer, 201)["fileId"]
    body = {"label": "Large", "kind": "file", "fileId": file_id}
    answer = await client.post(f"{space.path}/imports", json=body, headers=headers)
    return str(read(answer)["id"])


async def test_ten_imports_at_once_take_no_more_memory_than_those_that_are_read(
    idle: Engine, workers: Workers, url: str, settings: Settings, tmp_path: Path
) -> None:
    store = (tmp_path / "objects").as_uri()
    given = {"database_url": SecretStr(url), "secret_key": SecretStr(SECRET), "object_store": store}
    spaces = [await make_space(idle.database, KeyRing([SECRET])) for _ in range(AT_ONCE)]
    contents = [await asyncio.to_thread(table, number) for number in range(AT_ONCE)]
    worker = await workers.start(WORKSPACE_OBJECT_STORE=store)
    await worker.ready()
    async with serving(settings.model_copy(update=given)) as server:
        pair = ([worker.process.pid], [server.pid])
        async with watched(pair[0]) as of_worker, watched(pair[1]) as of_api:
            async with httpx2.AsyncClient(base_url=server.url, timeout=ENOUGH) as client:
                coming = zip(spaces, contents, strict=True)
                runs = await asyncio.gather(*(imported(client, *each) for each in coming))
            await ended(url, runs)
    assert of_worker.growth < WORKER, f"the worker took {of_worker.growth:.0f} MiB"
    assert of_api.growth < API, f"the API took {of_api.growth:.0f} MiB"


async def ended(url: str, runs: Sequence[str]) -> None:
    """Return once all have ended well."""

    async def are_over() -> bool:
        query = "SELECT status FROM data_source_run WHERE id = ANY(%s::uuid[])"
        statuses = {status for (status,) in await fetch(url, query, list(runs))}
        assert statuses <= {"queued", "running", "succeeded"}
        return statuses == {"succeeded"}

    await eventually(are_over, what="the end of the imports")
