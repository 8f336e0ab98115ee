"""Queries of SQLite files, which may be hostile and reach nothing beside themselves."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from activities.sources.readers import opening
from activities.sources.readers.opening import open_table
from models.sources.tabular.rules.options import ErrorKind, ReadOptions, SourceProblem, TableFormat


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop #1?.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE goods (code TEXT, price REAL, picture BLOB)")
        goods = [("a", 1.5, b"\x00\xff"), ("b", None, None)]
        connection.executemany("INSERT INTO goods VALUES (?, ?, ?)", goods)
        connection.execute("CREATE VIEW attaching AS SELECT load_extension('x') AS n")
        connection.commit()
    return path


def rows(path: Path, query: str, *params: Any) -> list[dict[str, Any]]:
    options = ReadOptions(TableFormat.JSON, query=query, params=params)
    table = open_table([path], options)
    return [dict(zip(table.headers, row, strict=True)) for row in table.rows()]


def problem(path: Path, query: str) -> SourceProblem:
    with pytest.raises(SourceProblem) as raised:
        rows(path, query)
    return raised.value


def test_the_rows_of_a_query_are_read(shop: Path) -> None:
    assert rows(shop, "SELECT * FROM goods WHERE code >= ? ORDER BY code DESC", "a") == [
        {"code": "b", "price": None, "picture": None},
        {"code": "a", "price": 1.5, "picture": "00ff"},
    ]
    counted = "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT 2) SELECT i, i FROM n LIMIT 1"
    assert rows(shop, counted) == [{"i": 1, "i (2)": 1}]
    assert rows(shop, "SELECT code FROM goods WHERE false") == []


@pytest.mark.parametrize(
    "query",
    [
        "ATTACH '/etc/passwd' AS other",
        "SELECT 1; ATTACH '/etc/passwd' AS other",
        "VACUUM INTO '/tmp/copy'",
        "INSERT INTO goods VALUES ('c', 1, NULL)",
        "WITH x AS (SELECT 1) DELETE FROM goods",
        "CREATE TEMP TABLE more (a)",
        "PRAGMA database_list",
        "SELECT * FROM pragma_database_list",
        "SELECT load_extension('/lib/evil.so')",
        "SELECT * FROM attaching",
        "SELECT writefile('/tmp/x', 'y')",
        "SELECT nothing FROM goods",
        "SELECT * FROM goods WHERE code = ?",
    ],
)
def test_a_query_that_does_more_than_select_is_refused(
    shop: Path, tmp_path: Path, query: str
) -> None:
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    refused = problem(shop, query)
    assert refused.kind is ErrorKind.MAPPING, refused.message
    assert str(tmp_path) not in refused.message
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_query_that_never_ends_is_interrupted(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "SECONDS", 0.1)
    endless = "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
    assert problem(shop, endless).kind is ErrorKind.TIMEOUT
    large = problem(shop, "SELECT length(zeroblob(900000000))")
    assert large.kind is ErrorKind.TOO_LARGE


def test_a_file_that_is_none_is_refused(shop: Path, tmp_path: Path) -> None:
    for content in (b"", b"PK\x03\x04", b"SQLite format 3\x00", shop.read_bytes()[:3_000]):
        path = tmp_path / "file"
        path.write_bytes(content)
        assert problem(path, "SELECT * FROM goods").kind in {ErrorKind.PARSE, ErrorKind.MAPPING}
    damaged = bytearray(shop.read_bytes())
    damaged[2_000:] = b"\xff" * (len(damaged) - 2_000)
    path.write_bytes(damaged)
    assert problem(path, "SELECT * FROM goods").kind is ErrorKind.PARSE
