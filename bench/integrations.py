"""Integrations: browsing a mirror, mounting many entries, importing a folder of files."""

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import botocore.session
from botocore.config import Config

from bench.figures import Figure
from bench.memory import watched
from bench.platform import Platform
from bench.reads import rate, records_table
from bench.rounds import Rounds
from runtime.ids import new_id

ENTRIES = 100
FEW, MANY = 1_000, 10_000
FILES = 1_000
MEMORY = 100.0
"""MiB that the worker may take above its idle memory, for any number of entries."""
BUCKET = "reports"
KEYS = {"accessKeyId": "anybody", "secretAccessKey": "any secret"}
_PAUSE = 0.02
_SERVER = f"""
from werkzeug.serving import make_server
from moto.core import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends
from moto.server import DomainDispatcherApplication, create_backend_app
stored = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
stored.create_bucket("{BUCKET}", "us-east-1")
for number in range({FILES}):
    stored.put_object("{BUCKET}", f"data/files/{{number:04}}.bin", b"a file" * 200)
app = DomainDispatcherApplication(create_backend_app)
server = make_server("127.0.0.1", 0, app, threaded=True)
print(f"http://127.0.0.1:{{server.server_port}}", flush=True)
server.serve_forever()
"""
"""An S3 server whose bucket has a folder of files."""


async def browse_rate(platform: Platform, rounds: Rounds, count: int) -> list[Figure]:
    """Requests a second: a page of a mirrored folder, and a page of as many records."""
    figure = Figure(
        f"browse {ENTRIES} mirrored entries vs list {ENTRIES} records", "1/s", at_least=0.5
    )
    database, _ = await records_table(platform)
    records = f"/v1/databases/{database}/records"
    body = {
        "connectionId": await _connection(platform, "demo", {"generated": ENTRIES}),
        "parentExternalId": "generated",
        "limit": ENTRIES,
    }
    path = f"{_workspace(platform)}/integrations/resources/browse"
    assert len((await platform.post(path, body))["resources"]) == ENTRIES
    for _ in rounds:
        figure.add(
            await rate(count, lambda: platform.http.post(path, json=body)),
            await rate(count, lambda: platform.http.get(records, params={"limit": ENTRIES})),
        )
    return [figure]


async def mount_growth(platform: Platform, rounds: Rounds) -> list[Figure]:
    """How the time of a recursive mount grows with its entries, and the worker's memory."""
    growth = Figure(f"mount of {MANY} vs {FEW} entries", "s", at_most=12)
    memory = Figure(f"memory of the worker beside idle, mount of {MANY}", "MiB", at_most=1.0)
    few, many = [await _connection(platform, "demo", {"generated": count}) for count in (FEW, MANY)]
    await _mounted(platform, few, FEW)
    for _ in rounds:
        floor = await _mounted(platform, few, FEW)
        async with watched([platform.worker_pid]) as of_worker:
            growth.add(await _mounted(platform, many, MANY), floor)
        memory.add(of_worker.growth, MEMORY)
    return [growth, memory]


async def import_of_files(platform: Platform, rounds: Rounds, scratch: Path) -> list[Figure]:
    """Files a second of a bucket: imported, and downloaded one by one by the S3 library."""
    figure = Figure(f"import of {FILES} files of a bucket vs botocore", "1/s", at_least=0.6)
    async with _bucket() as url:
        config = {"endpoint": url, "bucket": BUCKET, "prefix": "data/"}
        for _ in rounds:
            floor = FILES / await asyncio.to_thread(_copied, url, scratch)
            connection_id = await _connection(platform, "s3", config, KEYS)
            figure.add(FILES / await _imported(platform, connection_id), floor)
    return [figure]


def _workspace(platform: Platform) -> str:
    return f"/v1/workspaces/{platform.connection['workspaceId']}"


async def _connection(
    platform: Platform,
    provider: str,
    config: dict[str, Any],
    credentials: dict[str, str] | None = None,
) -> str:
    body: dict[str, Any] = {"provider": provider, "label": "Measured", "config": config}
    if credentials is not None:
        body["credentials"] = credentials
    path = f"{_workspace(platform)}/integrations/connections"
    return str((await platform.post(path, body))["id"])


def _folder(external_id: str) -> dict[str, Any]:
    return {
        "externalType": "folder",
        "externalId": external_id,
        "name": "Files",
        "surfaceKind": "folder",
        "capabilities": [],
    }


async def _mounted(platform: Platform, connection_id: str, entries: int) -> float:
    """Seconds until a new recursive mount, in a folder of its own, has all of its entries."""
    made = await platform.post("/v1/items", {"kind": "folder", "title": "Mounts"})
    body = {
        "connectionId": connection_id,
        "resource": _folder("generated"),
        "recursive": True,
        "parentItemId": made["item"]["id"],
    }
    started = time.perf_counter()
    path = f"{_workspace(platform)}/integrations/resources/mount"
    shown = (await platform.post(path, body))["mount"]
    while shown["syncing"]:
        await asyncio.sleep(_PAUSE)
        answer = await platform.http.get(f"{_workspace(platform)}/mounts/{shown['id']}")
        answer.raise_for_status()
        shown = answer.json()["data"]
    taken = time.perf_counter() - started
    assert (shown["status"], shown["entries"]) == ("active", entries), shown
    return taken


async def _imported(platform: Platform, connection_id: str) -> float:
    """Seconds until all files of the bucket are in the workspace."""
    body = {"connectionId": connection_id, "resource": _folder("files/")}
    headers = {"Idempotency-Key": str(new_id())}
    path = f"{_workspace(platform)}/integrations/resources/import"
    started = time.perf_counter()
    answer = await platform.http.post(path, json=body, headers=headers)
    answer.raise_for_status()
    shown = answer.json()["data"]
    of_job = f"{_workspace(platform)}/integrations/resource-imports/{shown['job']['id']}"
    while shown["job"]["status"] in {"queued", "running"}:
        await asyncio.sleep(_PAUSE)
        answer = await platform.http.get(of_job)
        answer.raise_for_status()
        shown = answer.json()["data"]
    taken = time.perf_counter() - started
    assert shown["imported"]["created"] == FILES + 1, shown
    return taken


@asynccontextmanager
async def _bucket() -> AsyncIterator[str]:
    """The URL of an S3 server whose bucket has a folder of files."""
    command = [sys.executable, "-c", _SERVER]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        url = (await asyncio.to_thread(process.stdout.readline)).strip()
        yield url
    finally:
        process.kill()
        process.wait()


def _client(url: str) -> Any:
    return botocore.session.Session().create_client(
        "s3",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id=KEYS["accessKeyId"],
        aws_secret_access_key=KEYS["secretAccessKey"],
        config=Config(s3={"addressing_style": "path"}),
    )


def _copied(url: str, scratch: Path) -> float:
    """Seconds of listing the folder and writing each of its files to a directory."""
    client, directory = _client(url), scratch / "copied"
    directory.mkdir(exist_ok=True)
    started = time.perf_counter()
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix="data/files/")
    names = [one["Key"] for page in pages for one in page["Contents"]]
    for name in names:
        content = client.get_object(Bucket=BUCKET, Key=name)["Body"].read()
        (directory / Path(name).name).write_bytes(content)
    assert len(names) == FILES
    return time.perf_counter() - started
