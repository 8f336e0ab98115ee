"""The fork server of processes that read foreign files, ask foreign databases and write files."""

import asyncio
import ctypes
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable
from multiprocessing.context import ForkServerProcess

from runtime.observability.process_output import children_written_on

PRELOADED = (
    "runtime.processes.fork_server_garbage",
    "activities.sources.reading_process",
    "activities.sources.database_process",
    "activities.jobs.spreadsheets",
    # Its import takes longer than writing a small file.
    "openpyxl",
)

context = multiprocessing.get_context("forkserver")
"""Starts them from a server that has loaded what they need, and nothing that is secret."""
context.set_forkserver_preload(list(PRELOADED))

_PR_SET_PDEATHSIG = 1
NICENESS = 10
"""The niceness of long computations: requests that a client waits for take precedence."""


def process_of(
    function: Callable[..., None], *arguments: object, niceness: int = 0
) -> ForkServerProcess:
    """A process that calls a function, and ends at the latest with this one."""
    return context.Process(target=_called, args=(niceness, function, *arguments), daemon=True)


async def start(process: ForkServerProcess) -> None:
    """Start a process; what it writes, and the fork server if it is started now, is in our log."""
    await asyncio.to_thread(_start, process)


def _start(process: ForkServerProcess) -> None:
    with children_written_on():
        process.start()


async def run_in_process(
    function: Callable[..., None], *arguments: object, niceness: int = NICENESS
) -> None:
    """Call a function in a process of its own, which ends when this is cancelled.

    For long computations: in a thread they would slow down all other work of this process. Raises
    RuntimeError when the function raises, or its process is killed.
    """
    process = process_of(function, *arguments, niceness=niceness)
    await start(process)
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(process.sentinel, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(process.sentinel)
        process.kill()
        # Reaped even if this is cancelled: a zombie would keep its number.
        await asyncio.shield(asyncio.to_thread(process.join))
    if process.exitcode:
        raise RuntimeError(f"A process of {function.__name__} ended with {process.exitcode}.")


def _called(niceness: int, function: Callable[..., None], *arguments: object) -> None:
    if sys.platform == "linux":
        # The fork server ends with the process that uses it, also with one that is killed.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.nice(niceness)
    function(*arguments)
