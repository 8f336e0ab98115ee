"""The workflow that ends a countdown or a pomodoro when its time is up (ADR 0041)."""

import asyncio
from datetime import timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.time_entries import DueCall, TimerActivities
    from runtime.temporal.workflow_kinds import TIME_MOVED
    from workflows.calls import end_as_row, transact


_SUMMARY = "Time entry due"


@workflow.defn(name="TimerDue")
class TimerDue:
    """One entry; the argument is its id.

    The row says when the entry is due, and whether it still runs. It is asked whenever the timer
    fires, and whenever a signal says that the time has moved.
    """

    def __init__(self) -> None:
        self._moved = asyncio.Event()

    @workflow.signal(name=TIME_MOVED)
    def time_moved(self) -> None:
        """Ask the row again."""
        self._moved.set()

    @workflow.run
    async def run(self, entry_id: str) -> str:
        while True:
            # Before the row is read: a signal that comes during the read must lead to another one.
            self._moved.clear()
            reply = await transact(
                TimerActivities.end_when_due, DueCall(entry_id, workflow.time()), _SUMMARY
            )
            if not reply.open:
                return await end_as_row(reply.status, "The time entry")
            await self._until_moved_within(reply.seconds)

    async def _until_moved_within(self, seconds: float | None) -> None:
        """Wait until the due time changes, at most `seconds`; a paused timer has no limit."""
        timeout = None if seconds is None else timedelta(seconds=seconds)
        try:
            await workflow.wait_condition(
                self._moved.is_set, timeout=timeout, timeout_summary=_SUMMARY
            )
        except TimeoutError:
            return
