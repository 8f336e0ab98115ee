"""The grouping of failed runs: within a second of a failure its incident tells of it (ADR 0094).

Any number may run: each turn takes notes that no other has taken.
"""

from typing_extensions import override

from activities.poller import Poller
from models.automation.incidents.grouping import FAILURES_DUE, group_failures


class FailureGrouping(Poller):
    """Groups failed runs until it is stopped."""

    due = FAILURES_DUE
    prompt = False

    @override
    async def turn(self) -> bool:
        """Group some of the runs that failed; False when there were none."""
        async with self._database.transaction() as work:
            return await group_failures(work) > 0
