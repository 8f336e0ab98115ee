"""The memory of processes while a block runs."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import psutil

_PAUSE = 0.05


@dataclass(slots=True)
class Memory:
    """MiB held before, and the highest value since."""

    before: float
    peak: float

    @property
    def growth(self) -> float:
        return self.peak - self.before


@asynccontextmanager
async def watched(pids: Iterable[int]) -> AsyncIterator[Memory]:
    """Measure these processes and their children while the block runs."""
    processes = [psutil.Process(pid) for pid in pids]
    held = _held(processes)
    memory = Memory(held, held)

    async def watch() -> None:
        while True:
            await asyncio.sleep(_PAUSE)
            memory.peak = max(memory.peak, await asyncio.to_thread(_held, processes))

    task = asyncio.create_task(watch())
    try:
        yield memory
    finally:
        task.cancel()


def _held(processes: Iterable[psutil.Process]) -> float:
    """The proportional set sizes: a page that processes share counts once."""
    total = 0
    for parent in processes:
        for process in (parent, *parent.children(recursive=True)):
            try:
                total += process.memory_full_info().pss
            except psutil.NoSuchProcess:
                continue
    return total / 1024**2
