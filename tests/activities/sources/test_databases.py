"""Queries of real PostgreSQL and MariaDB servers: what they give, and what they never do."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from activities.sources.database_process import DatabaseAddress, DatabaseQuery, write_rows
from activities.sources.fetchers import fetch_rows
from models.sources.connections.providers import ProviderName
from models.sources.tabular.rules.options import ErrorKind, SourceProblem
from runtime.outbound.client import OutboundClient
from runtime.outbound_policy import Address, OutboundPolicy, parse_address
from tests.support.foreign_databases import (
    PASSWORD,
    READER,
    ForeignDatabase,
)
from tests.support.patience import eventually

Row = dict[str, Any]


class Ask:
    """Asks a database, as its reader unless another user is named."""

    def __init__(self, outbound: OutboundClient, path: Path) -> None:
        self.outbound, self.path = outbound, path

    async def __call__(
        self,
        database: ForeignDatabase,
        text: str,
        *params: Any,
        user: str = READER,
        place: Row | None = None,
        **changes: Any,
    ) -> list[Row]:
        query = DatabaseQuery(
            address=DatabaseAddress(
                ProviderName(database.engine), **database.config(user, **(place or {}))
            ),
            params=params,
            text=text,
            **{
                "password": PASSWORD,
                "seconds": 20.0,
                "max_rows": 1_000,
                "max_bytes": 100_000,
                **changes,
            },
        )
        assert PASSWORD not in repr(query) or PASSWORD in text
        count = await fetch_rows(self.outbound, query, self.path, 60)
        rows = [json.loads(line) for line in self.path.read_bytes().splitlines()]
        assert len(rows) == count
        return rows

    async def problem(self, *asked: Any, **given: Any) -> SourceProblem:
        with pytest.raises(SourceProblem) as raised:
            await self(*asked, **given)
        assert PASSWORD not in raised.value.message
        return raised.value


@pytest.fixture
def ask(outbound: OutboundClient, tmp_path: Path) -> Ask:
    return Ask(outbound, tmp_path / "rows")


@pytest.mark.long
async def test_values_of_postgresql_keep_what_they_say(
    ask: Ask, postgresql: ForeignDatabase
) -> None:
    text = """
        SELECT $1 || 'ß🍎' AS text, 12345678901234567890.10::numeric AS exact,
            9007199254740993 AS big, true AS yes, NULL AS none, 'NaN'::float8 AS nan,
            '\\x00ff'::bytea AS bytes, date '2026-02-03' AS day, date 'infinity' AS never,
            '{"a": [1]}'::jsonb AS json, timestamptz '2026-02-03 04:05:06+02' AS moment,
            interval '26:00:01' AS span, 1 AS text
    """
    assert await ask(postgresql, text, "a") == [
        {
            "text": "aß🍎",
            "exact": "12345678901234567890.10",
            "big": 9007199254740993,
            "yes": True,
            "none": None,
            "nan": "NaN",
            "bytes": "00ff",
            "day": "2026-02-03",
            "never": "infinity",
            "json": {"a": [1]},
            "moment": "2026-02-03T02:05:06Z",
            "span": "26:00:01",
            "text (2)": 1,
        }
    ]


EXACT = {
    "'infinity'::float8": "Infinity",
    "'-infinity'::float4": "-Infinity",
    "'NaN'::numeric": "NaN",
    "ARRAY['NaN'::float8, 1]": ["NaN", 1],
    "time '24:00'": "24:00:00",
    "timetz '24:00+02'": "24:00:00+02",
    "timetz '10:00+02:30:15'": "10:00:00+02:30:15",
    "interval '1 mon'": "1 mon",
    "interval '1 year 2 days'": "1 year 2 days",
    "interval '-1:30'": "-01:30:00",
    "interval '1.5 s'": "00:00:01.5",
    "interval '-0.25 s'": "-00:00:00.25",
    "interval '400 days'": "9600:00:00",
    "ARRAY[interval '1 mon', interval '2:00']": ["1 mon", "02:00:00"],
    r"ARRAY['\xff'::bytea]": ["ff"],
    "'[1.000000000000000000001, 1.10, 1e400, 9007199254740993]'::json": [
        *("1.000000000000000000001", 1.1, "1e400", 9007199254740993)
    ],
    "'{\"a\": 12345678901234567890.125}'::jsonb": {"a": "12345678901234567890.125"},
    "'[1,10)'::int4range": "[1,10)",
    "'{[1,3),[5,7)}'::int4multirange": "{[1,3),[5,7)}",
    "timestamp '0044-03-15 BC'": "0044-03-15 00:00:00 BC",
    "ARRAY[[1, 2], [3, 9007199254740993]]": [[1, 2], [3, 9007199254740993]],
}


@pytest.mark.parametrize("written", EXACT)
async def test_no_value_of_postgresql_becomes_another(
    ask: Ask, postgresql: ForeignDatabase, written: str
) -> None:
    assert await ask(postgresql, f"SELECT {written} AS value") == [{"value": EXACT[written]}]


@pytest.mark.parametrize(
    ("span", "written"),
    [
        (timedelta(hours=26, seconds=1), "26:00:01"),
        (timedelta(minutes=-90), "-01:30:00"),
        (timedelta(seconds=-1), "-00:00:01"),
        (timedelta(milliseconds=1_250), "00:00:01.25"),
        (timedelta(microseconds=-1), "-00:00:00.000001"),
        (timedelta(), "00:00:00"),
    ],
)
def test_a_span_of_mysql_is_written_whole(tmp_path: Path, span: timedelta, written: str) -> None:
    query = DatabaseQuery(
        DatabaseAddress(ProviderName.MYSQL, "a", 1, "b", "c", "off"), "", "", (), 1, 9, 999
    )
    write_rows(query, ["span"], [(span,)], tmp_path / "rows")
    assert json.loads((tmp_path / "rows").read_bytes()) == {"span": written}


async def test_values_of_mysql_keep_what_they_say(ask: Ask, mysql: ForeignDatabase) -> None:
    text = """
        SELECT CONCAT(%s, 'ß🍎') AS text,
            CAST('12345678901234567890.10' AS DECIMAL(30, 2)) AS exact, NULL AS none,
            x'00ff' AS bytes, DATE '2026-02-03' AS day, TIME '26:00:01' AS span,
            TIMESTAMP '2026-02-03 04:05:06' AS moment, 7 AS text
    """
    assert await ask(mysql, text, "a' OR 1=1 -- \\") == [
        {
            "text": "a' OR 1=1 -- \\ß🍎",
            "exact": "12345678901234567890.10",
            "none": None,
            "bytes": "00ff",
            "day": "2026-02-03",
            "span": "26:00:01",
            "moment": "2026-02-03T04:05:06",
            "text (2)": 7,
        }
    ]


async def test_bits_of_mysql_are_numbers(ask: Ask, mysql: ForeignDatabase) -> None:
    assert await ask(mysql, "SELECT * FROM flags") == [
        {"sold": 1, "mask": 513, "new": None},
        {"sold": 0, "mask": 0, "new": 0},
    ]


MANY = {
    "postgresql": "WITH RECURSIVE n(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM n) TABLE n",
    "mysql": "SELECT seq AS n FROM seq_1_to_100000000",
}
LONG = {"postgresql": "SELECT pg_sleep(60)", "mysql": "SELECT sleep(60)"}


@pytest.fixture(params=["postgresql", "mysql"])
def database(request: pytest.FixtureRequest) -> ForeignDatabase:
    found: ForeignDatabase = request.getfixturevalue(request.param)
    return found


@pytest.mark.long
async def test_only_as_much_is_taken_as_is_wanted(ask: Ask, database: ForeignDatabase) -> None:
    text = MANY[database.engine]
    assert await ask(database, text, max_rows=3, whole=False) == [{"n": n} for n in (1, 2, 3)]
    for bound in ({"max_rows": 3}, {"max_rows": 10**9}):
        problem = await ask.problem(database, text, **bound)
        assert (problem.kind, problem.retryable) == (ErrorKind.TOO_LARGE, False)


async def test_a_refused_sign_in_is_reported(ask: Ask, database: ForeignDatabase) -> None:
    problem = await ask.problem(database, "SELECT 1", password="wrong")
    assert (problem.kind, problem.retryable) == (ErrorKind.AUTH, False)
    assert READER in problem.message
    assert (
        await ask.problem(database, "SELECT 1", place={"tls": "verified"})
    ).kind is ErrorKind.FETCH


async def test_a_long_query_is_aborted_and_cancelled(ask: Ask, database: ForeignDatabase) -> None:
    problem = await ask.problem(database, LONG[database.engine], seconds=0.5)
    assert (problem.kind, problem.retryable) == (ErrorKind.TIMEOUT, False)


REFUSED = {
    "postgresql": {
        "SELECT 1; SELECT 2": "multiple commands",
        "SELECT nothing": "nothing",
        "SELECT $1": "parameters",
        "SELECT 1 / 0": "zero",
        "WITH gone AS (DELETE FROM pg_class RETURNING 1) SELECT * FROM gone": "data-modifying",
        "SELECT lo_create(0)": "The query writes",
        "SELECT set_config('transaction_read_only', 'off', false)": "read-write",
        "SELECT * INTO stolen FROM pg_class": "",
    },
    "mysql": {
        "SELECT 1; SELECT 2": "SQL syntax",
        "SELECT nothing": "nothing",
        "SELECT %s": "SQL syntax",
        "DELETE FROM goods": "The query writes",
        "SELECT * FROM goods FOR UPDATE": "",
        "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE goods": "",
    },
}


@pytest.mark.long
async def test_a_query_that_does_more_than_read_is_refused(
    ask: Ask, database: ForeignDatabase
) -> None:
    for text, words in REFUSED[database.engine].items():
        problem = await ask.problem(database, text)
        assert (problem.kind, problem.retryable) == (ErrorKind.MAPPING, False), text
        assert words in problem.message


async def test_a_table_that_the_user_may_not_read_is_denied(
    ask: Ask, postgresql: ForeignDatabase, database: ForeignDatabase
) -> None:
    asked = {"postgresql": "TABLE pg_authid", "mysql": "SELECT * FROM mysql.global_priv"}
    problem = await ask.problem(database, asked[database.engine])
    assert problem.kind is ErrorKind.AUTH
    secret = await ask.problem(postgresql, f'SELECT "{PASSWORD}"')
    assert '"***"' in secret.message, "what a database repeats is not shown"


@pytest.mark.parametrize(
    ("engine", "user"), [("postgresql", "postgres"), ("mysql", "filer"), ("mysql", "indirect")]
)
async def test_a_user_of_files_of_the_server_is_refused(
    ask: Ask, request: pytest.FixtureRequest, engine: str, user: str
) -> None:
    problem = await ask.problem(request.getfixturevalue(engine), "SELECT 1", user=user)
    assert (problem.kind, "files on the server of the database" in problem.message) == (
        ErrorKind.AUTH,
        True,
    )


async def test_a_cancelled_query_ends_at_the_server(
    ask: Ask, postgresql: ForeignDatabase, database_url: str
) -> None:
    async def running() -> int:
        async with await psycopg.AsyncConnection.connect(database_url) as connection:
            found = await connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE usename = %s AND state = 'active'",
                [READER],
            )
            return int((await found.fetchone() or (0,))[0])

    async def is_running() -> bool:
        return await running() > 0

    async def is_over() -> bool:
        return await running() == 0

    asking = asyncio.create_task(ask(postgresql, LONG["postgresql"]))
    await eventually(is_running, what="the query")
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await eventually(is_over, what="the end of the query at the server")


class Names:
    """A resolver that gives its answers in turn."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)

    async def resolve(self, _host: str, _port: int) -> Sequence[Address]:
        return [parse_address(text) for text in self.answers.pop(0)]


async def test_a_database_is_reached_by_the_address_that_was_judged(
    tmp_path: Path, postgresql: ForeignDatabase
) -> None:
    policy = OutboundPolicy.from_entries([f"shop.example:{postgresql.port}"])
    names = Names(["127.0.0.1"], ["127.0.0.1"])
    async with OutboundClient(policy, resolver=names) as outbound:
        ask = Ask(outbound, tmp_path / "rows")
        # The machine does not know the name: only the judged address can have been connected to.
        assert await ask(postgresql, "SELECT 1 AS n", place={"host": "shop.example"}) == [{"n": 1}]
        problem = await ask.problem(postgresql, "SELECT 1", place={"host": "elsewhere.example"})
    assert (problem.kind, problem.retryable) == (ErrorKind.FETCH, False)
    assert "elsewhere.example is not a public address" in problem.message


@pytest.mark.parametrize("answer", [["10.0.0.5"], ["8.8.8.8", "169.254.169.254"], ["::1"]])
async def test_private_addresses_are_refused_before_anything_is_sent(
    tmp_path: Path, answer: Sequence[str]
) -> None:
    async with OutboundClient(OutboundPolicy(), resolver=Names(answer)) as outbound:
        there = ForeignDatabase("mysql", 3306, "shop")
        problem = await Ask(outbound, tmp_path / "rows").problem(
            there, "SELECT 1", place={"host": "a.example"}
        )
    assert "not a public address" in problem.message


async def test_a_server_that_asks_for_a_file_gets_none(
    ask: Ask, unused_tcp_port_server: Any
) -> None:
    port, sent = unused_tcp_port_server
    problem = await ask.problem(ForeignDatabase("mysql", port, "shop"), "SELECT 1")
    assert problem.kind is ErrorKind.FETCH
    assert b"root:" not in b"".join(sent)


@pytest.fixture
async def unused_tcp_port_server() -> AsyncIterator[tuple[int, list[bytes]]]:
    """A server that speaks as MySQL does and answers every statement by asking for a file."""
    sent: list[bytes] = []
    hello = (
        b"\x0a8.0.0\x00" + b"\x01\x00\x00\x00" + b"A" * 8 + b"\x00" + b"\xff\xf7" + b"\x21"
        + b"\x02\x00" + b"\xff\x81" + b"\x15" + b"\x00" * 10 + b"B" * 12 + b"\x00"
        + b"mysql_native_password\x00"
    )  # fmt: skip

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        def write(number: int, content: bytes) -> None:
            writer.write(len(content).to_bytes(3, "little") + bytes([number]) + content)

        write(0, hello)
        ok, file = b"\x00\x00\x00\x02\x00\x00\x00", b"\xfb/etc/passwd"
        while head := await reader.read(4):
            number, size = head[3], int.from_bytes(head[:3], "little")
            content = await reader.readexactly(size)
            sent.append(content)
            asks = content.startswith(b"\x03S") and b"GRANTS" in content
            write(number + 1, file if asks else ok)
            if content.startswith(b"\x01"):
                break
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1], sent
    server.close()
