"""The `workspace` command in a process forked from one that has imported what it needs.

To import it anew takes each process two seconds.
"""

import asyncio
import multiprocessing
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from activities.sources.processes import PRELOADED
from tests.support.patience import ENOUGH

_forks = multiprocessing.get_context("forkserver")
# A process has one such server: the last list that it is given counts.
_forks.set_forkserver_preload(
    [*PRELOADED, "api.app", "cli.processes", "cli.worker_process", "uvicorn", "uvloop"]
)


class Forked:
    """A process that runs the command."""

    def __init__(self, process: ForkServerProcess) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        assert self._process.pid is not None, "it was started"
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative for a signal."""
        return self._process.exitcode

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()

    async def ended(self) -> int:
        """The exit code, once there is one."""
        return await asyncio.to_thread(self.wait)

    def wait(self) -> int:
        """The exit code, once there is one, for a test that has no event loop."""
        self._process.join(ENOUGH)
        assert self.exit_code is not None, f"it still runs after {ENOUGH} s"
        return self.exit_code


def forked(target: Callable[..., None], *arguments: object) -> Forked:
    """Start a function of a module in a process of its own."""
    process = _forks.Process(target=_in_fork, args=(target, *arguments))
    process.start()
    return Forked(process)


def _in_fork(target: Callable[..., None], *arguments: object) -> None:
    # Its own children are forked from what the product loads for them.
    _forks.set_forkserver_preload(list(PRELOADED))
    target(*arguments)


def workspace(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    *,
    given: Path = Path(os.devnull),
    out: Path,
    err: Path | None = None,
    prepared: str = "",
) -> Forked:
    """Start the command after some `prepared` Python, with files as its standard streams.

    Without `err`, errors go where its output goes.
    """
    streams = (given, out, err or out)
    return forked(_run, arguments, environment, streams, prepared)


def _run(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    streams: tuple[Path, Path, Path],
    prepared: str,
) -> None:
    for number, path in enumerate(streams):
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND if number else os.O_RDONLY
        os.dup2(os.open(path, flags, 0o600), number)
    sys.stdin = os.fdopen(0)
    sys.argv = ["workspace", *arguments]
    os.environ.clear()
    os.environ.update(environment)
    exec(prepared, {})  # noqa: S102  # the test's own
    from cli.main import main  # noqa: PLC0415  # it looks at the environment

    main()
