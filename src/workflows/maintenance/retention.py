"""The retention workflow: a schedule starts it to remove what has expired."""

from collections import Counter
from dataclasses import dataclass

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from activities.maintenance.retention import Expired, RetentionActivities
    from runtime.families import Queue
    from workflows.policies import (
        HEARTBEAT_TIMEOUT,
        ORPHANS_TIMEOUT,
        PURGE_RETRY,
        PURGE_TIMEOUT,
    )

ROUNDS = 200
"""Batches of each kind in one execution, whose history stays small; the next execution goes on."""
ORPHANS = "orphans"


@dataclass(frozen=True, slots=True)
class Swept:
    """The state of a sweep for the execution that goes on with it."""

    left: list[str]
    removed: dict[str, int]
    failed: list[str]


@workflow.defn(name="Retention")
class Retention:
    """One sweep, batch by batch, in turn among the kinds; gives what was removed of each.

    It ends when nothing is left, or with its time: a busy hour may leave more than one execution
    removes. A kind that cannot be removed hinders no other, and fails the sweep at its end.
    """

    def __init__(self) -> None:
        self._removed: Counter[str] = Counter()
        self._failed: list[str] = []

    @workflow.run
    async def run(self, earlier: Swept | None = None) -> dict[str, int]:
        kinds = list(Expired)
        if earlier is not None:
            kinds, self._failed = [Expired(kind) for kind in earlier.left], [*earlier.failed]
            self._removed.update(earlier.removed)
        for _ in range(ROUNDS):
            kinds = [kind for kind in kinds if await self._purge(kind)]
            if not kinds:
                break
        if kinds:
            workflow.continue_as_new(
                Swept([kind.value for kind in kinds], dict(self._removed), self._failed)
            )
        await self._remove_orphans()
        if self._failed:
            raise ApplicationError(f"Not removed: {', '.join(self._failed)}", non_retryable=True)
        return dict(self._removed)

    async def _purge(self, kind: Expired) -> bool:
        """Remove old rows of a kind. True when more of it may be left."""
        try:
            count = await workflow.execute_activity_method(
                RetentionActivities.purge,
                kind,
                task_queue=Queue.BULK,
                start_to_close_timeout=PURGE_TIMEOUT,
                heartbeat_timeout=HEARTBEAT_TIMEOUT,
                retry_policy=PURGE_RETRY,
                summary=f"Remove old {kind}",
            )
        except ActivityError as error:
            self._note(kind, error)
            return False
        self._removed[kind] += count
        return count > 0

    async def _remove_orphans(self) -> None:
        try:
            self._removed[ORPHANS] = await workflow.execute_activity_method(
                RetentionActivities.remove_orphans,
                task_queue=Queue.BULK,
                start_to_close_timeout=ORPHANS_TIMEOUT,
                heartbeat_timeout=HEARTBEAT_TIMEOUT,
                retry_policy=PURGE_RETRY,
                summary="Remove objects that belong to no file",
            )
        except ActivityError as error:
            self._note(ORPHANS, error)

    def _note(self, kind: str, error: ActivityError) -> None:
        if is_cancelled_exception(error):
            raise error
        self._failed.append(kind)
