"""The tests that execute a line, and how long each takes: recorded once, in batches.

A record is made in steps, and a step when a change asks for it: first the fast tests of rules.
A batch has the lines that some files of tests execute, in the modules as they were then. So what
was interrupted is continued, a file of tests that changed is recorded again alone, and a module
that changed has its lines found by their text.
"""

import ast
import hashlib
import json
import os
import re
import subprocess
import sys
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache, cached_property
from itertools import groupby, takewhile
from pathlib import Path
from typing import Any

from coverage import CoverageData

from tests.mutants.sample import ROOT, paths

RECORDS = ROOT / ".coverage"
FILES = 120
"""Files of one batch."""
DOCUMENT = "tests/api/test_openapi_document.py"
"""It reads the bounds of every shape, and executes no line of their modules."""


@dataclass(frozen=True, slots=True)
class Step:
    """Tests that are recorded and asked together."""

    name: str
    folders: tuple[str, ...]
    marked: str


_FAST = "not takes and not crash and not long"
RULES = ("tests/models", "tests/runtime")
STEPS = (
    Step("rules", RULES, _FAST),
    Step("fast", ("tests",), _FAST),
    Step("slow", ("tests",), "(takes or crash) and not long"),
)
"""Together they are the tests of `make test`."""


class Covering:
    """The record of one step."""

    def __init__(self, step: Step, workers: int) -> None:
        """Record what is missing in `workers` processes; with none, take what is there."""
        self._step = step
        self._folder = RECORDS / step.name
        self._folder.mkdir(parents=True, exist_ok=True)
        if workers:
            self._record(workers)
        self._batches = self._finished()
        self._latest = {file: batch for batch in self._batches for file in batch.files}
        self._durations = {
            test: seconds
            for batch in self._batches
            for test, seconds in batch.seconds.items()
            if self._is_latest(test, batch)
        }

    @property
    def files(self) -> Collection[str]:
        """The files that have a record."""
        return self._latest.keys()

    def tests(self, path: str, line: int, most: float) -> Sequence[str]:
        """The tests that execute a line, near files first, and of those the quick ones.

        They took `most` seconds at most, unless it is a single file.

        For a line that is executed on import they are those of its module, and of the files that
        name the module: a constant is read without executing a line.
        """
        found = self._executing(path, line)
        if not found or self.is_executed_on_import(path, line):
            found |= self._executing(path) | self._naming(path)
        names = sorted(found)
        files = {
            file: list(tests) for file, tests in groupby(names, lambda one: one.partition("::")[0])
        }
        near_first = sorted(
            files.items(), key=lambda one: (-_near(one[0], path), self.seconds(one[1]))
        )
        asked: list[str] = []
        for _, tests in near_first:
            if not asked or self.seconds([*asked, *tests]) <= most:
                asked += tests
        return asked

    def seconds(self, tests: Sequence[str]) -> float:
        """How long they took."""
        return sum(self._durations.get(test, 0.0) for test in tests)

    def is_executed_on_import(self, path: str, line: int) -> bool:
        """True if a process executes a line before its first test."""
        return any("" in batch.contexts(path, line) for batch in self._batches)

    def _executing(self, path: str, line: int | None = None) -> set[str]:
        return {
            context.rpartition("|")[0]
            for batch in self._batches
            for context in batch.contexts(path, line)
            if self._is_latest(context, batch)
        }

    def _is_latest(self, test: str, batch: "Batch") -> bool:
        return self._latest.get(test.partition("::")[0]) is batch

    def _naming(self, path: str) -> set[str]:
        module = ".".join(Path(path).with_suffix("").parts[1:])
        package, _, name = module.rpartition(".")
        names = re.compile(
            rf"\b{re.escape(module)}\b(?!\.)|from {package} import [\w\s,()]*\b{name}\b"
        )
        files = {
            file
            for file in self._latest
            if file == DOCUMENT or names.search((ROOT / file).read_text())
        }
        return {test for test in self._durations if test.partition("::")[0] in files}

    def _record(self, workers: int) -> None:
        known = {file: digest for batch in self._finished() for file, digest in batch.files.items()}
        digests = {str(path.relative_to(ROOT)): _digest(path) for path in self._files()}
        missing = [file for file in digests if known.get(file) != digests[file]]
        for first in range(0, len(missing), FILES):
            files = missing[first : first + FILES]
            number = len(list(self._folder.iterdir()))
            batch = Batch(self._folder / f"{number:03}")
            batch.record(files, self._step.marked, workers)

    def _finished(self) -> "Sequence[Batch]":
        return [Batch(one.parent) for one in sorted(self._folder.glob("*/files.json"))]

    def _files(self) -> Sequence[Path]:
        found = {
            path for folder in self._step.folders for path in (ROOT / folder).rglob("test_*.py")
        }
        if self._step.name == "fast":
            found = {one for one in found if not str(one.relative_to(ROOT)).startswith(RULES)}
        return sorted(found)


class Batch:
    """What some files of tests execute."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def files(self) -> Mapping[str, str]:
        """Their digests; those that are there no longer are left out."""
        recorded = _read(self._folder / "files.json")
        return {file: digest for file, digest in recorded.items() if (ROOT / file).exists()}

    @cached_property
    def seconds(self) -> Mapping[str, float]:
        """How long each test took."""
        return _read(self._folder / "seconds.json")

    def contexts(self, path: str, line: int | None = None) -> frozenset[str]:
        """The tests that execute a line, or any; and "" for what is executed on import."""
        lines = self._lines(path)
        if line is None:
            return frozenset[str]().union(*lines.values())
        numbers, then = sorted(lines), self._then(path, line)
        # A statement of several lines is recorded at some of them.
        place = bisect_right(numbers, then) - 1
        begin = max(
            (first for first, last in self._bodies(path) if first <= then <= last), default=0
        )
        return lines[numbers[place]] if place >= 0 and numbers[place] >= begin else frozenset()

    def record(self, files: Sequence[str], marked: str, workers: int) -> None:
        """Run the tests."""
        self._folder.mkdir(exist_ok=True)
        digests = {file: _digest(ROOT / file) for file in files}
        texts = {path: (ROOT / path).read_text(encoding="utf-8") for path in paths()}
        self._write("sources.json", texts)
        command = [sys.executable, "-m", "pytest", "-n", str(workers), "--dist", "loadfile"]
        options = ["-m", marked, "-p", "tests.mutants.durations"]
        covered = ["--cov", "--cov-append", "--cov-context=test", "--cov-report="]
        environment = os.environ | {
            "COVERAGE_FILE": str(self._folder / "lines"),
            "COVERAGE_RCFILE": str(_config(self._folder)),
            "MUTANTS_DURATIONS": str(self._folder / "seconds.json"),
        }
        subprocess.run(
            [*command, *options, *covered, *files], cwd=ROOT, env=environment, check=False
        )
        self._write("files.json", digests)

    def _write(self, name: str, content: Mapping[str, str]) -> None:
        (self._folder / name).write_text(json.dumps(content), encoding="utf-8")

    def _then(self, path: str, line: int) -> int:
        """The number that a line had, or else the line before it."""
        now, then = self._matching(path)
        place = bisect_right(now, line) - 1
        return then[place] if place >= 0 else 0

    @cache  # noqa: B019  # there are some for each run
    def _matching(self, path: str) -> tuple[Sequence[int], Sequence[int]]:
        now = (ROOT / path).read_text(encoding="utf-8").splitlines()
        then = self._sources.get(path, "").splitlines()
        blocks = SequenceMatcher(None, now, then, autojunk=False).get_matching_blocks()
        pairs = [(ours + at, theirs + at) for ours, theirs, size in blocks for at in range(size)]
        return [ours + 1 for ours, _ in pairs], [theirs + 1 for _, theirs in pairs]

    @cache  # noqa: B019  # there are some for each run
    def _bodies(self, path: str) -> Sequence[tuple[int, int]]:
        """The first and the last line of each function's body, which no import executes."""
        functions = (ast.FunctionDef, ast.AsyncFunctionDef)
        return [
            (node.body[0].lineno, node.end_lineno or 0)
            for node in ast.walk(ast.parse(self._sources.get(path, "")))
            if isinstance(node, functions)
        ]

    @cached_property
    def _sources(self) -> Mapping[str, str]:
        return _read(self._folder / "sources.json")

    @cache  # noqa: B019  # there are some for each run
    def _lines(self, path: str) -> Mapping[int, frozenset[str]]:
        contexts = self._data.contexts_by_lineno(path)
        return {line: frozenset(names) for line, names in contexts.items()}

    @cached_property
    def _data(self) -> CoverageData:
        data = CoverageData(str(self._folder / "lines"))
        data.read()
        return data


def _near(file: str, path: str) -> int:
    """The number of folders that a file of tests shares with a module."""
    pairs = zip(Path(file).parts[1:-1], Path(path).parts[1:-1], strict=False)
    return len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    read: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return read


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _config(folder: Path) -> Path:
    """Settings of coverage: it looks at the modules alone whose lines are broken."""
    config = folder / "settings.ini"
    included = "".join(f"\n    {path}" for path in paths())
    # SQLAlchemy runs its asynchronous calls in greenlets.
    concurrency = "concurrency = thread, greenlet"
    config.write_text(f"[run]\n{concurrency}\nrelative_files = true\ninclude ={included}\n")
    return config
