"""Poller of pauses (ADR 0097) and circuit breakers (ADR 0098) that are due.

Any number may run: each turn takes a pause and a breaker that no other has taken.
"""

from sqlalchemy import or_
from typing_extensions import override

from activities.poller import Poller
from models.automation.circuit_breakers.trials import BREAKER_DUE, advance
from models.core.pauses.release import PAUSE_DUE, attend


class PausePoller(Poller):
    """Moves pauses and circuit breakers on until it is stopped."""

    due = or_(PAUSE_DUE, BREAKER_DUE)

    @override
    async def turn(self) -> bool:
        """Do the next part of a pause and of a breaker that are due; False when none is."""
        async with self._database.transaction() as work:
            attended = await attend(work)
        async with self._database.transaction() as work:
            return await advance(work) or attended
