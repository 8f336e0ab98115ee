"""The figures of a benchmark as a file, for comparisons between two runs."""

import json
import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.figures import Figure


class Results:
    """A JSON file, rewritten after each part: a run that is cut short leaves its figures."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._all: dict[str, Any] = {
            "startedAt": datetime.now(UTC).isoformat(timespec="seconds"),
            "commit": _commit(path.parent),
            "cores": os.cpu_count(),
            "machine": platform.machine(),
            "parts": {},
        }

    def add(self, part: str, figures: Sequence[Figure], seconds: float) -> None:
        """Keep the figures of a part, and its seconds."""
        self._all["parts"][part] = {
            "seconds": round(seconds, 1),
            "figures": [figure.to_json() for figure in figures],
        }
        self._path.write_text(json.dumps(self._all, indent=2, ensure_ascii=False) + "\n")


def _commit(directory: Path) -> str | None:
    """The commit that is measured, if this is a checkout."""
    command = ["git", "describe", "--always", "--dirty"]
    found = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    return found.stdout.strip() or None
