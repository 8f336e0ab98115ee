"""Poller of pauses (ADR 0097) and circuit breakers (ADR 0098) that are due.

Any number may run: each turn takes a pause and a breaker that no other has taken.
"""

from typing_extensions import override

from activities.poller import Poller
from models.automation.circuit_breakers.trials import advance
from models.core.pauses.release import attend
from runtime.database import Database


class PausePoller(Poller):
    """Moves pauses and circuit breakers on until it is stopped."""

    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database = database

    @override
    async def turn(self) -> bool:
        """Do the next part of a pause and of a breaker that are due; False when none is."""
        async with self._database.transaction() as work:
            attended = await attend(work)
        async with self._database.transaction() as work:
            return await advance(work) or attended
