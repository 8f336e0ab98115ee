"""The sweep of sums, of incidents that are over, and of alert rules."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from temporalio import activity

from models.automation.alert_rules.evaluation import evaluate_rules
from models.automation.incidents.closing import close_recovered
from models.automation.run_statistics.sums import settle_runs
from models.data.records.counts import merge_counts
from models.workspace.system.commands import merge_ended_work
from models.workspace.usage.totals import settle_totals
from runtime.database import Database, UnitOfWork

MOST_TURNS = 50
"""Transactions of one sweep; the next one goes on."""


class UsageMaintenance:
    """Keeps the totals of workspaces near the present."""

    def __init__(self, database: Database, counted_attributes: Mapping[str, Sequence[str]]) -> None:
        self._database = database
        self._counted_attributes = counted_attributes

    @activity.defn(name="settle_usage")
    async def settle_usage(self) -> dict[str, int]:
        """Bring totals up to date. Safe to repeat: a total goes on from where it is."""
        sweeps: Mapping[str, Callable[[UnitOfWork], Awaitable[int]]] = {
            "workspaces": settle_totals,
            "databases": merge_counts,
            "runs": partial(settle_runs, counted_attributes=self._counted_attributes),
            "ended_work": merge_ended_work,
            "incidents": close_recovered,
            "alerts": evaluate_rules,
        }
        counts = dict.fromkeys(sweeps, 0)
        for counter, settle in sweeps.items():
            for _ in range(MOST_TURNS):
                async with self._database.transaction() as work:
                    settled = await settle(work)
                counts[counter] += settled
                if not settled:
                    break
        return counts
