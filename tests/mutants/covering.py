"""The tests that execute a line, as coverage records them once for the sources of a moment."""

import hashlib
import json
import os
import subprocess
import sys
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from itertools import takewhile
from pathlib import Path

from coverage import CoverageData

from tests.mutants.sample import ROOT, paths

RECORDS = ROOT / ".coverage"
"""A record for each state of the sources. Each takes as long as `make test`, or twice as long."""


def recorded(copy: Path, workers: int) -> "Covering":
    """The record for the sources as they are. If there is none, it is made in a copy of them."""
    folder = RECORDS / _digest()
    if not folder.exists():
        beside = folder.with_suffix(".partial")
        beside.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pytest", "-n", str(workers), "--dist", "loadfile"]
        options = ["-m", "not long", "--cov", "--cov-context=test", "--cov-report="]
        environment = os.environ | {
            "PYTHONPATH": f"{copy}{os.pathsep}{copy / 'src'}",
            "COVERAGE_FILE": str(beside / "lines"),
            "COVERAGE_RCFILE": str(_config(beside)),
        }
        cached = ["-o", f"cache_dir={beside / 'cache'}"]
        subprocess.run([*command, *options, *cached], cwd=copy, env=environment, check=False)
        beside.rename(folder)
    return Covering(folder)


def _digest() -> str:
    digest = hashlib.sha256()
    for folder in ("src", "tests"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            digest.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:20]


def _config(folder: Path) -> Path:
    """Settings of coverage: it looks at the modules alone whose lines are broken."""
    config = folder / "settings.ini"
    included = "".join(f"\n    {path}" for path in paths())
    # SQLAlchemy runs its asynchronous calls in greenlets.
    concurrency = "concurrency = thread, greenlet"
    config.write_text(f"[run]\n{concurrency}\nrelative_files = true\ninclude ={included}\n")
    return config


class Covering:
    """The tests that execute a line of a module."""

    def __init__(self, record: Path) -> None:
        self._data = CoverageData(str(record / "lines"))
        self._data.read()
        failed = record / "cache" / "v" / "cache" / "lastfailed"
        # A test that fails in any case notices no change.
        self._failing = frozenset(json.loads(failed.read_text())) if failed.exists() else ()

    def tests(self, path: str, line: int) -> Collection[str]:
        """The tests that execute a line; for one that is executed on import, those of its module.

        Empty if no test of its own process executes any.
        """
        lines = self._lines(path)
        numbers = sorted(lines)
        # A statement of several lines is recorded at some of them.
        place = bisect_right(numbers, line) - 1
        tests = lines[numbers[place]] if place >= 0 else frozenset[str]()
        return tests or frozenset[str]().union(*lines.values())

    @cache  # noqa: B019  # there is one for each run
    def _lines(self, path: str) -> Mapping[int, frozenset[str]]:
        contexts = self._data.contexts_by_lineno(path)
        return {
            line: frozenset(one.rpartition("|")[0] for one in names if one).difference(
                self._failing
            )
            for line, names in contexts.items()
        }


def nearest_first(tests: Collection[str], path: str) -> Sequence[str]:
    """Tests in the order in which they are likely to notice a change of a module."""
    own = Path("tests", *Path(path).with_suffix("").parts[1:]).parts

    def distance(test: str) -> tuple[int, str]:
        parts = Path(test.partition("::")[0]).with_suffix("").parts
        alike = takewhile(lambda pair: pair[0] == pair[1], zip(own, parts, strict=False))
        return -sum(1 for _ in alike), test

    return sorted(tests, key=distance)
