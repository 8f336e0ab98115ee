"""The progress of a step of a run: in our row for users, in heartbeats for operators."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

REPORT_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class StepReply:
    """The reply of a step: `continue` or `closed`, and what it counted."""

    status: str
    counts: Mapping[str, int] = field(default_factory=dict)


@asynccontextmanager
async def reporting(
    count: Callable[[], int], report: Callable[[int], Awaitable[None]]
) -> AsyncIterator[None]:
    """While the block runs, report once a second what is counted, if it has changed.

    Raises at its end what `report` raised.
    """
    over = asyncio.Event()

    async def follow() -> None:
        last = count()
        while not over.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), REPORT_SECONDS)
            found = count()
            if found != last and not over.is_set():
                await report(found)
                last = found

    task = asyncio.create_task(follow())
    try:
        yield
    finally:
        over.set()
        await task
