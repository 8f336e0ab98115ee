"""The relay: delivers the outbox to Temporal, fairly between workspaces (design sections 1 and 3).

Any number of relays may run. A row is claimed, delivered, then deleted; a relay that dies in
between leaves a claim that expires, and the repeated delivery is absorbed by the workflow id.
"""

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import psycopg
import structlog
from temporalio.service import RPCError

from activities.outbox.claims import CLAIM_NEXT, NOT_BEGUN, PUT_BACK
from activities.outbox.deliveries import Delivery
from models.core.base import Id
from runtime.database import Database
from runtime.families import Family
from runtime.outbox import Intent

log = structlog.get_logger()

RUNNING_CAP = 200
"""Runs of one workspace that may be running or about to begin when another is started."""
BATCH = 20
"""Rows claimed at once, and so the deliveries under way at once."""
STARTING = 8
"""Runs that a relay has started and that have not begun. What Temporal queues it no longer deals
out in turn, so the line stays here: just long enough that the workers always find work."""
STARTING_OF_ONE = 1
"""How many of them may be of one workspace, so that another's need not wait for their begin."""
COMPANY_SECONDS = 5.0
"""For so long after its last start a workspace is reckoned with: one that is alone has all."""
NOTICE_SECONDS = 0.005
"""How soon a relay that has no more room sees that a run has begun."""
LOST_SECONDS = 2.0
"""When a run that has not begun no longer keeps others from starting."""
POLL_SECONDS = 1.0
"""The fallback when a notification was lost."""
LONGEST_BACKOFF = timedelta(seconds=5)


class Relay:
    """Delivers until stopped; `wake` makes it look at once."""

    def __init__(
        self,
        database: Database,
        deliveries: Mapping[Intent, Delivery],
        *,
        running_cap: int = RUNNING_CAP,
        starting: int = STARTING,
        starting_of_one: int = STARTING_OF_ONE,
    ) -> None:
        self._database = database
        self._deliveries = deliveries
        self._running_cap = running_cap
        self._most_starting = starting
        self._most_of_one = starting_of_one
        self._wake = asyncio.Event()
        self._under_way: set[asyncio.Task[None]] = set()
        self._delivered: list[int] = []
        self._starting: dict[Id, tuple[Id, float]] = {}
        """Runs that were started: of which workspace, and until when their begin is waited for."""
        self._company: dict[Id, float] = {}
        """The workspaces that started runs, and until when they are reckoned with."""

    def wake(self) -> None:
        """Look for new rows now."""
        self._wake.set()

    async def run(self) -> None:
        """Claim and deliver for ever; an unreachable database or Temporal only delays delivery."""
        while True:
            try:
                await self._turn()
            except psycopg.Error:
                log.warning("the outbox could not be read", exc_info=True)
                await asyncio.sleep(POLL_SECONDS)
            except Exception:
                # Such as a MemoryError, which may meet any task of a worker at its limit.
                log.exception("the relay failed")
                await asyncio.sleep(POLL_SECONDS)

    async def _turn(self) -> None:
        self._wake.clear()
        room = BATCH - len(self._under_way)
        claimed = await self._claim(room)
        for row in claimed:
            if row.intent == Intent.START and row.family == Family.AUTOMATION_RUN:
                self._note_start(row.workspace_id, row.subject_id)
            task = asyncio.create_task(self._deliver(row))
            self._under_way.add(task)
            task.add_done_callback(self._done)
        if len(claimed) < room or len(self._under_way) >= BATCH:
            await self._rest()

    def _note_start(self, workspace_id: Id, run_id: Id) -> None:
        now = time.monotonic()
        self._starting[run_id] = workspace_id, now + LOST_SECONDS
        self._company[workspace_id] = now + COMPANY_SECONDS

    def _share(self) -> int:
        """How many runs of one workspace may be about to begin now."""
        now = time.monotonic()
        self._company = {space: until for space, until in self._company.items() if until > now}
        return self._most_of_one if len(self._company) > 1 else self._most_starting

    async def _rest(self) -> None:
        """Wait until there is something to deliver, or room to deliver it."""
        until = time.monotonic() + POLL_SECONDS
        while not self._wake.is_set() and time.monotonic() < until:
            # wait_for swallows a cancel that meets a wake-up, until Python 3.12 (gh-86296).
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(NOTICE_SECONDS if self._starting else POLL_SECONDS):
                    await self._wake.wait()
            if self._starting and await self._notice_begun():
                return

    async def _notice_begun(self) -> bool:
        """Make room for as many runs as have begun, or have been waited for too long; whether any
        has."""
        before = self._starting
        async with self._database.statement() as work:
            rows = await NOT_BEGUN.rows(work, {"run_ids": list(before)})
        now, queued = time.monotonic(), {row.id for row in rows}
        self._starting = {
            run_id: (workspace_id, until)
            for run_id, (workspace_id, until) in before.items()
            if run_id in queued and until > now
        }
        return len(self._starting) < len(before)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        self._wake.set()

    async def _claim(self, limit: int) -> Sequence[Any]:
        """Delete what was delivered since the last time, and claim what is next."""
        delivered = list(self._delivered)
        parameters = {
            "limit": limit,
            "starts": self._most_starting - len(self._starting),
            "of_one": self._share(),
            "starting": [workspace_id for workspace_id, _ in self._starting.values()],
            "cap": self._running_cap,
            "delivered": delivered,
        }
        async with self._database.statement() as work:
            rows = await CLAIM_NEXT.rows(work, parameters)
        del self._delivered[: len(delivered)]
        return rows

    async def _deliver(self, row: Any) -> None:
        try:
            await self._deliveries[Intent(row.intent)](row)
        except RPCError as error:
            log.warning("Temporal did not take an intent", id=row.id, code=error.status.name)
            await self._put_back(row)
        except Exception:
            log.exception("an intent could not be delivered", id=row.id)
            await self._put_back(row)
        else:
            self._delivered.append(row.id)

    async def _put_back(self, row: Any) -> None:
        backoff = min(LONGEST_BACKOFF, timedelta(seconds=0.1 * 2 ** min(row.attempts, 10)))
        # Without this the claim itself runs out, only later.
        with contextlib.suppress(psycopg.Error):
            async with self._database.statement() as work:
                await PUT_BACK.execute(work, {"row_id": row.id, "backoff": backoff})
