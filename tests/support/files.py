"""Files over HTTP, as tests of the API make them, and a raw connection for what no client sends."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from sqlalchemy import func, select

from models.content.files.queries import file
from runtime.configuration.settings import Settings
from tests.support.client import Client
from tests.support.patience import ENOUGH
from tests.support.spaces import Space

Json = dict[str, Any]

BOUNDARY = b"----boundary"
FORM = "multipart/form-data; boundary=----boundary"


async def upload(
    client: Client, space: Space, content: bytes = b"content", **options: Any
) -> httpx2.Response:
    """Send a file as its bytes; `options` as for a POST."""
    return await client.post(f"{space.path}/files", content=content, **options)


async def stored(client: Client, space: Space, content: bytes = b"content", **options: Any) -> Json:
    """What the interface shows of a new file."""
    answer = await upload(client, space, content, **options)
    assert answer.status_code == 201, answer.text
    shown: Json = answer.json()["data"]
    return shown


def part(
    content: bytes = b"content",
    disposition: bytes = b'form-data; name="file"; filename="a.txt"',
    *headers: bytes,
) -> bytes:
    """One part of a form, with the boundary before it."""
    head = b"\r\n".join([b"Content-Disposition: " + disposition, *headers])
    return b"--" + BOUNDARY + b"\r\n" + head + b"\r\n\r\n" + content + b"\r\n"


END = b"--" + BOUNDARY + b"--\r\n"


def objects(settings: Settings) -> list[Path]:
    """What is in the object store, with what is only on its way."""
    directory = Path(settings.object_store.removeprefix("file://"))
    return [path for path in directory.rglob("*") if path.is_file()]


async def rows(space: Space) -> int:
    """The number of files of the workspace."""
    async with space.database.transaction() as work:
        counted = select(func.count()).where(file.c.workspace_id == space.id)
        return int(await work.scalar(counted))


async def chunks(*sizes: int) -> AsyncIterator[bytes]:
    """A body of zeros that arrives in pieces of these sizes."""
    for size in sizes:
        yield bytes(size)
        await asyncio.sleep(0)


@dataclass
class Wire:
    """A connection on which a test writes what it likes."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def head(self) -> str:
        """Status line and headers of the next answer."""
        async with asyncio.timeout(ENOUGH):
            return (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")

    async def close(self) -> None:
        """Leave at once, with data still in transit."""
        self.writer.transport.abort()
        with suppress(ConnectionError):
            await self.writer.wait_closed()


def request(path: str, token: str, *headers: str) -> bytes:
    """The head of an upload as bytes."""
    lines = [f"POST {path} HTTP/1.1", "Host: test", f"Authorization: Bearer {token}", *headers]
    return "\r\n".join([*lines, "", ""]).encode()
