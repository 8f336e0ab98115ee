"""Proposing change sets, rejecting them, and letting them expire."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import insert, select, update

from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.lifecycle import commands as lifecycle
from models.core.purging import MAX_ROWS, purge
from models.workspace.changes.commands.sealing import sealed
from models.workspace.changes.errors import BeingAppliedError, ClosedChangesError
from models.workspace.changes.lifecycle import CHANGE_SETS
from models.workspace.changes.queries import (
    detail,
    find_changes,
    read_outcomes,
    status_of,
    stored_outcomes,
)
from models.workspace.changes.rules.kinds import Stake, stake_of
from models.workspace.changes.rules.operations import check_operations
from models.workspace.changes.rules.status import (
    CHANGE_LIFECYCLE,
    WAITING,
    ChangeSource,
    ChangeStatus,
    Outcome,
    ResultStatus,
)
from models.workspace.changes.shapes import ChangeSetDetail, Operation
from models.workspace.changes.tables import ChangeSet, change_set
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork

LIFETIME = timedelta(days=7)
"""The time a change set may wait to be applied."""


async def propose(  # the parts of a proposal
    work: UnitOfWork,
    actor: Actor,
    keys: KeyRing,
    change_id: Id,
    operations: Sequence[Operation],
    *,
    source: ChangeSource = ChangeSource.HAND,
    title: str | None = None,
    instruction: str | None = None,
) -> ChangeSetDetail:
    """Store a change set; nothing of it is done. Raises `ValidationError` below `operations`."""
    check_operations(operations)
    operations, credentials = sealed(keys, change_id, operations)
    content: list[JsonObject] = [
        operation.model_dump(mode="json", by_alias=True, exclude_none=True)
        for operation in operations
    ]
    row = await work.first(
        insert(change_set)
        .values(
            id=change_id,
            workspace_id=actor.workspace_id,
            source=source.value,
            title=title or _title(operations, instruction),
            instruction=instruction,
            status=CHANGE_LIFECYCLE.initial.value,
            operations=content,
            sealed_credentials=credentials,
            outcomes=stored_outcomes([_pending(operation) for operation in operations]),
            names={},
            created_by_user_id=actor.user_id,
            expires_at=work.now + LIFETIME,
            created_at=work.now,
            updated_at=work.now,
        )
        .returning(change_set),
        of=ChangeSet,
    )
    assert row is not None
    return detail(row, work.now)


def _pending(operation: Operation) -> Outcome:
    stake = stake_of(operation.kind, operation.input)
    return Outcome(ResultStatus.PENDING, needs_approval=stake is not Stake.NEVER_ASK)


def _title(operations: Sequence[Operation], instruction: str | None) -> str:
    if instruction is not None:
        return instruction[:200]
    return f"{len(operations)} change{'' if len(operations) == 1 else 's'}"


async def hold_waiting(work: UnitOfWork, actor: Actor, change_id: Id) -> ChangeSet:
    """A change set that waits to be applied, locked until the transaction ends.

    Raises `NotFoundError`, `InProgressError` while it is applied, `ConflictError` when it is
    closed.
    """
    row = await find_changes(work, actor, change_id, locked=True)
    status = status_of(row, work.now)
    if status is ChangeStatus.APPLYING:
        raise BeingAppliedError
    if status not in WAITING:
        raise ClosedChangesError(status)
    return row


async def reject(
    work: UnitOfWork, actor: Actor, change_id: Id, reason: str | None
) -> ChangeSetDetail:
    """Close a change set that waits; what was applied of it stays. Raises as `hold_waiting`."""
    row = await hold_waiting(work, actor, change_id)
    outcomes = [
        one if not one.held else Outcome(ResultStatus.SKIPPED) for one in read_outcomes(row)
    ]
    await lifecycle.finish(
        work,
        CHANGE_SETS,
        [change_id],
        ChangeStatus.REJECTED,
        outcomes=stored_outcomes(outcomes),
        rejected_reason=reason,
        sealed_credentials=None,
        updated_at=work.now,
    )
    return detail(await find_changes(work, actor, change_id), work.now)


async def expire_changes(work: UnitOfWork, limit: int = MAX_ROWS) -> int:
    """Close change sets that waited too long; how many. To be called until it gives 0."""
    old = (
        select(change_set.c.id)
        .where(change_set.c.status.in_(WAITING), change_set.c.expires_at <= work.now)
        .order_by(change_set.c.expires_at)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    ids = [row.id for row in await work.rows(old)]
    ended = await lifecycle.finish(
        work, CHANGE_SETS, ids, ChangeStatus.EXPIRED, sealed_credentials=None
    )
    return len(ended)


async def purge_changes(work: UnitOfWork, before: datetime, limit: int = MAX_ROWS) -> int:
    """Remove change sets that were closed before a moment; what they did stays."""
    old = (
        select(change_set.c.id)
        .where(change_set.c.completed_at < before)
        .order_by(change_set.c.completed_at)
    )
    return await purge(work, change_set, old, limit)


async def set_applying(work: UnitOfWork, change_id: Id, outcomes: Sequence[Outcome]) -> None:
    """Let a held change set be applied."""
    await work.execute(
        update(change_set)
        .where(change_set.c.id == change_id)
        .values(
            status=ChangeStatus.APPLYING.value,
            outcomes=stored_outcomes(outcomes),
            updated_at=work.now,
        )
    )
