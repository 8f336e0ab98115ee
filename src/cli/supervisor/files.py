"""Private JSON files that are replaced as a whole, and the ends of logs."""

import json
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from cli.supervisor.errors import StartError


def write_private(path: Path, value: object) -> None:
    """Replace a file with JSON, mode 0600, so that a crash leaves the old file or the new one."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=2)
        file.write("\n")
        file.flush()
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
        raise StartError(f"{path} is damaged: restore it, or start with another --state-dir.")
    return value


def rotate(path: Path, limit: int) -> None:
    """Move what a log holds to `<name>.1` once it is longer than `limit` bytes.

    The file itself stays: a process that writes to it, opened to append, goes on at its beginning.
    """
    # A full disk may have room again the next time.
    with suppress(OSError):
        if path.stat().st_size <= limit:
            return
        with path.open("r+b") as log, path.with_name(f"{path.name}.1").open("wb") as older:
            shutil.copyfileobj(log, older)
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
