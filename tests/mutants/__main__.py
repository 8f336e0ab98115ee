"""Break a sample of lines, one at a time, and print those that no test notices.

`make mutants ARGS="--count 400 --seed 1"`. Each line is broken in a copy of the project. The tests
are those of `make test` that execute the line. They are recorded first, by all tests once.
"""

import argparse
import contextlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count, islice
from pathlib import Path
from queue import Queue

# The server of this process serves the tests of every change: to start one takes seconds.
os.environ["PYTEST_XDIST_TESTRUNUID"] = uuid.uuid4().hex

from tests.mutants.covering import Covering, nearest_first, recorded
from tests.mutants.sample import ROOT, Mutation, sampled
from tests.support.postgres import migrated_database

EQUAL = Path(__file__).with_name("equal.txt")
"""Changes without effect, one a line: path, line as it is, and line as it becomes."""
OUTCOMES = frozenset({-signal.SIGSEGV, -signal.SIGABRT, 0, 1, 2})
"""Exit codes that tell of a change: of pytest, if tests passed, failed or were not imported."""
SECONDS = 600
"""For the tests of one change. A change whose tests take longer is noticed: they hang."""
MEMORY = 8 << 30
"""Bytes of address space of a test process: a broken bound may ask for all there is."""
COPIED = ("src", "tests", "docs", "temporal", "pyproject.toml", "openapi.json", "CONTRIBUTING.md")
BATCHES = (60, 600, 100_000)
"""Tests of one process: few of the nearest notice most changes."""


def main() -> int:
    """Print the outcome of each change. Gives 1 when fewer than asked for are noticed."""
    options = _options()
    equal = set(EQUAL.read_text(encoding="utf-8").splitlines())
    mutations = [one for one in sampled(options.count, options.seed) if _name(one) not in equal]
    survivors = 0
    with (
        tempfile.TemporaryDirectory(prefix="mutants-") as scratch,
        migrated_database("mutants"),
        ThreadPoolExecutor(options.workers) as pool,
    ):
        copies: Queue[Path] = Queue()
        for number in range(options.workers):
            copies.put(_copy(Path(scratch) / str(number)))
        covering = recorded(copies.queue[0], 2 * options.workers)
        outcomes = pool.map(lambda one: _is_noticed(one, copies, covering), mutations)
        for number, mutation, is_noticed in zip(count(1), mutations, outcomes, strict=False):
            survivors += not is_noticed
            _say(f"{number} {'noticed' if is_noticed else 'SURVIVED'} {_name(mutation)}")
    share = 100 * (1 - survivors / len(mutations))
    _say(f"{len(mutations)} changes, {survivors} not noticed: {share:.1f} % noticed.")
    return int(share < options.at_least)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=400, help="lines that are broken")
    parser.add_argument("--seed", type=int, default=1, help="the sample")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--at-least", type=float, default=92.0, help="percent that is noticed")
    return parser.parse_args()


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _name(mutation: Mutation) -> str:
    before, after = mutation.change()
    return f"{mutation.path}: {before} -> {after}"


def _copy(place: Path) -> Path:
    """A copy of what tests read. The states of `temporal` are large, and read by none of these."""
    place.mkdir()
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "states")
            shutil.copytree(source, place / name, ignore=ignored)
        else:
            shutil.copy(source, place / name)
    return place


def _is_noticed(mutation: Mutation, copies: Queue[Path], covering: Covering) -> bool:
    """True if a test fails, cannot be imported, or does not end."""
    tests = iter(nearest_first(covering.tests(mutation.path, mutation.line), mutation.path))
    copy = copies.get()
    try:
        with _broken(mutation, copy):
            batches = (list(islice(tests, size)) for size in BATCHES)
            return any(_fails(copy, batch) for batch in batches if batch)
    finally:
        copies.put(copy)


@contextlib.contextmanager
def _broken(mutation: Mutation, copy: Path) -> Iterator[None]:
    module = copy / mutation.path
    original = module.read_bytes()
    module.write_text(mutation.source(), encoding="utf-8")
    # Bytecode belongs to a second and a size: another second than that of any change before.
    second = time.time_ns() // 10**9 + hash(mutation) % 10**6
    os.utime(module, (second, second))
    try:
        yield
    finally:
        module.write_bytes(original)


def _fails(copy: Path, tests: Sequence[str]) -> bool:
    listed = copy / "tests.txt"
    listed.write_text("\n".join(tests), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "-n", "0"]
    environment = os.environ | {"PYTHONPATH": f"{copy}{os.pathsep}{copy / 'src'}"}
    process = subprocess.Popen(  # our own interpreter and files
        [*command, f"@{listed}"],
        cwd=copy,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    resource.prlimit(process.pid, resource.RLIMIT_AS, (MEMORY, MEMORY))
    try:
        code = process.wait(SECONDS)
    except subprocess.TimeoutExpired:
        return True
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert code in OUTCOMES, f"pytest ended with {code} for {tests[:3]}"
    return code != 0


if __name__ == "__main__":
    sys.exit(main())
