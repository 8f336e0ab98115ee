"""Jobs that only count, for tests of the work around their chunks."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from typing_extensions import override

from activities.jobs.transactions import Chunks
from models.core.base import JsonObject
from models.messages.jobs.store import record_progress
from runtime.database import UnitOfWork


@dataclass
class Counting(Chunks):
    """Counts to the job's `to`, one chunk each, and takes one back per undo."""

    raises: dict[int, list[Exception]] = field(default_factory=dict)
    calls: list[int] = field(default_factory=list)
    hold: asyncio.Event | None = None

    @override
    async def advance(self, work: UnitOfWork, job: Any) -> JsonObject | None:
        done = job.progress.get("done", 0)
        self.calls.append(done)
        if self.hold is not None:
            await self.hold.wait()
        if self.raises.get(done):
            # What a failing chunk wrote must not stay.
            await record_progress(work, job.id, {"done": 1000})
            raise self.raises[done].pop()
        return {"done": done + 1} if done + 1 < job.input["to"] else None

    @override
    async def result(self, work: UnitOfWork, job: Any) -> JsonObject:
        return {"counted": job.input["to"]}

    @override
    async def undo(self, work: UnitOfWork, job: Any) -> bool:
        left = max(0, job.progress.get("done", 0) - 1)
        await record_progress(work, job.id, {"done": left})
        return left == 0
