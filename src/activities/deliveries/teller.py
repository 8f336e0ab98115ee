"""The teller: makes deliveries of what the endpoints of workspaces have not been told (ADR 0057).

Any number of tellers may run: each turn locks the endpoints it tells, and leaves the others.
"""

import asyncio
import contextlib

import psycopg
import structlog
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from models.messages.webhook_endpoints.telling import (
    FIRST_WORKSPACE,
    MOST_WORKSPACES,
    tell,
    workspaces_told,
)
from runtime.database import Database

log = structlog.get_logger()

POLL_SECONDS = 1.0
"""Seconds between two looks without a notification."""


class Teller:
    """Tells until it is stopped; `wake` makes it look at once."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """Look for new events now."""
        self._wake.set()

    async def run(self) -> None:
        """Tell for ever; an unreachable database only delays it."""
        while True:
            self._wake.clear()
            try:
                busy = await self.turn()
            except (psycopg.Error, DBAPIError, PoolTimeoutError):
                log.warning("endpoints could not be told", exc_info=True)
                busy = False
            except Exception:
                log.exception("telling endpoints failed")
                busy = False
            if not busy:
                # wait_for swallows a cancel that meets a wake-up, until Python 3.12 (gh-86296).
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(POLL_SECONDS):
                        await self._wake.wait()

    async def turn(self) -> bool:
        """Look once at every workspace that has an endpoint; False when there was nothing."""
        busy, after = False, FIRST_WORKSPACE
        while True:
            async with self._database.statement() as single:
                workspaces = await workspaces_told(single, after)
            for workspace_id in workspaces:
                async with self._database.transaction() as work:
                    busy |= await tell(work, workspace_id) > 0
            if len(workspaces) < MOST_WORKSPACES:
                return busy
            after = workspaces[-1]
