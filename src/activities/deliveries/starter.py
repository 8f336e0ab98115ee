"""The starter: gives the next deliveries of every line an execution (ADR 0070).

Any number may run: each turn serves a workspace alone, and leaves the ones another serves.
"""

from typing_extensions import override

from activities.poller import Poller
from models.messages.deliveries.starts import STARTS_DUE, start_deliveries, workspaces_to_start


class DeliveryStarter(Poller):
    """Starts deliveries until it is stopped."""

    due = STARTS_DUE

    @override
    async def turn(self) -> bool:
        """Start what is due where there is room; False when nothing was."""
        async with self._database.statement() as single:
            workspaces = await workspaces_to_start(single)
        started = 0
        for workspace_id in workspaces:
            async with self._database.transaction() as work:
                started += await start_deliveries(work, workspace_id)
        return started > 0
