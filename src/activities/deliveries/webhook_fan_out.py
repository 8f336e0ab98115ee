"""The fan-out: makes deliveries of the events that endpoints have not been sent (ADR 0057).

Any number may run: each turn locks the endpoints it serves, and leaves the others.
"""

from typing_extensions import override

from activities.poller import Poller
from models.messages.webhook_endpoints.fan_out import (
    ENDPOINTS_BEHIND,
    FIRST_WORKSPACE,
    MOST_WORKSPACES,
    make_deliveries,
    workspaces_behind,
)


class WebhookFanOut(Poller):
    """Makes deliveries until it is stopped."""

    due = ENDPOINTS_BEHIND
    prompt = False

    @override
    async def turn(self) -> bool:
        """Tell the endpoints that are behind; False when there were none."""
        busy, after = False, FIRST_WORKSPACE
        while True:
            async with self._database.statement() as single:
                workspaces = await workspaces_behind(single, after)
            for workspace_id in workspaces:
                async with self._database.transaction() as work:
                    busy |= await make_deliveries(work, workspace_id) > 0
            if len(workspaces) < MOST_WORKSPACES:
                return busy
            after = workspaces[-1]
