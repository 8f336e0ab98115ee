"""The state directory: what one platform keeps between two starts, its files and its ports."""

import fcntl
import json
import os
import secrets
import shutil
import socket
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import SystemRandom
from typing import Any

import psutil
import typer
from typer.models import OptionInfo

from cli.console import StartError

_LOG_LIMIT = 10 * 1024 * 1024
_SETTINGS = ("WORKSPACE_", "DATABASE_", "TEMPORAL_")


def no_platform(root: Path, remote: str) -> StartError:
    """The error of a command that finds no platform; `remote` says how to name one elsewhere."""
    return StartError(
        f"No platform is running in {root.absolute()}. Start one with `workspace up`, or choose"
        f" another --state-dir. For a remote one, {remote}."
    )


class StateDir:
    """Paths and small files below one directory."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.logs = self.root / "logs"
        self.pids = self.root / "pids"
        self.connection = self.root / "connection.json"
        self.postgres = self.root / "postgres"
        self.postgres_data = self.postgres / "data"
        self.temporal_database = self.root / "temporal.db"
        self.heartbeat = self.root / "worker.heartbeat"
        self._secrets = self.root / "secrets.json"
        self._ports = self.root / "ports.json"

    def prepare(self) -> None:
        """Make the directories. Raises StartError when that is not possible."""
        try:
            for directory in (self.root, self.logs, self.pids):
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            if os.geteuid() == 0:
                # PostgreSQL's account must pass through to its own directory, and sees no other.
                self.root.chmod(0o711)
        except OSError as error:
            raise StartError(
                f"{self.root} cannot be used ({error.strerror}). Choose another --state-dir."
            ) from None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Own the directory for the length of the block. Raises StartError when another does."""
        handle = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StartError(
                    f"A platform is already running in {self.root} (process {self.owner()}). Stop"
                    f" it with `workspace stop --state-dir {self.root}`, or choose another"
                    " --state-dir."
                ) from None
            # Only under the lock, so that the number is that of the owner.
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
            yield
        finally:
            os.close(handle)

    def is_owned(self) -> bool:
        """True when a platform runs on this directory.

        Raises StartError when it cannot find out.
        """
        try:
            with (self.root / "lock").open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except PermissionError:
            raise StartError(f"{self.root} belongs to another account.") from None
        except BlockingIOError:
            return True
        return False

    def owner(self) -> int | None:
        """The process that runs the platform here. Raises StartError when it is unknown."""
        if not self.is_owned():
            return None
        text = (self.root / "lock").read_text(encoding="utf-8", errors="replace").strip()
        return int(text) if text.isdecimal() else None

    def running_settings(self) -> dict[str, Any]:
        """The settings of the processes of the platform that runs here, by field.

        What the environment says is left to it.
        """
        connection = read_object(self.connection) if self.is_owned() else {}
        if not connection:
            return {}
        variables = {
            "DATABASE_URL": connection.get("databaseUrl", ""),
            "TEMPORAL_ADDRESS": connection.get("temporalAddress", ""),
            "WORKSPACE_SECRET_KEY": self.secret_key(),
            **_environment_of(running_services(self)),
        }
        return {
            variable.removeprefix("WORKSPACE_").lower(): value
            for variable, value in variables.items()
            if variable.startswith(_SETTINGS) and value and not os.environ.get(variable)
        } | {"state_dir": self.root}

    def log(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    def rotate_log(self, name: str) -> None:
        """Rotate a child's log when it is large; the one before is kept."""
        rotate(self.log(name), _LOG_LIMIT)

    def secret_key(self) -> str:
        """The platform's master secret: the environment's, else this directory's own.

        It is made once, before the database. Raises StartError when it is missing beside one.
        """
        if key := os.environ.get("WORKSPACE_SECRET_KEY"):
            return key
        file = self.secrets()
        if "WORKSPACE_SECRET_KEY" not in file:
            if self.postgres_data.exists():
                raise StartError(
                    f"The master secret is missing from {self._secrets}. Without it, keys,"
                    f" secrets and connections in {self.postgres_data} can't be read. Restore the"
                    " file from a backup, set WORKSPACE_SECRET_KEY, or choose another --state-dir."
                )
            file["WORKSPACE_SECRET_KEY"] = secrets.token_urlsafe(48)
            write_private(self._secrets, file)
        return str(file["WORKSPACE_SECRET_KEY"])

    def secrets(self) -> dict[str, Any]:
        """The secrets that must survive a restart: master secret, workspace id, first key."""
        return read_object(self._secrets)

    def remember_secrets(self, **values: str) -> None:
        write_private(self._secrets, self.secrets() | values)

    def ports(self) -> dict[str, Any]:
        """The ports that were chosen the last time, by service."""
        return read_object(self._ports)

    def remember_ports(self, ports: dict[str, int]) -> None:
        write_private(self._ports, ports)

    def publish(self, connection: dict[str, str]) -> None:
        """Say how to reach the platform; the file exists only while the API has been ready."""
        write_private(self.connection, connection)

    def unpublish(self) -> None:
        self.connection.unlink(missing_ok=True)


def running_services(state: StateDir) -> dict[str, int | None]:
    """The process of each service that was started; None for one that does not run now."""
    records = {path.stem: read_object(path) for path in sorted(state.pids.glob("*.json"))}
    return {
        name: pid if pid is not None and psutil.pid_exists(pid) else None
        for name, record in records.items()
        for pid in [record.get("pid")]
    }


def _environment_of(services: Mapping[str, int | None]) -> Mapping[str, str]:
    """The environment of a process that has all settings; empty while none runs."""
    for name in ("api", "worker"):
        if (pid := services.get(name)) is not None:
            with suppress(psutil.Error):
                return dict(psutil.Process(pid).environ())
    return {}


def write_private(path: Path, value: object) -> None:
    """Replace a file with JSON, mode 0600, so that a crash leaves the old file or the new one."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    # A crash may have left a draft of a process with the same number.
    draft.unlink(missing_ok=True)
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=2)
        file.write("\n")
        file.flush()
        # Otherwise a crash of the machine may leave an empty file under the new name.
        os.fsync(file.fileno())
    draft.replace(path)


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file, empty when there is no file. Raises StartError for other text."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise StartError(f"{path} is damaged. Restore it, or start with another --state-dir.")
    return value


def rotate(path: Path, limit: int) -> None:
    """Move the contents of a log to `<name>.1` once it is longer than `limit` bytes.

    The file itself stays: a process that writes to it, opened to append, continues at its
    beginning.
    """
    # A full disk may have room again the next time.
    with suppress(OSError):
        if path.stat().st_size <= limit:
            return
        with path.open("r+b") as log, path.with_name(f"{path.name}.1").open("wb") as older:
            shutil.copyfileobj(log, older)
            # Lines written between the copy and this are lost, which a log may afford.
            log.truncate(0)


def tail(path: Path, lines: int = 15, since: int = 0) -> str:
    """The last lines of a log from a byte on, for the person who must find out what went wrong."""
    try:
        with path.open("rb") as file:
            file.seek(max(since, path.stat().st_size - 16_384))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join(text.splitlines()[-lines:])


LOOPBACK = "127.0.0.1"
_HIGHEST = 65_535
_BELOW_EPHEMERAL = range(20_000, 32_768)
"""No outgoing connection is given one of them: a free one stays free until a server listens."""


def port_option(name: str, text: str, envvar: str | None = None) -> OptionInfo:
    """An option of the command line that takes a port."""
    option: OptionInfo = typer.Option(name, parser=_port, metavar="PORT", envvar=envvar, help=text)
    return option


def _port(text: str) -> int:
    if str(text).isdecimal() and int(text) <= _HIGHEST:
        return int(text)
    raise typer.BadParameter(
        f"Enter a valid port up to {_HIGHEST}, or 0 for any free port, not {text}."
    )


def choose_port(
    requested: int, remembered: int | None, option: str, reserved: Collection[int] = ()
) -> int:
    """The requested port; for 0 the remembered one if it is still free, else a free one.

    A port is never one of the `reserved`, which have no listener yet. Raises StartError when the
    requested port is taken, or all are.
    """
    if requested != 0:
        if requested not in reserved and _is_free(requested):
            return requested
        raise StartError(
            f"Port {requested} is in use. Choose another with {option}, or use {option} 0 for any."
        )
    if remembered is not None and remembered not in reserved and _is_free(remembered):
        return remembered
    for port in SystemRandom().sample(_BELOW_EPHEMERAL, len(_BELOW_EPHEMERAL)):
        if port not in reserved and _is_free(port):
            return port
    raise StartError(f"No free port on {LOOPBACK}. Choose one with {option}.")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As servers do: a port whose last connections are still being closed counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
