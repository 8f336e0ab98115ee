"""The adapter of Airtable, against a server that answers as its Web API documentation says."""

import csv
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from activities.providers.adapter import ProblemKind
from activities.providers.airtable import AirtableAdapter
from runtime.outbound.client import OutboundClient
from tests.support.endpoint import reply
from tests.support.provider_asking import access, listed_ids, named, problem_of
from tests.support.provider_server import TOKEN, Asked, ProviderServer, provider_server

GIVEN = access({}, token=TOKEN)
FIELDS = [{"name": "Name"}, {"name": "Tags"}, {"name": "Done"}, {"name": "Files"}]
ROWS: list[dict[str, Any]] = [
    {"Name": f"Row {number}", "Tags": ["a", "b"], "Done": True, "Files": [{"url": "https://x/1"}]}
    for number in range(230)
]


def bases(asked: Asked) -> bytes:
    if "offset" not in asked.query:
        one = {"id": "app1", "name": "Sales", "permissionLevel": "create"}
        hidden = {"id": "app0", "name": "Hidden", "permissionLevel": "none"}
        return reply(200, {"bases": [one, hidden], "offset": "next"})
    return reply(200, {"bases": [{"id": "app2", "name": "Plans", "permissionLevel": "read"}]})


def records(asked: Asked) -> bytes:
    start = int(asked.query.get("offset", "itr/0").removeprefix("itr/"))
    page = [
        {"id": f"rec{start + n}", "fields": row} for n, row in enumerate(ROWS[start : start + 100])
    ]
    more = {"offset": f"itr/{start + 100}"} if start + 100 < len(ROWS) else {}
    return reply(200, {"records": page, **more})


ROUTES = {
    "GET /v0/meta/whoami": lambda _: reply(200, {"id": "usr1"}),
    "GET /v0/meta/bases": bases,
    "GET /v0/meta/bases/app1/tables": lambda _: reply(
        200,
        {"tables": [{"id": f"tbl{n}", "name": f"Table {n}", "fields": FIELDS} for n in range(3)]},
    ),
    "GET /v0/app1/tbl0": records,
    "GET /v0/app1/tbl1": lambda _: reply(200, {"records": [], "offset": "same"}),
}


@pytest_asyncio.fixture(scope="module")
async def server() -> AsyncIterator[ProviderServer]:
    async with provider_server(ROUTES) as server:
        yield server


@pytest.fixture
def airtable(outbound: OutboundClient, server: ProviderServer) -> AirtableAdapter:
    return AirtableAdapter(outbound, server.url)


async def test_bases_and_tables_are_listed(airtable: AirtableAdapter) -> None:
    await airtable.check(GIVEN)
    assert await listed_ids(airtable, GIVEN) == ["app1", "app2"]
    tables = await listed_ids(airtable, GIVEN, "app1", limit=2)
    assert tables == ["app1/tbl0", "app1/tbl1", "app1/tbl2"]
    found = await airtable.describe(GIVEN, named("base", "app2"))
    assert (found.name, found.canonical_url) == ("Plans", "https://airtable.com/app2")


async def test_a_table_is_rows_of_csv(airtable: AirtableAdapter, tmp_path: Path) -> None:
    table = await airtable.describe(GIVEN, named("table", "app1/tbl0"))
    assert (table.surface_kind.value, table.name) == ("database", "Table 0")
    read = await airtable.read(GIVEN, table)
    rows = list(csv.DictReader(read.content.splitlines()))
    assert (read.format.value, len(rows)) == ("csv", 230)
    assert rows[229] == {"Name": "Row 229", "Tags": "a, b", "Done": "true", "Files": "https://x/1"}
    target = tmp_path / "rows"
    done = await airtable.download(GIVEN, table, target, {})
    assert (target.read_bytes(), done.mime_type) == (read.content.encode(), "text/csv")


async def test_missing_resources_become_problems(
    airtable: AirtableAdapter, server: ProviderServer
) -> None:
    for external_id in ("app1/tbl9", "app9", "app1/../x"):
        kind = await problem_of(airtable.describe(GIVEN, named("table", external_id)))
        assert kind in {ProblemKind.GONE, ProblemKind.INVALID}
    circle = named("table", "app1/tbl1")
    assert await problem_of(airtable.read(GIVEN, circle)) is ProblemKind.MALFORMED
    server.first.append(reply(429, {"errors": []}))
    assert await problem_of(airtable.check(GIVEN)) is ProblemKind.RATE_LIMITED
    assert await problem_of(airtable.check(access({}, token="old"))) is ProblemKind.AUTH
