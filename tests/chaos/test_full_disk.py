"""A disk without room: writes are refused with 503, and what was accepted before is all there."""

import asyncio
import base64
import os
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
import pytest_asyncio
from psycopg import sql

from api.app import create_app
from cli.doctor_checks import Status, check_object_store
from runtime.configuration.settings import Settings
from runtime.crypto import KeyRing
from runtime.database import Database
from tests.support.automations import publish, read
from tests.support.client import Client, Contract
from tests.support.spaces import Space, make_space

pytestmark = pytest.mark.crash

Json = dict[str, Any]

MIB = 1024 * 1024
_SIZE = 96 * MIB
"""Room for a migrated database, and some."""
_LEFT = MIB // 2
"""What is left of it, for writes that are still accepted."""


@dataclass(frozen=True, slots=True)
class Disk:
    """A small file system of its own."""

    directory: Path

    def fill(self, left: int = _LEFT) -> None:
        """Leave this number of bytes."""
        usage = os.statvfs(self.directory)
        with (self.directory / "filler").open("wb") as filler:
            os.posix_fallocate(filler.fileno(), 0, usage.f_bavail * usage.f_frsize - left)

    def clear(self) -> None:
        """Give the room back."""
        (self.directory / "filler").unlink()


@pytest.fixture
def disk() -> Iterator[Disk]:
    # Not below pytest's directory, which PostgreSQL's account may not pass.
    with tempfile.TemporaryDirectory(prefix="workspace-disk-") as name:
        Path(name).chmod(0o711)
        mount = ["mount", "-t", "tmpfs", "-o", f"size={_SIZE},mode=0711", "tmpfs", name]
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"no small file system can be mounted here: {done.stderr.strip()}")
        yield Disk(Path(name))
        subprocess.run(["umount", name], check=True)  # noqa: S607


@pytest.fixture
def small(url: str, disk: Disk) -> Iterator[str]:
    """The URL of this module's database, whose tables are on the small disk meanwhile."""
    tablespace = disk.directory / "tables"
    name = sql.Identifier(f"small_{os.getpid()}")
    database = sql.Identifier(url.partition("?")[0].rpartition("/")[2])
    move = sql.SQL("ALTER DATABASE {} SET TABLESPACE {}")
    with psycopg.connect(url, dbname="postgres", autocommit=True) as server:
        [data] = server.execute("SHOW data_directory").fetchone() or ("",)
        tablespace.mkdir(mode=0o700)
        os.chown(tablespace, Path(data).stat().st_uid, -1)
        server.execute(
            sql.SQL("CREATE TABLESPACE {} LOCATION {}").format(name, sql.Literal(str(tablespace)))
        )
        server.execute(move.format(database, name))
        yield url
        server.execute(move.format(database, sql.Identifier("pg_default")))
        server.execute(sql.SQL("DROP TABLESPACE {}").format(name))


@pytest_asyncio.fixture
async def crammed(
    small: str, disk: Disk, settings: Settings, keys: KeyRing, contract: Contract
) -> AsyncIterator[tuple[Client, Space]]:
    """A client and a workspace of an API whose tables and objects are on the small disk."""
    objects = (disk.directory / "objects").as_uri()
    changed = settings.model_copy(update={"object_store": objects})
    database = Database(small, application="crammed")
    app = create_app(changed, database=database, background=())
    async with app.router.lifespan_context(app):
        space = await make_space(database, keys)
        async with Client(app, contract, space.token) as client:
            yield client, space
    await database.close()


@pytest.mark.long
async def test_writes_are_refused_and_nothing_accepted_is_lost(
    crammed: tuple[Client, Space], disk: Disk
) -> None:
    client, space = crammed
    body = {"label": "Notes", "fields": [{"key": "text", "label": "Text", "kind": "text"}]}
    made = read(await client.post(f"{space.path}/databases", json=body), 201)
    records = f"/v1/databases/{made['id']}/records"
    automation = await publish(client, space)
    runs = f"{space.path}/automations/{automation['id']}"
    files = f"{space.path}/files"

    accepted, stored, started = [
        await _until_refused(client, disk, path, request)
        for path, request in ((records, _note), (files, _file), (f"{runs}/run", _payload))
    ]

    listed = read(await client.get(records, params={"limit": 100}))["records"]
    assert {one["id"] for one in listed} == {one["id"] for one in accepted}
    listed = read(await client.get(files))["files"]
    assert {one["fileId"] for one in listed} == {one["fileId"] for one in stored}
    for one in stored:
        content = await client.get(one["downloadUrl"])
        assert (content.status_code, len(content.content)) == (200, one["byteSize"])
    listed = read(await client.get(f"{runs}/runs", params={"limit": 100}))["runs"]
    assert {one["id"] for one in listed} == {one["id"] for one in started}


async def _until_refused(
    client: Client, disk: Disk, path: str, request: Callable[[int], Json]
) -> list[Json]:
    """Write until there is no room, and once more when there is again: what was accepted."""
    accepted: list[Json] = []
    await asyncio.to_thread(disk.fill)
    for number in range(99):
        answer = await client.post(path, **request(number))
        if answer.is_error:
            break
        accepted.append(answer.json()["data"])
    assert accepted
    assert answer.status_code == 503, answer.text
    assert answer.json()["error"] == "unavailable"
    assert "is full, so nothing was saved." in answer.json()["message"]
    assert answer.headers["retry-after"]
    await asyncio.to_thread(disk.clear)
    answer = await client.post(path, **request(-1))
    assert answer.is_success, answer.text
    return [*accepted, answer.json()["data"]]


def _noise(size: int) -> str:
    """Text that cannot be compressed."""
    return base64.b64encode(os.urandom(size * 3 // 4)).decode()


def _note(number: int) -> Json:
    return {"json": {"title": f"note {number}", "data": {"text": _noise(9_900)}}}


def _payload(number: int) -> Json:
    return {"json": {"triggerPayload": {"number": number, "text": _noise(9_900)}}}


def _file(number: int) -> Json:
    return {
        "params": {"name": f"file {number}.bin"},
        "content": os.urandom(100_000),
        "headers": {"Content-Type": "application/octet-stream"},
    }


async def test_doctor_names_the_full_disk_of_the_object_store(
    disk: Disk, settings: Settings
) -> None:
    changed = settings.model_copy(update={"object_store": (disk.directory / "objects").as_uri()})
    assert (await check_object_store(changed)).status is Status.OK
    disk.fill(left=0)
    found = await check_object_store(changed)
    assert (found.fact, found.remedy) == ("its disk is full", "free disk space")
