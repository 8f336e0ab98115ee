"""Resources of connections, read by the process that has the connections."""

import asyncio
from pathlib import Path
from uuid import UUID

import pytest

from activities.sources.fetchers import Access, FetchedResource, Fetchers, Wanted, WantedResource
from activities.sources.fetching import Fetched
from models.sources.data_sources.rules import DataSourceKind
from models.sources.tabular.rules.options import ErrorKind, SourceProblem, TableFormat
from runtime.crypto import KeyRing
from runtime.object_store import ObjectStore
from runtime.outbound.client import OutboundClient

WORKSPACE, USER, CONNECTION = UUID(int=1), UUID(int=2), UUID(int=3)
VERSION = {"version": "7"}
CONTENT = b"name\nApple\n"
WANTED = Wanted(
    WORKSPACE,
    USER,
    DataSourceKind.CONNECTION,
    {"connectionId": str(CONNECTION), "resource": {"externalId": "prices"}},
)


class Shelf:
    """Has one resource, in one version."""

    def __init__(self) -> None:
        self.asked: list[WantedResource] = []

    async def fetch(self, wanted: WantedResource, path: Path) -> FetchedResource:
        self.asked.append(wanted)
        if wanted.conditions == VERSION:
            return FetchedResource(TableFormat.CSV, unchanged=True)
        await asyncio.to_thread(path.write_bytes, CONTENT)
        return FetchedResource(TableFormat.CSV, VERSION)


def fetchers(outbound: OutboundClient, shelf: Shelf | None) -> Fetchers:
    keys = KeyRing(["a secret of the tests, long enough to be one"])
    return Fetchers(outbound, keys, ObjectStore("memory://"), shelf)


async def test_a_resource_is_read_for_who_asks_and_only_once(
    outbound: OutboundClient, tmp_path: Path
) -> None:
    shelf, kept = Shelf(), list[tuple[Path, Fetched]]()

    async def keep(path: Path, state: Fetched) -> None:
        kept.append((path, state))

    fetching = fetchers(outbound, shelf)
    first = await fetching.fetch(WANTED, Access(), tmp_path, keep, Fetched())
    [(path, state)] = kept
    assert (path.read_bytes(), state) == (CONTENT, first)
    assert (first.format, first.pages, first.bytes) == (TableFormat.CSV, 1, 11)
    again = Wanted(WORKSPACE, USER, WANTED.kind, WANTED.config, conditions=first.validators)
    second = await fetching.fetch(again, Access(), tmp_path, keep, Fetched())
    assert (second.unchanged, len(kept)) == (True, 1)
    assert await fetching.fetch(WANTED, Access(), tmp_path, keep, first) is first
    resource = {"externalId": "prices"}
    assert shelf.asked == [
        WantedResource(WORKSPACE, USER, CONNECTION, resource, conditions)
        for conditions in ({}, VERSION)
    ]


async def test_a_process_without_connections_reads_no_resources(
    outbound: OutboundClient, tmp_path: Path
) -> None:
    with pytest.raises(SourceProblem) as raised:
        await fetchers(outbound, None).sample(WANTED, Access(), tmp_path / "sample", 10)
    assert raised.value.kind is ErrorKind.AUTH
