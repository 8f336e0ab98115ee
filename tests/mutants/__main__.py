"""Break a sample of lines, one at a time, and print those that no test notices.

`make mutants ARGS="--count 400 --seed 1"`. The tests are those of `make test` that execute the line
(ADR 0142). What was tried is kept for each state of a module, so a run continues where one stopped.
"""

import argparse
import hashlib
import json
import os
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import pytest

# The server of this process serves the tests of every change: to start one takes seconds.
os.environ["PYTEST_XDIST_TESTRUNUID"] = uuid.uuid4().hex

from tests.mutants.covering import RECORDS, RULES, STEPS, Covering
from tests.mutants.sample import ROOT, Mutation, sampled
from tests.mutants.trying import ARGUMENTS, PASSED, Tests, anew
from tests.support.postgres import migrated_database

EQUAL = Path(__file__).with_name("equal.txt")
"""Changes without effect below their reasons: path, line as it is, and line as it becomes."""
SURVIVED = "SURVIVED"

Ask = Callable[[Sequence[str], float], str]
"""Runs tests for a number of seconds at most, and gives the first that fails."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a change."""

    key: str
    noticed_by: str | None
    """A test, or that the process died or hung."""
    steps: int
    """Of the tests that were asked."""


class Trial:
    """Tries the changes of a sample, some side by side."""

    def __init__(self, options: argparse.Namespace, mutations: Sequence[Mutation]) -> None:
        self._options = options
        self._mutations = mutations
        self._until = time.monotonic() + 60 * options.minutes
        recorders = 0 if options.as_recorded else options.workers
        self._coverings = [Covering(step, recorders) for step in STEPS[: options.steps]]
        self._kept = RECORDS / "outcomes.jsonl"
        self._failing: set[str] = set()
        """Tests that fail without a change, too."""

    def run(self, tests: Tests) -> None:
        """Try each change in one of the processes."""
        processes = []
        for number in range(self._options.workers):
            pid = os.fork()
            if not pid:
                try:
                    self._try(range(number, len(self._mutations), self._options.workers), tests)
                finally:
                    os._exit(0)
            processes.append(pid)
        for pid in processes:
            os.waitpid(pid, 0)

    def files(self) -> Sequence[str]:
        """The files with the tests that may be asked."""
        return sorted({file for covering in self._coverings for file in covering.files})

    def outcomes(self) -> dict[Mutation, Outcome]:
        """What was tried so far, of modules that are as they were."""
        lines = self._kept.read_text(encoding="utf-8").splitlines() if self._kept.exists() else []
        latest = {one["key"]: Outcome(**one) for one in map(json.loads, lines)}
        keys = {one: _key_of(one) for one in self._mutations}
        return {one: latest[key] for one, key in keys.items() if key in latest}

    def _try(self, numbers: Sequence[int], tests: Tests) -> None:
        outcomes = self.outcomes()
        for number in numbers:
            mutation = self._mutations[number]
            kept = outcomes.get(mutation)
            asked = 0 if kept is None else kept.steps
            if kept is not None and not kept.noticed_by and self._options.survivors:
                asked = 0
            elif kept is not None and (kept.noticed_by or asked >= self._options.steps):
                continue
            if time.monotonic() > self._until:
                break
            began = time.monotonic()
            why = self._noticed_by(mutation, self._coverings[asked:], tests)
            outcome = Outcome(_key_of(mutation), why, self._options.steps)
            with self._kept.open("a", encoding="utf-8") as file:
                file.write(f"{json.dumps(asdict(outcome))}\n")
            lasted = time.monotonic() - began
            say(f"{number} {why or SURVIVED}: {name_of(mutation)} ({lasted:.1f} s)")

    def _noticed_by(
        self, mutation: Mutation, coverings: Sequence[Covering], tests: Tests
    ) -> str | None:
        """The test that fails, or that the process died or hung."""
        codes = tests.codes(mutation)
        for covering in coverings:
            asked = covering.tests(mutation.path, mutation.line, self._options.seconds)
            ways: list[Ask] = []
            if codes:
                ways.append(partial(tests.forked, codes=codes))
            if not codes or covering.is_executed_on_import(mutation.path, mutation.line):
                ways.append(partial(anew, mutation))
            for ask in ways:
                if reply := self._failing_by(ask, asked, covering, tests):
                    return reply
        return None

    def _failing_by(
        self, ask: Ask, asked: Sequence[str], covering: Covering, tests: Tests
    ) -> str | None:
        """The first that fails with the change, and does not without it."""
        while asked := [test for test in asked if test not in self._failing]:
            seconds = 30 + 10 * covering.seconds(asked)
            reply = ask(asked, seconds)
            if reply == PASSED:
                break
            if reply not in asked or tests.forked([reply], seconds) == PASSED:
                return reply
            self._failing.add(reply)
        return None


def main() -> int:
    """Print the outcome of each change. Gives 1 when fewer than asked for are noticed.

    One that was not tried counts as not noticed.
    """
    options = _options()
    mutations = [one for one in sampled(options.count, options.seed) if not _is_equal(one)]
    trial = Trial(options, mutations)
    with migrated_database("mutants"):
        pytest.main([*ARGUMENTS, *trial.files()], plugins=[Tests(trial.run)])
    tried = trial.outcomes()
    survivors = [one for one, outcome in tried.items() if not outcome.noticed_by]
    say(*(f"{SURVIVED} {name_of(one)}" for one in survivors))
    ways = Counter(_way_of(outcome.noticed_by) for outcome in tried.values() if outcome.noticed_by)
    without, untried = options.count - len(mutations), len(mutations) - len(tried)
    say(f"{options.count} changes: {without} without effect, {untried} not tried")
    say(f"{ways.total()} noticed, {len(survivors)} survived")
    say(*(f"{number} noticed by {way}" for way, number in ways.most_common()))
    share = 100 * ways.total() / max(1, len(mutations))
    say(f"{ways.total()} of {len(mutations)} with an effect noticed: {share:.1f} %")
    return int(share < options.at_least)


def _way_of(reply: str) -> str:
    if "::" not in reply:
        return "a process that died or hung"
    return "tests of rules" if reply.startswith(RULES) else "other tests"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=400, help="lines that are broken")
    parser.add_argument("--seed", type=int, default=1, help="the sample")
    parser.add_argument("--steps", type=int, default=len(STEPS), help="of the tests, quick first")
    parser.add_argument(
        "--seconds", type=float, default=20, help="of tests a change asks in a step"
    )
    parser.add_argument("--survivors", action="store_true", help="try again what survived")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="then stop")
    parser.add_argument("--as-recorded", action="store_true", help="ask no test without a record")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="side by side")
    parser.add_argument(
        "--at-least", type=float, default=92.0, help="percent of all with an effect"
    )
    return parser.parse_args()


def say(*lines: str) -> None:
    """Print at once."""
    sys.stderr.write("".join(f"{line}\n" for line in lines))
    sys.stderr.flush()


def _is_equal(mutation: Mutation) -> bool:
    listed = EQUAL.read_text(encoding="utf-8").splitlines()
    paths = {line.partition(":")[0] for line in listed}
    return mutation.path in paths and name_of(mutation) in listed


def _key_of(mutation: Mutation) -> str:
    """What stands for a change where it is kept, as long as its module is as it is."""
    text = (ROOT / mutation.path).read_bytes()
    return f"{mutation.key} {hashlib.sha256(text).hexdigest()[:20]}"


def name_of(mutation: Mutation) -> str:
    """How a change is listed."""
    before, after = mutation.change()
    return f"{mutation.path}: {before} -> {after}"


if __name__ == "__main__":
    sys.exit(main())
