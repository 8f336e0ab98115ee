"""Break a sample of lines, one at a time, and print those that no test notices.

`make mutants ARGS="--count 400 --seed 1"`. The tests are those of `make test` that execute the line
(ADR 0142). What was tried is kept for the state of the rules, so a run continues where one stopped.
"""

import argparse
import json
import os
import sys
import time
import uuid
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

# The server of this process serves the tests of every change: to start one takes seconds.
os.environ["PYTEST_XDIST_TESTRUNUID"] = uuid.uuid4().hex

from tests.mutants.covering import RECORDS, STEPS, Covering, digest
from tests.mutants.sample import Mutation, sampled
from tests.mutants.trying import ARGUMENTS, PASSED, Tests, anew
from tests.support.postgres import migrated_database

EQUAL = Path(__file__).with_name("equal.txt")
"""Changes without effect, one a line: path, line as it is, and line as it becomes."""
NOTICED, SURVIVED = "noticed", "SURVIVED"


class Trial:
    """Tries the changes of a sample one after the other."""

    def __init__(self, options: argparse.Namespace, mutations: Sequence[Mutation]) -> None:
        self._options = options
        self._mutations = mutations
        self._until = time.monotonic() + 60 * options.minutes
        self._kept = RECORDS / digest() / "outcomes.json"
        self._failing: set[str] = set()
        """Tests that fail without a change, too."""

    def run(self, tests: Tests) -> None:
        """Try what was not tried before, and with `--survivors` what survived."""
        for number, mutation in enumerate(self._mutations, 1):
            key, kept = key_of(mutation), self.outcomes()
            if key in kept and not (self._options.survivors and kept[key] == SURVIVED):
                continue
            if time.monotonic() > self._until:
                break
            began = time.monotonic()
            why = self._noticed_by(mutation, tests)
            outcome = NOTICED if why else SURVIVED
            self._kept.write_text(json.dumps(kept | {key: outcome}, indent=1), encoding="utf-8")
            lasted = time.monotonic() - began
            say(f"{number} {outcome} {name_of(mutation)} ({lasted:.1f} s) {why or ''}")

    def outcomes(self) -> dict[str, str]:
        """What was tried so far."""
        return json.loads(self._kept.read_text(encoding="utf-8")) if self._kept.exists() else {}

    def _noticed_by(self, mutation: Mutation, tests: Tests) -> str | None:
        """The test that fails, or that the process died or hung."""
        codes = tests.codes(mutation)
        for number in range(self._options.steps):
            covering = self._covering(number)
            asked = covering.tests(mutation.path, mutation.line)
            is_anew = not codes or covering.is_executed_on_import(mutation.path, mutation.line)
            while asked := [test for test in asked if test not in self._failing]:
                seconds = 30 + 10 * covering.seconds(asked)
                if is_anew:
                    reply = anew(mutation, asked, seconds + 30)
                else:
                    reply = tests.forked(asked, seconds, codes)
                if reply == PASSED:
                    break
                if reply not in asked or tests.forked([reply], seconds) == PASSED:
                    return reply
                self._failing.add(reply)
        return None

    @cache  # noqa: B019  # there is one for each run
    def _covering(self, number: int) -> Covering:
        return Covering(STEPS[number], self._options.workers)


def main() -> int:
    """Print the outcome of each change. Gives 1 when fewer than asked for are noticed."""
    options = _options()
    equal = set(EQUAL.read_text(encoding="utf-8").splitlines())
    mutations = [one for one in sampled(options.count, options.seed) if name_of(one) not in equal]
    trial = Trial(options, mutations)
    with migrated_database("mutants"):
        pytest.main([*ARGUMENTS, "tests"], plugins=[Tests(trial.run)])
    outcomes = trial.outcomes()
    tried = [one for one in mutations if key_of(one) in outcomes]
    survivors = [one for one in tried if outcomes[key_of(one)] == SURVIVED]
    share = 100 * (1 - len(survivors) / max(1, len(tried)))
    say(*(f"{SURVIVED} {name_of(one)}" for one in survivors))
    say(f"{len(tried)} of {len(mutations)} changes tried, {len(survivors)} survived")
    say(f"{share:.1f} % noticed")
    return int(share < options.at_least or len(tried) < len(mutations))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=400, help="lines that are broken")
    parser.add_argument("--seed", type=int, default=1, help="the sample")
    parser.add_argument("--steps", type=int, default=len(STEPS), help="of the tests, quick first")
    parser.add_argument("--survivors", action="store_true", help="try again what survived")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="then stop")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="that record")
    parser.add_argument("--at-least", type=float, default=92.0, help="percent that is noticed")
    return parser.parse_args()


def say(*lines: str) -> None:
    """Print at once."""
    sys.stderr.write("".join(f"{line}\n" for line in lines))
    sys.stderr.flush()


def key_of(mutation: Mutation) -> str:
    """What stands for a change where it is kept; several may have the same lines."""
    return f"{mutation.path} {mutation.operator} {mutation.occurrence}"


def name_of(mutation: Mutation) -> str:
    """How a change is listed."""
    before, after = mutation.change()
    return f"{mutation.path}: {before} -> {after}"


if __name__ == "__main__":
    sys.exit(main())
