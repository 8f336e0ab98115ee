"""A PgBouncer in transaction mode before the PostgreSQL of the tests.

It is set up as docs/scaling.md shows it, and shares four sessions among all who ask it.
"""

import re
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from cli.supervisor.servers import service_account
from cli.supervisor.state import choose_port
from tests.support.patience import eventually

SESSIONS = 4
_PROGRAM = shutil.which("pgbouncer") or ""
_GUIDE = Path("docs/scaling.md")


class Pooler:
    """A process that may be killed and started anew."""

    def __init__(self, directory: Path, database_url: str) -> None:
        self._target = conninfo_to_dict(database_url)
        self._port = choose_port(0, None, "")
        self._config = directory / "pgbouncer.ini"
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"postgresql://{self._user}@127.0.0.1:{self._port}/workspace"
        self._write()

    @property
    def _user(self) -> Any:
        return self._target["user"]

    def _write(self) -> None:
        self._config.parent.chmod(0o755)
        block = re.search(r"```ini\n(.*?)```", _GUIDE.read_text(encoding="utf-8"), re.DOTALL)
        assert block is not None, "the guide shows a configuration"
        place = " ".join(f"{key}={self._target[key]}" for key in ("host", "port", "dbname", "user")
                         if self._target.get(key))  # fmt: skip
        text = block[1].replace("host=postgres dbname=workspace", place)
        assert place in text
        users = self._config.with_name("users.txt")
        users.write_text(f'"{self._user}" ""\n')
        self._config.write_text(
            f"{text}listen_addr = 127.0.0.1\nlisten_port = {self._port}\nunix_socket_dir =\n"
            f"auth_type = trust\nauth_file = {users}\ndefault_pool_size = {SESSIONS}\n"
        )

    async def start(self) -> None:
        """Start it, again if it was killed."""
        self._begin()
        await eventually(self._answers, "the start of PgBouncer")

    def _begin(self) -> None:
        # The account of PostgreSQL reaches its socket.
        account = service_account(Path(str(self._target["host"])))
        self._process = subprocess.Popen(
            [_PROGRAM, "-q", str(self._config)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user=None if account is None else account.uid,
            group=None if account is None else account.gid,
        )

    async def _answers(self) -> bool:
        try:
            connection = await psycopg.AsyncConnection.connect(self.url, autocommit=True)
        except psycopg.OperationalError:
            return False
        await connection.close()
        return True

    def kill(self) -> None:
        """End it as a power failure does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@asynccontextmanager
async def pooler(database_url: str) -> AsyncIterator[Pooler]:
    """A pooler before a database; skips the test where none is installed."""
    if not _PROGRAM:
        pytest.skip("pgbouncer is not installed")
    with tempfile.TemporaryDirectory(prefix="workspace-pooler-") as name:
        one = Pooler(Path(name), database_url)
        await one.start()
        try:
            yield one
        finally:
            one.kill()
