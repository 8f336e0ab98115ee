"""Databases of other people, as data sources reach them: over TCP, with a user who only reads."""

import asyncio
import getpass
import os
import shutil
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psycopg
import pymysql
from psycopg import sql

from cli.supervisor.state import choose_port
from tests.support.patience import ENOUGH

PASSWORD = "p4ss of the r3ader"
READER = "source_reader"
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin"


@dataclass(frozen=True, slots=True)
class ForeignDatabase:
    """A database that listens on a port of this machine."""

    engine: str
    port: int
    name: str

    def config(self, user: str = READER, **changes: Any) -> dict[str, Any]:
        """The config of a connection to it."""
        here = {"host": "127.0.0.1", "port": self.port, "database": self.name, "tls": "off"}
        return {**here, "user": user, **changes}


@asynccontextmanager
async def over_tcp(database_url: str) -> AsyncIterator[ForeignDatabase]:
    """The PostgreSQL of the tests, which listens on a socket file only, behind a port.

    Its `source_reader` needs a password, and may read what everyone may.
    """
    parts = urlsplit(database_url)
    [directory] = parse_qs(parts.query)["host"]
    _make_reader(database_url, Path(directory))
    piping: set[asyncio.Task[None]] = set()

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            theirs, ours = await asyncio.open_unix_connection(f"{directory}/.s.PGSQL.5432")
            both = [_pipe(reader, ours), _pipe(theirs, writer)]
            for task in [asyncio.create_task(one) for one in both]:
                piping.add(task)
                task.add_done_callback(piping.discard)

    server = await asyncio.start_server(pass_on, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield ForeignDatabase("postgresql", port, parts.path[1:])
    finally:
        server.close()
        for task in list(piping):
            task.cancel()
        await asyncio.gather(*piping, return_exceptions=True)


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        with suppress(OSError):
            while content := await reader.read(65_536):
                writer.write(content)
                await writer.drain()
    finally:
        writer.close()


def _make_reader(database_url: str, directory: Path) -> None:
    line = f"local all {READER} scram-sha-256\n"
    with psycopg.connect(database_url, autocommit=True) as connection:
        with suppress(psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):
            role = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}")
            connection.execute(role.format(sql.Identifier(READER), sql.Literal(PASSWORD)))
        rules = directory / "pg_hba.conf"
        if line not in rules.read_text():
            rules.write_text(line + rules.read_text())
        connection.execute("SELECT pg_reload_conf()")


@asynccontextmanager
async def maria_database(directory: Path) -> AsyncIterator[ForeignDatabase | None]:
    """A MariaDB server of its own with the same reader; None where it is not installed."""
    server, install = shutil.which("mariadbd", path=_PATH), shutil.which("mariadb-install-db")
    if server is None or install is None:
        yield None
        return
    data, at = f"--datadir={directory}/data", f"--socket={directory}/socket"
    user = f"--user={getpass.getuser()}"
    made = [install, "--no-defaults", data, user, "--auth-root-authentication-method=normal"]
    await (await _run(*made)).wait()
    port = choose_port(0, None, "")
    options = ["--bind-address=127.0.0.1", f"--port={port}", "--skip-name-resolve"]
    process = await _run(server, "--no-defaults", data, at, user, *options)
    try:
        await asyncio.to_thread(_make_shop, f"{directory}/socket")
        yield ForeignDatabase("mysql", port, "shop")
    finally:
        process.terminate()
        await process.wait()


async def _run(*command: str) -> asyncio.subprocess.Process:
    quiet = asyncio.subprocess.DEVNULL
    return await asyncio.create_subprocess_exec(*command, stdout=quiet, stderr=quiet)


def _make_shop(path: str) -> None:
    deadline = time.monotonic() + ENOUGH
    while not _listens(path):
        assert time.monotonic() < deadline, "MariaDB does not start"
        time.sleep(0.1)
    root = pymysql.connect(unix_socket=path, user="root", autocommit=True)
    with root, root.cursor() as cursor:
        cursor.execute("CREATE DATABASE shop")
        cursor.execute("CREATE ROLE of_files")
        cursor.execute("GRANT FILE ON *.* TO of_files")
        for user in (READER, "filer", "indirect"):
            cursor.execute(f"CREATE USER {user}@'%%' IDENTIFIED BY %s", [PASSWORD])
            cursor.execute(f"GRANT SELECT, INSERT, DELETE ON shop.* TO {user}@'%'")
        cursor.execute("GRANT FILE ON *.* TO filer@'%'")
        cursor.execute("GRANT of_files TO indirect@'%'")
        cursor.execute("SET DEFAULT ROLE of_files FOR indirect@'%'")
        cursor.execute("CREATE TABLE shop.goods (code text)")
        cursor.execute("CREATE TABLE shop.flags (sold BIT(1), mask BIT(10), new BIT(1))")
        cursor.execute("INSERT INTO shop.flags VALUES (1, b'1000000001', NULL), (0, 0, 0)")


def _listens(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(path) == 0
