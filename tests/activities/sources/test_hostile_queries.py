"""Queries that would leave the tables of a real server: for programs, files, other servers."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from pydantic import ValidationError

from cli.supervisor.servers import service_account
from models.sources.data_sources.rules import SqlConfig
from models.sources.tabular.rules.options import ErrorKind
from runtime.outbound.client import OutboundClient
from tests.activities.sources.test_databases import Ask
from tests.support.foreign_databases import READER, ForeignDatabase, over_tcp

pytestmark = pytest.mark.takes(seconds=20)

SYSTEM, EXTENSIONS = Path("/usr/lib/postgresql"), Path("/usr/share/postgresql")
"""Where the servers of Debian are: the one of the platform has no extensions."""


@pytest.fixture
def ask(outbound: OutboundClient, tmp_path: Path) -> Ask:
    return Ask(outbound, tmp_path / "rows")


PROGRAMS = [
    "COPY (SELECT 1) TO PROGRAM 'touch {made}'",
    "COPY pg_class FROM PROGRAM 'touch {made}'",
    "COPY (SELECT 1) TO '{made}'",
    "DO $$ BEGIN EXECUTE 'COPY (SELECT 1) TO PROGRAM ''touch {made}'''; END $$",
    "SELECT 1; COPY (SELECT 1) TO PROGRAM 'touch {made}'",
    "WITH a AS (COPY (SELECT 1) TO PROGRAM 'touch {made}') SELECT 1",
    "SELECT lo_export(1, '{made}')",
    "SELECT query_to_xml('COPY (SELECT 1) TO PROGRAM ''touch {made}''', true, true, '')",
]


@pytest.mark.parametrize("text", PROGRAMS)
async def test_no_query_runs_a_program_or_writes_a_file(
    ask: Ask, postgresql: ForeignDatabase, text: str
) -> None:
    made = Path(gettempdir()) / f"made-{uuid4().hex}"
    problem = await ask.problem(postgresql, text.format(made=made))
    assert (problem.retryable, bool(problem.message)) == (False, True)
    assert not made.exists()


def test_a_source_is_not_saved_with_what_does_not_read() -> None:
    for text in PROGRAMS[:4]:
        with pytest.raises(ValidationError, match="must be one query that reads"):
            SqlConfig.model_validate(
                {"connectionId": "0190f3b2-0000-7000-8000-000000000000", "query": text}
            )


@pytest.mark.parametrize(
    "text",
    [
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT pg_read_binary_file('/etc/passwd')",
        "SELECT pg_read_file('postgresql.conf')",
        "SELECT pg_ls_dir('/')",
        "SELECT pg_stat_file('/etc/passwd')",
        "SELECT * FROM pg_ls_logdir()",
        "SELECT lo_import('/etc/passwd')",
        "SELECT query_to_xml('SELECT pg_read_' || 'file(''/etc/passwd'')', true, true, '')",
        "SELECT * FROM pg_hba_file_rules",
        "TABLE pg_shadow",
    ],
)
async def test_no_query_reads_a_file_of_the_server(
    ask: Ask, postgresql: ForeignDatabase, text: str
) -> None:
    problem = await ask.problem(postgresql, text)
    assert problem.kind is ErrorKind.AUTH
    assert "permission denied" in problem.message


@pytest.mark.parametrize("function", ["pg_read_file(text)", "lo_import(text)"])
async def test_a_user_who_was_granted_a_function_of_files_is_refused(
    ask: Ask, postgresql: ForeignDatabase, database_url: str, function: str
) -> None:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as admin:
        to = sql.SQL("{} " + f"EXECUTE ON FUNCTION {function} " + "{} {}")  # constants
        reader = sql.Identifier(READER)
        await admin.execute(to.format(sql.SQL("GRANT"), sql.SQL("TO"), reader))
        try:
            problem = await ask.problem(postgresql, "SELECT 1 AS n")
        finally:
            await admin.execute(to.format(sql.SQL("REVOKE"), sql.SQL("FROM"), reader))
    assert (problem.kind, "files on the server of the database" in problem.message) == (
        ErrorKind.AUTH,
        True,
    )
    assert await ask(postgresql, "SELECT 1 AS n") == [{"n": 1}]


def _start(binaries: Path, directory: Path) -> str:
    """Start a server of Debian, which has dblink, on a socket in the directory; its URL."""
    account = service_account(directory)
    user: dict[str, Any] = {} if account is None else {"user": account.uid, "group": account.gid}
    if account is not None:
        os.chown(directory, account.uid, account.gid)
    options = f"-c listen_addresses= -c unix_socket_directories={directory}"
    for command in (
        ["initdb", "-D", f"{directory}/data", "-U", "postgres", "--auth=trust", "--no-sync"],
        [
            "pg_ctl",
            "-D",
            f"{directory}/data",
            "-w",
            "-o",
            options,
            "-l",
            f"{directory}/log",
            "start",
        ],
    ):
        program = binaries / command[0]
        quiet = subprocess.DEVNULL
        subprocess.run([program, *command[1:]], check=True, stdout=quiet, cwd="/", **user)
    # Where `over_tcp` puts the rule that the reader needs a password.
    hba = directory / "pg_hba.conf"
    hba.write_text("local all all trust\n")
    url = f"postgresql://postgres@/postgres?host={directory}"
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f"ALTER SYSTEM SET hba_file = '{hba}'")
    restart = [str(binaries / "pg_ctl"), "-D", f"{directory}/data", "-w", "-o", options, "restart"]
    subprocess.run(restart, check=True, stdout=subprocess.DEVNULL, cwd="/", **user)
    return url


def _stop(directory: Path) -> None:
    pid = int((directory / "data/postmaster.pid").read_text().split()[0])
    os.kill(pid, signal.SIGINT)


@pytest.fixture
def of_debian() -> Iterator[str]:
    """The URL of a PostgreSQL of the machine."""
    binaries = sorted(SYSTEM.glob("*/bin"))
    if not binaries or not any(EXTENSIONS.glob("*/extension/dblink.control")):
        pytest.skip("There is no PostgreSQL with dblink.")
    with TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        yield _start(binaries[-1], Path(directory))
        _stop(Path(directory))


@pytest.mark.long
async def test_a_user_who_may_call_dblink_is_refused_with_a_remedy(
    ask: Ask, of_debian: str
) -> None:
    async with over_tcp(of_debian) as database:
        await _refuse_dblink(ask, database, of_debian)


async def _refuse_dblink(ask: Ask, database: ForeignDatabase, url: str) -> None:
    assert await ask(database, "SELECT 1 AS n") == [{"n": 1}]
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("CREATE EXTENSION dblink")
        writes = "SELECT dblink_exec('host=127.0.0.1', 'CREATE TABLE made (n int)')"
        for text in (writes, "SELECT 1"):
            problem = await ask.problem(database, text)
            assert (problem.kind, problem.retryable) == (ErrorKind.AUTH, False)
            assert "Revoke EXECUTE on dblink" in problem.message
        admin.execute("REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA public FROM PUBLIC")
        assert await ask(database, "SELECT 1 AS n") == [{"n": 1}]
        problem = await ask.problem(database, writes)
        assert "permission denied" in problem.message


READS_FILE = "SELECT LOAD_FILE('{readable}') AS found"
"""What is refused where it is saved, and sent here all the same: a rule may have a gap."""


@pytest.fixture
def readable() -> Iterator[Path]:
    """A file that a server may read, as far as it is asked by who may."""
    with TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        path = Path(directory) / "secret.txt"
        path.write_text("a secret of the server\n")
        path.chmod(0o644)
        yield path


async def test_a_reader_of_mysql_gets_no_file_of_the_server(
    ask: Ask, mysql: ForeignDatabase, readable: Path
) -> None:
    assert await ask(mysql, READS_FILE.format(readable=readable)) == [{"found": None}]
    problem = await ask.problem(mysql, f"LOAD DATA INFILE '{readable}' INTO TABLE goods")
    assert not problem.retryable
    assert await ask(mysql, "SELECT * FROM goods") == []


@pytest.mark.parametrize("user", ["filer", "indirect"])
async def test_a_user_of_files_is_asked_for_none(
    ask: Ask, mysql: ForeignDatabase, readable: Path, user: str
) -> None:
    problem = await ask.problem(mysql, READS_FILE.format(readable=readable), user=user)
    assert problem.kind is ErrorKind.AUTH
    assert "files on the server of the database" in problem.message


@pytest.mark.parametrize("user", [READER, "filer", "indirect"])
@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1 INTO OUTFILE '{made}'",
        "SELECT 1 INTO DUMPFILE '{made}'",
        "SELECT 1 INTO/**/OUTFILE '{made}'",
        "SELECT 1 /*! INTO OUTFILE '{made}' */",
        "SELECT * FROM (SELECT 1) AS one INTO OUTFILE '{made}' LINES TERMINATED BY '<?php'",
    ],
)
async def test_no_query_of_mysql_writes_a_file(
    ask: Ask, mysql: ForeignDatabase, text: str, user: str
) -> None:
    made = Path(gettempdir()) / f"made-{uuid4().hex}"
    problem = await ask.problem(mysql, text.format(made=made), user=user)
    assert not problem.retryable
    assert not made.exists()
