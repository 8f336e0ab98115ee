"""The fork server of processes that read foreign files, ask foreign databases and write files."""

import asyncio
import multiprocessing
import os
from collections.abc import Callable

PRELOADED = (
    "runtime.fork_server_garbage",
    "activities.sources.reading_process",
    "activities.sources.databases.process",
    "activities.jobs.spreadsheets",
    # Its import takes longer than writing a small file.
    "openpyxl",
)

context = multiprocessing.get_context("forkserver")
"""Starts them from a server that has loaded what they need, and nothing that is secret."""
context.set_forkserver_preload(list(PRELOADED))

NICENESS = 10
"""Of long computations: whoever waits for an answer goes first."""


async def run_in_process(
    function: Callable[..., None], *arguments: object, niceness: int = NICENESS
) -> None:
    """Call a function in a process of its own, which ends when this is cancelled.

    For long computations: in a thread they would slow down all other work of this process. Raises
    RuntimeError when the function raises, or its process is killed.
    """
    process = context.Process(target=_called, args=(niceness, function, *arguments), daemon=True)
    await asyncio.to_thread(process.start)
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(process.sentinel, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(process.sentinel)
        process.kill()
        await asyncio.shield(asyncio.to_thread(process.join))
    if process.exitcode:
        raise RuntimeError(f"A process of {function.__name__} ended with {process.exitcode}.")


def _called(niceness: int, function: Callable[..., None], *arguments: object) -> None:
    os.nice(niceness)
    function(*arguments)
