"""Shares of the slots of a queue: a workspace takes one while it holds fewer than are free.

So one that asks slow servers holds half of the slots at most, a second one half of the rest, and a
slot is free for the next one. Calls over a share go to another queue, where they wait (ADR 0075).
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor
from typing_extensions import override

from runtime.fairness import workspace_of

OVERFLOWED = "overflowed"
"""The type of the error of a call over a share, not begun; it says the attempts made before."""


class SlotShares:
    """The slots of one queue in one process, by who holds them."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._held = Counter[str]()

    @contextmanager
    def slot(self, workspace: str) -> Iterator[bool]:
        """Hold a slot in the block; False where the workspace holds its share."""
        within = self._held[workspace] < self._slots - self._held.total()
        if within:
            self._held[workspace] += 1
        try:
            yield within
        finally:
            if within:
                self._held[workspace] -= 1
                if not self._held[workspace]:
                    # A worker sees many workspaces in its life.
                    del self._held[workspace]


class SlotShareInterceptor(Interceptor):
    """Sends calls over the share of their workspace away."""

    def __init__(self, slots: int) -> None:
        self._shares = SlotShares(slots)

    @override
    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Inbound(next, self._shares)


class _Inbound(ActivityInboundInterceptor):
    def __init__(self, following: ActivityInboundInterceptor, shares: SlotShares) -> None:
        super().__init__(following)
        self._shares = shares

    @override
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        info = activity.info()
        workspace = workspace_of(info, input.headers)
        if info.is_local or not workspace:
            return await super().execute_activity(input)
        with self._shares.slot(workspace) as within:
            if not within:
                raise ApplicationError(
                    "The workspace holds its share of the slots.",
                    info.attempt - 1,
                    type=OVERFLOWED,
                    non_retryable=True,
                    category=ApplicationErrorCategory.BENIGN,
                )
            return await super().execute_activity(input)
