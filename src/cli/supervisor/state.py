"""The state directory: everything one platform keeps between two starts."""

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cli.supervisor.errors import StartError
from cli.supervisor.files import read_object, rotate, write_private

_LOG_LIMIT = 10 * 1024 * 1024


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
                f"{self.root} cannot be used ({error.strerror}): choose another --state-dir."
            ) from None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Own the directory for the length of the block. Raises StartError when another does."""
        handle = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                owner = os.pread(handle, 32, 0).decode(errors="replace").strip()
                raise StartError(
                    f"A platform already runs on {self.root} (process {owner}): stop it, or choose"
                    " another --state-dir."
                ) from None
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
            yield
        finally:
            os.close(handle)

    def is_owned(self) -> bool:
        """True when a platform runs on this directory. Raises StartError when it cannot be told."""
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

    def running_settings(self) -> dict[str, Any]:
        """The settings by which the platform that runs here has its parts.

        What the environment says is left to it.
        """
        connection = read_object(self.connection) if self.is_owned() else {}
        if not connection:
            return {}
        fields: dict[str, Any] = {"state_dir": self.root}
        if "WORKSPACE_SECRET_KEY" not in os.environ:
            fields["secret_key"] = self.secret_key()
        for field, variable, name in (
            ("database_url", "DATABASE_URL", "databaseUrl"),
            ("temporal_address", "TEMPORAL_ADDRESS", "temporalAddress"),
        ):
            if variable not in os.environ and connection.get(name):
                fields[field] = connection[name]
        return fields

    def log(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    def rotate_log(self, name: str) -> None:
        """Begin a child's log anew when it is large; the one before is kept."""
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
                    f"{self._secrets} no longer has the master secret, and without it much of the"
                    f" data in {self.postgres_data} cannot be read: keys, secrets, connections."
                    " Restore the file from a backup, or set WORKSPACE_SECRET_KEY to the secret it"
                    " had, or choose another --state-dir for a new platform."
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
