"""Each command that needs a database says in a sentence that it cannot use the one it has."""

import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.support.forked import workspace
from tests.support.postgres import migrated_database

NOWHERE = "postgresql://127.0.0.1:1/none"
COMMANDS = [
    ["quarantine"],
    ["quarantine", "--lift", "0198c5c2-7a3b-7c1d-9e4f-2b6a8d1c0e5f"],
    ["rotate-secret", "--check"],
    ["sign-in", "ada@example.com"],
    ["replay", "0198c5c2-7a3b-7c1d-9e4f-2b6a8d1c0e5f", "--node", "call"],
]


@pytest.fixture(scope="module")
def untouched() -> Iterator[str]:
    """A database without a single table."""
    with migrated_database("untouched") as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
        yield url


def said(arguments: list[str], url: str, directory: Path) -> tuple[int, str]:
    """The exit code of a command, and what it prints."""
    ours = ("WORKSPACE_", "TEMPORAL_", "DATABASE_URL")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    variables = {
        "DATABASE_URL": url,
        "WORKSPACE_SECRET_KEY": "a secret key that is long enough",
        "WORKSPACE_PUBLIC_URL": "https://workspace.example.com",
        "WORKSPACE_STATE_DIR": str(directory / "state"),
        "COLUMNS": "200",
    }
    out = directory / "out"
    code = workspace(arguments, kept | variables, out=out).wait()
    return code, out.read_text()


@pytest.mark.parametrize("arguments", [*COMMANDS, ["migrate"]], ids=" ".join)
def test_a_database_that_does_not_answer(arguments: list[str], tmp_path: Path) -> None:
    code, text = said(arguments, NOWHERE, tmp_path)
    assert code == (2 if arguments[0] == "replay" else 1)
    assert "Connection refused" in text
    assert "Traceback" not in text
    assert "sqlalche.me" not in text


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_database_without_tables(arguments: list[str], untouched: str, tmp_path: Path) -> None:
    code, text = said(arguments, untouched, tmp_path)
    assert code == (2 if arguments[0] == "replay" else 1)
    assert "workspace migrate" in text
    assert "Traceback" not in text
