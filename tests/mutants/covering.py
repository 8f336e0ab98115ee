"""The tests that execute a line, and how long each takes: recorded once for a state of the rules.

A record is made in steps, and a step when a change asks for it: first the fast tests of rules.
Within a step some files are recorded at a time. So what was interrupted is continued,
and of what is there only the files that changed are recorded again.
"""

import hashlib
import json
import os
import subprocess
import sys
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

from coverage import CoverageData

from tests.mutants.sample import ROOT, paths

RECORDS = ROOT / ".coverage"
FILES = 120
"""Files of one process that records, or one folder's if it has more."""


@dataclass(frozen=True, slots=True)
class Step:
    """Tests that are recorded and asked together."""

    name: str
    folders: tuple[str, ...]
    marked: str


_FAST = "not takes and not crash and not long"
_RULES = ("tests/models", "tests/runtime")
STEPS = (
    Step("rules", _RULES, _FAST),
    Step("fast", ("tests",), _FAST),
    Step("slow", ("tests",), "(takes or crash) and not long"),
)
"""Together they are the tests of `make test`."""


class Covering:
    """The record of one step."""

    def __init__(self, step: Step, workers: int) -> None:
        self._step = step
        self._folder = RECORDS / digest() / step.name
        self._folder.mkdir(parents=True, exist_ok=True)
        self._known = self._folder / "files.json"
        self._seconds = self._folder / "seconds.json"
        self._record(workers)

    def tests(self, path: str, line: int) -> Sequence[str]:
        """The tests that execute a line, those of quick files first.

        For a line that is executed on import they are those of its module, and of the files that
        name the module: a constant is read without executing a line.
        """
        contexts = self._contexts(path, line) - {""}
        found = {one.rpartition("|")[0] for one in contexts}
        if not contexts:
            contexts = frozenset[str]().union(*self._lines(path).values()) - {""}
            found = {one.rpartition("|")[0] for one in contexts} | self._naming(path)
        names = sorted(found)
        files = {
            file: list(tests) for file, tests in groupby(names, lambda one: one.partition("::")[0])
        }
        quick_first = sorted(files.values(), key=self.seconds)
        return [test for tests in quick_first for test in tests]

    def seconds(self, tests: Sequence[str]) -> float:
        """How long they took."""
        return sum(self._durations.get(test, 0.0) for test in tests)

    def is_executed_on_import(self, path: str, line: int) -> bool:
        """True if a process executes a line before its first test."""
        return "" in self._contexts(path, line)

    def _naming(self, path: str) -> set[str]:
        module = ".".join(Path(path).with_suffix("").parts[1:])
        files = {
            file
            for file in _read(self._known)
            if f"from {module} import" in (ROOT / file).read_text()
        }
        return {test for test in self._durations if test.partition("::")[0] in files}

    def _contexts(self, path: str, line: int) -> frozenset[str]:
        lines = self._lines(path)
        numbers = sorted(lines)
        # A statement of several lines is recorded at some of them.
        place = bisect_right(numbers, line) - 1
        return lines[numbers[place]] if place >= 0 else frozenset()

    @cache  # noqa: B019  # there are three for each run
    def _lines(self, path: str) -> Mapping[int, frozenset[str]]:
        contexts = self._data.contexts_by_lineno(path)
        return {line: frozenset(names) for line, names in contexts.items()}

    @cached_property
    def _data(self) -> CoverageData:
        data = CoverageData(str(self._folder / "lines"))
        data.read()
        return data

    @cached_property
    def _durations(self) -> Mapping[str, float]:
        return _read(self._seconds)

    def _record(self, workers: int) -> None:
        known = _read(self._known)
        digests = {
            str(path.relative_to(ROOT)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in self._files()
        }
        missing = [file for file in digests if known.get(file) != digests[file]]
        for first in range(0, len(missing), FILES):
            files = missing[first : first + FILES]
            self._run(files, workers)
            known |= {file: digests[file] for file in files}
            self._known.write_text(json.dumps(known), encoding="utf-8")

    def _files(self) -> Sequence[Path]:
        found = {
            path for folder in self._step.folders for path in (ROOT / folder).rglob("test_*.py")
        }
        if self._step.name == "fast":
            found = {one for one in found if not str(one.relative_to(ROOT)).startswith(_RULES)}
        return sorted(found)

    def _run(self, files: Sequence[str], workers: int) -> None:
        command = [sys.executable, "-m", "pytest", "-n", str(workers), "--dist", "loadfile"]
        options = ["-m", self._step.marked, "-p", "tests.mutants.durations"]
        covered = ["--cov", "--cov-append", "--cov-context=test", "--cov-report="]
        latest = self._folder / "latest.json"
        environment = os.environ | {
            "COVERAGE_FILE": str(self._folder / "lines"),
            "COVERAGE_RCFILE": str(_config(self._folder)),
            "MUTANTS_DURATIONS": str(latest),
        }
        subprocess.run(
            [*command, *options, *covered, *files], cwd=ROOT, env=environment, check=False
        )
        durations = _read(self._seconds) | _read(latest)
        self._seconds.write_text(json.dumps(durations), encoding="utf-8")


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    read: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return read


def digest() -> str:
    """Of the modules whose lines are broken: their numbers move with any change."""
    texts = [f"{path}\n".encode() + (ROOT / path).read_bytes() for path in paths()]
    return hashlib.sha256(b"".join(texts)).hexdigest()[:20]


def _config(folder: Path) -> Path:
    """Settings of coverage: it looks at the modules alone whose lines are broken."""
    config = folder / "settings.ini"
    included = "".join(f"\n    {path}" for path in paths())
    # SQLAlchemy runs its asynchronous calls in greenlets.
    concurrency = "concurrency = thread, greenlet"
    config.write_text(f"[run]\n{concurrency}\nrelative_files = true\ninclude ={included}\n")
    return config
