"""Tests run with a line that is broken: in a fork of a process that has found them, or anew.

To import the project takes seconds, so a process that has done so is forked for each change, and
there the changed functions get their new code. What is executed on import needs a new process:
`python -m tests.mutants.trying`, which reads the changed text in place of the file.
"""

import contextlib
import gc
import json
import os
import resource
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from importlib.machinery import SourceFileLoader
from types import CodeType, FunctionType
from typing import Any

import pytest

from tests.mutants.sample import ROOT, Mutation

MEMORY = 8 << 30
"""Bytes of address space of a test process: a broken bound may ask for all there is."""
ARGUMENTS = ("-n", "0", "-p", "no:cacheprovider", "-m", "not long")
PASSED = "passed"
DIED = "died or could not import"
HUNG = "hung"

Codes = Sequence[tuple[FunctionType, CodeType]]


class Tests:
    """A plugin of pytest: has all tests found, and then does something else than run them."""

    __test__ = False

    def __init__(self, then: Callable[["Tests"], None]) -> None:
        self._then = then
        self._functions: list[FunctionType] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note functions before the garbage collector leaves them out."""
        self._session = session
        self._items = {item.nodeid: item for item in session.items}
        self._functions = [one for one in gc.get_objects() if isinstance(one, FunctionType)]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> bool:
        """Run no test, but what was asked for."""
        self._then(self)
        return True

    def codes(self, mutation: Mutation) -> Codes:
        """The functions whose code a mutation changes, with their new one."""
        path = ROOT / mutation.path
        before = compile(path.read_text(encoding="utf-8"), str(path), "exec", dont_inherit=True)
        changed = dict(_changes(before, _compiled(mutation)))
        return [
            (function, changed[function.__code__])
            for function in self._functions
            if function.__code__ in changed
            and function.__code__.co_filename == str(path)
            and function.__code__.co_freevars == changed[function.__code__].co_freevars
        ]

    def forked(self, tests: Sequence[str], seconds: float, codes: Codes = ()) -> str:
        """The first of the tests that fails in a fork; or that it passed, died or hung."""
        reading, writing = os.pipe()
        pid = os.fork()
        if not pid:
            try:
                os.setsid()
                _limit_memory()
                for function, code in codes:
                    function.__code__ = code
                os.write(writing, self.first_failing(tests).encode())
            finally:
                os._exit(0)
        os.close(writing)
        try:
            return _reply(reading, pid, seconds)
        finally:
            os.waitpid(pid, 0)

    def first_failing(self, tests: Sequence[str]) -> str:
        """Run tests in their order until one fails."""
        self._session.config.pluginmanager.unregister(name="terminalreporter")
        items = [self._items[test] for test in tests if test in self._items]
        try:
            for item, following in zip(items, [*items[1:], None], strict=True):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if self._session.testsfailed:
                    return item.nodeid
        finally:
            with contextlib.suppress(Exception):
                self._session._setupstate.teardown_exact(None)
        return PASSED


def anew(mutation: Mutation, tests: Sequence[str], seconds: float) -> str:
    """The first of the tests that fails in a new process, which imports the changed module."""
    seconds += 30  # It finds the tests first.
    reading, writing = os.pipe()
    process = subprocess.Popen(  # our own interpreter and module
        [sys.executable, "-m", "tests.mutants.trying"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(writing,),
        start_new_session=True,
    )
    os.close(writing)
    asked = {"mutation": asdict(mutation), "tests": tests, "writing": writing}
    assert process.stdin is not None
    with process.stdin:
        process.stdin.write(json.dumps(asked).encode())
    try:
        return _reply(reading, process.pid, seconds)
    finally:
        process.wait()


def _reply(reading: int, pid: int, seconds: float) -> str:
    try:
        if not select.select([reading], [], [], seconds)[0]:
            return HUNG
        # It has a little time to remove its database.
        reply = os.read(reading, 65_536).decode()
        select.select([reading], [], [], 30)
        return reply or DIED
    finally:
        os.close(reading)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


def _changes(before: CodeType, after: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    if before != after:
        yield before, after
        ours, theirs = (
            [one for one in code.co_consts if isinstance(one, CodeType)] for code in (before, after)
        )
        for one, other in zip(ours, theirs, strict=False):
            yield from _changes(one, other)


def _compiled(mutation: Mutation) -> CodeType:
    return compile(mutation.source(), str(ROOT / mutation.path), "exec", dont_inherit=True)


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def main() -> None:
    """Run the tests that a parent asks for."""
    asked: Any = json.load(sys.stdin)
    mutation = Mutation(**asked["mutation"])
    read = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> CodeType | None:
        if loader.path == str(ROOT / mutation.path):
            return _compiled(mutation)
        return read(loader, name)

    SourceFileLoader.get_code = get_code  # type: ignore[assignment, method-assign]
    _limit_memory()

    def run(tests: Tests) -> None:
        os.write(asked["writing"], tests.first_failing(asked["tests"]).encode())

    files = sorted({test.partition("::")[0] for test in asked["tests"]})
    pytest.main([*ARGUMENTS, *files], plugins=[Tests(run)])


if __name__ == "__main__":
    main()
