"""Lists, filters and counters read few rows, however much a workspace has behind it."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import psycopg
import pytest
import pytest_asyncio

from models.workspace.usage import settle_totals
from runtime.database import libpq_url
from tests.contract.furnished import Furnished
from tests.contract.operations import Operation, call, operations
from tests.support.document import DOCUMENT
from tests.support.plans import forget_rows, recorded_statements, rows_read

pytestmark = [pytest.mark.takes(seconds=60), pytest.mark.long]

MANY = 20_000
"""Rows of each table."""
MOST = MANY * 3 // 4
"""Rows that one statement reads at most: fewer than any look through the past reads, and more than
the ten thousand events that a page of the log looks through."""

_AGE = "make_interval(secs => n * 3600)"
_AGED = f"'id', uuidv7(-{_AGE}), 'created_at', now() - {_AGE}"
_ENDED = f"{_AGED}, 'completed_at', now() - {_AGE}"
_OWN = "workspace_id = %(place)s"
LEFT_BY_RUNS = {
    "automation_run": (_OWN, f"{_ENDED}, 'status', 'succeeded'"),
    "action_run": (_OWN, f"{_ENDED}, 'started_at', now() - {_AGE}, 'status', 'succeeded'"),
    "data_source_run": (f"{_OWN} AND data_source_id IS NOT NULL AND status = 'succeeded'", _ENDED),
    "job": (_OWN, f"{_ENDED}, 'status', 'succeeded'"),
    "delivery": (f"{_OWN} AND channel = 'webhook'", f"{_ENDED}, 'status', 'delivered'"),
    "notification": (_OWN, f"{_AGED}, 'read_at', now(), 'archived_at', now()"),
    "workspace_event": (
        f"{_OWN} AND audience_user_id IS NULL",
        "'seq', n * 0 + nextval('workspace_event_number')",
    ),
    "request_log": (_OWN, f"{_AGED}, 'method', 'GET'"),
    "record": (_OWN, f"{_AGED}, 'title', 'Record ' || n"),
    "record_change": (_OWN, f"{_AGED}, 'at', now() - {_AGE}"),
    "run_operation": (_OWN, f"{_ENDED}, 'status', 'succeeded'"),
    "change_set": (_OWN, f"{_ENDED}, 'status', 'rejected', 'sealed_credentials', null"),
    "legacy_import_run": ("status = 'cancelled'", _ENDED),
}
"""By table, the row of which there are many after a while, and what differs in each."""


@pytest_asyncio.fixture(scope="module")
async def grown(own: Furnished, database_url: str) -> AsyncIterator[Furnished]:
    """The furnished workspace with a long past, none of which its filters look for."""
    # A record that nothing changed has no row of history.
    for change in ("archive", "restore"):
        answer = await own.client.post(f"/v1/records/{own.ids['recordId']}/{change}")
        assert answer.is_success, answer.text
    async with await _connection(database_url) as connection:
        # Foreign keys and triggers have nothing to say about copies.
        await connection.execute("SET session_replication_role = replica")
        async with connection.transaction():
            cursor = await connection.execute("SELECT pg_current_xact_id()::text")
            ((transaction,),) = await cursor.fetchall()
            for table, (which, changed) in LEFT_BY_RUNS.items():
                copied = await connection.execute(
                    f"INSERT INTO {table} SELECT made.*"  # noqa: S608  # our own names
                    f" FROM (SELECT {table} AS one FROM {table} WHERE {which} LIMIT 1) first,"
                    f" generate_series(1, {MANY}) n,"
                    f" jsonb_populate_record(first.one, jsonb_build_object({changed})) made",
                    {"place": own.space.id},
                )
                assert copied.rowcount == MANY, table
        for table in LEFT_BY_RUNS:
            await connection.execute(f"VACUUM ANALYZE {table}")
    async with own.space.database.transaction() as work:
        while await settle_totals(work):
            pass
    yield own
    url = libpq_url(database_url)
    await forget_rows(url, "xmin::text = %s", transaction, LEFT_BY_RUNS)


async def _connection(url: str) -> psycopg.AsyncConnection[Any]:
    return await psycopg.AsyncConnection.connect(libpq_url(url), autocommit=True)


async def test_no_list_filter_or_counter_reads_the_past(
    grown: Furnished, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: dict[str, float] = {}
    async with await _connection(database_url) as connection:
        # Where a table is small, reading all of it is no sign of a look through it.
        await connection.execute("SET enable_seqscan = off")
        for operation, query in _questions():
            with recorded_statements(monkeypatch) as statements:
                await call(grown.client, operation, grown, query=query)
            rows = [await rows_read(connection, one) for one in statements]
            read[f"{operation.id} {query or ''}"] = max(rows, default=0)
    assert {name: rows for name, rows in read.items() if rows > MOST} == {}
    assert len(read) > 100, "of each list every filter"


def _questions() -> Iterator[tuple[Operation, dict[str, str]]]:
    for operation in operations():
        if operation.id.startswith("list_") or operation.id == "get_workspace_usage":
            yield operation, {}
            described = DOCUMENT["paths"][operation.path][operation.method]
            for parameter in described.get("parameters", []):
                if parameter["in"] == "query":
                    for value in _values(parameter["schema"]):
                        yield operation, {parameter["name"]: value}


def _values(schema: Any) -> Iterator[str]:
    """The values of a filter that has a few."""
    while "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    if schema.get("type") == "boolean":
        yield from ("true", "false")
    yield from schema.get("enum", [])
    for one in schema.get("anyOf", []):
        yield from _values(one)
