"""A line of a gigabyte: refused with a reason, and nowhere in memory as a whole."""

import asyncio
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from activities.sources.fetching import HttpSource, fetch_first_page
from models.sources.data_sources.rules import DataSourceKind
from models.sources.tabular.rules.options import ErrorKind, SourceProblem, TableFormat
from runtime.outbound.client import OutboundClient
from tests.activities.sources.test_hostile_files import described
from tests.support.endpoint import Script, Serve

pytestmark = pytest.mark.takes(seconds=30)

GIGABYTE = 1 << 30
PIECE = b"12345,7\t" * (1 << 17)
GROWTH = 64 << 20
"""Bytes that a process may grow by while a line passes through it."""
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/csv\r\n"


def endless(sent: list[int]) -> Script:
    """An answer of one line, made while it is sent."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + b"\r\n")
        while sum(sent) < GIGABYTE:
            writer.write(PIECE)
            sent.append(len(PIECE))
            await writer.drain()

    return answer


def compressed(sent: list[int]) -> Script:
    """The same line in a thousandth of the bytes."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        packing = zlib.compressobj(wbits=31)
        writer.write(HEAD + b"content-encoding: gzip\r\n\r\n")
        while sum(sent) < GIGABYTE:
            writer.write(packing.compress(PIECE))
            sent.append(len(PIECE))
            await writer.drain()
        writer.write(packing.flush())

    return answer


@asynccontextmanager
async def memory_is_bounded() -> AsyncIterator[None]:
    own = psutil.Process()
    before, peak = own.memory_info().rss, 0

    async def watch() -> None:
        nonlocal peak
        while True:
            peak = max(peak, own.memory_info().rss)
            await asyncio.sleep(0.01)

    watching = asyncio.create_task(watch())
    yield
    watching.cancel()
    assert peak - before < GROWTH, f"{(peak - before) >> 20} MiB"


@pytest.mark.long
@pytest.mark.parametrize("make", [endless, compressed])
async def test_a_line_that_a_server_makes_is_left_off_at_the_limit(
    tmp_path: Path, serve: Serve, outbound: OutboundClient, make: Callable[[list[int]], Script]
) -> None:
    sent: list[int] = []
    endpoint = await serve(make(sent))
    source = HttpSource(
        outbound, DataSourceKind.HTTP_CSV, {"url": endpoint.url}, {}, (), seconds=60
    )
    path = tmp_path / "page"
    async with memory_is_bounded():
        with pytest.raises(SourceProblem) as raised:
            await fetch_first_page(source, path)
    assert (raised.value.kind, raised.value.retryable) == (ErrorKind.TOO_LARGE, False)
    assert "larger than 104857600 bytes" in raised.value.message
    assert (await asyncio.to_thread(path.stat)).st_size <= 101 << 20


@pytest.mark.parametrize("file_format", [TableFormat.CSV, TableFormat.TSV, TableFormat.NDJSON])
@pytest.mark.parametrize("opening", [b"a,b\n1,", b'a,b\n1,"', b""])
async def test_a_line_in_a_file_is_read_no_further_than_a_row_may_be_long(
    tmp_path: Path, file_format: TableFormat, opening: bytes
) -> None:
    path = tmp_path / "file"
    with path.open("wb") as file:  # a file with a hole, made at once
        file.write(opening + b"x" * 100)
        file.seek(GIGABYTE)
        file.write(b"\n")
    async with memory_is_bounded():
        with pytest.raises(SourceProblem) as raised:
            await described(path, file_format)
    assert raised.value.kind in {ErrorKind.TOO_LARGE, ErrorKind.PARSE}
    assert raised.value.message
