"""`workspace rotate-secret`, and commands that begin with a key that is not the database's."""

import asyncio
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from pydantic import SecretStr

import cli.secret_keys
from cli.console import StartError
from cli.secret_keys import require_secret_key, watch_secret_key
from cli.shutdown import background
from models.automation.secrets.rules import secret_place
from models.core.secret_keys import register_keys
from runtime.configuration.settings import Settings
from runtime.crypto import KeyRing
from runtime.database import Database
from tests.support.forked import Forked, workspace
from tests.support.patience import ENOUGH
from tests.support.postgres import migrated_database

OLD, NEW, OTHER = (f"{name} secret key that is long enough" for name in ("one", "two", "three"))
MANY = 3_000
"""Secrets: some dozen transactions."""


@pytest.fixture
def url() -> Iterator[str]:
    """A database that was written to under the old key."""
    with migrated_database("rotation") as url:
        migrated = command("migrate", url=url, keys=OLD)
        assert migrated.returncode == 0, migrated.stderr
        yield url


def environment(url: str, keys: str) -> dict[str, str]:
    ours = ("WORKSPACE_", "TEMPORAL_", "DATABASE_URL")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return kept | {"DATABASE_URL": url, "WORKSPACE_SECRET_KEY": keys, "COLUMNS": "200"}


def started(directory: Path, *arguments: str, url: str, keys: str) -> Forked:
    out, err = directory / "out", directory / "err"
    for path in (out, err):
        path.unlink(missing_ok=True)
    return workspace(arguments, environment(url, keys), out=out, err=err)


def command(*arguments: str, url: str, keys: str) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        code = started(directory, *arguments, url=url, keys=keys).wait()
        out, err = (directory / "out").read_text(), (directory / "err").read_text()
        return subprocess.CompletedProcess(arguments, code, out, err)


def store_secrets(url: str, count: int) -> None:
    """A workspace with secrets under the old key, as a running process writes them."""
    old = KeyRing([OLD])
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "INSERT INTO app_user (id, issuer, subject, platform_admin, created_at, updated_at)"
            " VALUES (uuidv7(), 'i', 's', false, now(), now()) RETURNING id"
        ).fetchone()
        assert row is not None
        row = connection.execute(
            "INSERT INTO workspace (id, name, slug, created_by_user_id, created_at, updated_at)"
            " VALUES (uuidv7(), 'Acme', 'acme', %s, now(), now()) RETURNING id",
            row,
        ).fetchone()
        assert row is not None
        names = [f"S{number:05}" for number in range(count)]
        with connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO workspace_secret VALUES (%s, %s, %s, now(), now())",
                [(row[0], one, old.seal(one.encode(), secret_place(row[0], one))) for one in names],
            )


def under(url: str, keys: KeyRing) -> int:
    """The number of secrets under the current key of a ring."""
    with psycopg.connect(url) as connection:
        query = "SELECT count(*) FROM workspace_secret WHERE substr(sealed_value, 1, 4) = %s"
        row = connection.execute(query, (keys.current_id,)).fetchone()
        return 0 if row is None else int(row[0])


@pytest.mark.long
@pytest.mark.parametrize(
    "arguments",
    [["migrate"], ["api", "--port=0"], ["worker"], ["rotate-secret"], ["rotate-secret", "--check"]],
    ids=" ".join,
)
def test_a_command_with_a_wrong_key_ends_with_one_sentence(url: str, arguments: list[str]) -> None:
    ended = command(*arguments, url=url, keys=OTHER)
    assert ended.returncode == 1
    (line,) = ended.stderr.strip().splitlines()
    # The API and the worker log it.
    sentence = json.loads(line)["event"] if arguments[0] in {"api", "worker"} else line
    assert sentence.startswith("WORKSPACE_SECRET_KEY does not match this database")
    assert OTHER not in sentence


@pytest.mark.long
def test_a_rotation_that_was_killed_continues_where_it_was(url: str, tmp_path: Path) -> None:
    store_secrets(url, MANY)
    both, new = f"{NEW},{OLD}", KeyRing([NEW])
    waiting = command("rotate-secret", "--check", "--json", url=url, keys=both)
    assert "is not in use" in waiting.stderr
    rotation = started(tmp_path, "rotate-secret", url=url, keys=both)
    deadline = time.monotonic() + ENOUGH
    while not under(url, new) and time.monotonic() < deadline:
        time.sleep(0.002)
    rotation.kill()
    rotation.wait()
    done = under(url, new)
    assert 0 < done < MANY
    refused = command("migrate", url=url, keys=NEW)
    assert "lacks a key of this database" in refused.stderr
    checked = command("rotate-secret", "--check", "--json", url=url, keys=both)
    assert checked.returncode == 1
    (left,) = json.loads(checked.stdout)["values"]
    assert (left["kind"], left["left"]) == ("workspace_secret.sealed_value", MANY - done)
    assert under(url, new) == done
    rotated = command("rotate-secret", url=url, keys=both)
    assert rotated.returncode == 0, rotated.stderr
    assert f"{MANY - done} re-encrypted" in rotated.stderr
    assert "remove the older key" in rotated.stdout
    assert under(url, new) == MANY
    assert command("migrate", url=url, keys=NEW).returncode == 0
    assert "does not match" in command("migrate", url=url, keys=OLD).stderr


@pytest.mark.long
def test_values_sealed_by_a_lost_key_are_dropped_only_on_demand(url: str) -> None:
    store_secrets(url, 3)
    assert command("rotate-secret", url=url, keys=NEW).returncode == 1
    given_up = command("rotate-secret", "--forget-lost", url=url, keys=NEW)
    assert given_up.returncode == 0, given_up.stderr
    assert "a missing key can't be read" in given_up.stdout
    assert under(url, KeyRing([OLD])) == 3
    both = command("rotate-secret", "--forget-lost", "--check", url=url, keys=NEW)
    assert both.returncode == 1


@pytest.mark.long
async def test_a_process_that_lacks_a_newer_key_ends_in_order(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli.secret_keys, "_CHECK_SECONDS", 0.01)
    database, farewells = Database(url), []

    async def present() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.05)
            farewells.append("gone")

    async def work() -> None:
        async with background(present(), watch_secret_key(database, KeyRing([OLD]))):
            async with database.transaction() as transaction:
                await register_keys(transaction, KeyRing([NEW, OLD]))
            await asyncio.Event().wait()

    with pytest.raises(StartError, match="WORKSPACE_SECRET_KEY lacks a key of this database"):
        await work()
    await database.close()
    assert farewells == ["gone"]


async def test_a_database_that_is_away_keeps_no_process_from_starting() -> None:
    nowhere = "postgresql://nobody@127.0.0.1:1/nothing"
    settings = Settings(database_url=SecretStr(nowhere), secret_key=SecretStr(NEW))
    await require_secret_key(settings)
