"""Proposing, rejecting and applying change sets; credentials are sealed while one waits."""

import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import sqlalchemy as sa

from models.automation.automations.rules.language.bindings import written
from models.core.access.rules import Actor, Scope
from models.core.base import Id, JsonObject
from models.core.http_requests import GIVE_AGAIN, Credential, Place, credentials_in, with_values
from models.core.lifecycle import commands as lifecycle
from models.core.problems import refuse
from models.core.purging import MAX_ROWS, Retention
from models.messages.jobs.store import JobRow, accept_job, job_actor
from models.workspace.changes import queries, rules
from models.workspace.changes.operations import carry_out, check_operations, named, record_refs
from models.workspace.changes.queries import CHANGE_SETS, ChangeSet, change_set, credentials_place
from models.workspace.changes.shapes import ApplyChanges, ApplyResult, ChangeSetDetail, Operation
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, Detail, InProgressError, PlatformError, ValidationError
from runtime.temporal.workflow_kinds import WorkflowKind


class ClosedChangesError(ConflictError):
    """A change set that was applied, was rejected or has expired cannot be changed."""

    def __init__(self, status: rules.ChangeStatus) -> None:
        super().__init__(f"The changes are {status.replace('_', ' ')} and can't be changed.")


class BeingAppliedError(InProgressError):
    """Another request is applying the change set."""

    def __init__(self) -> None:
        super().__init__("The changes are being applied. Fetch them again for progress.")


LIFETIME = timedelta(days=7)
"""The time a change set may wait to be applied."""


async def propose(
    work: UnitOfWork,
    actor: Actor,
    keys: KeyRing,
    change_id: Id,
    operations: Sequence[Operation],
    *,
    source: rules.ChangeSource = rules.ChangeSource.HAND,
    title: str | None = None,
    instruction: str | None = None,
) -> ChangeSetDetail:
    """Store a change set; nothing of it is done. Raises `ValidationError` below `operations`."""
    check_operations(operations)
    operations, credentials = sealed_operations(keys, change_id, operations)
    content: list[JsonObject] = [
        operation.model_dump(mode="json", by_alias=True, exclude_none=True)
        for operation in operations
    ]
    row = await work.first(
        sa.insert(change_set)
        .values(
            id=change_id,
            workspace_id=actor.workspace_id,
            source=source.value,
            title=title or _title(operations, instruction),
            instruction=instruction,
            status=rules.CHANGE_LIFECYCLE.initial.value,
            operations=content,
            sealed_credentials=credentials,
            outcomes=queries.stored_outcomes([_pending(operation) for operation in operations]),
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
    return queries.detail(row, work.now, actor)


def _pending(operation: Operation) -> rules.Outcome:
    stake = rules.stake_of(operation.kind, operation.input)
    return rules.Outcome(
        rules.ResultStatus.PENDING, needs_approval=stake is not rules.Stake.NEVER_ASK
    )


def _title(operations: Sequence[Operation], instruction: str | None) -> str:
    if instruction is not None:
        return instruction[:200]
    return f"{len(operations)} change{'' if len(operations) == 1 else 's'}"


async def hold_waiting(work: UnitOfWork, actor: Actor, change_id: Id) -> ChangeSet:
    """A change set that waits to be applied, locked until the transaction ends.

    Raises `NotFoundError`, `InProgressError` while it is applied, `ConflictError` when it is
    closed.
    """
    row = await queries.AI_RUNS.find(work, actor, change_id, lock=True)
    status = queries.status_of(row, work.now)
    if status is rules.ChangeStatus.APPLYING:
        raise BeingAppliedError
    if status not in rules.WAITING:
        raise ClosedChangesError(status)
    return row


async def reject(
    work: UnitOfWork, actor: Actor, change_id: Id, reason: str | None
) -> ChangeSetDetail:
    """Close a change set that waits; what was applied of it stays. Raises as `hold_waiting`."""
    row = await hold_waiting(work, actor, change_id)
    outcomes = [
        one if not one.held else rules.Outcome(rules.ResultStatus.SKIPPED)
        for one in queries.read_outcomes(row)
    ]
    await lifecycle.finish(
        work,
        CHANGE_SETS,
        [change_id],
        rules.ChangeStatus.REJECTED,
        outcomes=queries.stored_outcomes(outcomes),
        rejected_reason=reason,
        sealed_credentials=None,
        sealed_request=None,
        updated_at=work.now,
    )
    return queries.detail(await queries.AI_RUNS.find(work, actor, change_id), work.now, actor)


async def expire_changes(work: UnitOfWork, limit: int = MAX_ROWS) -> int:
    """Close change sets that waited too long; returns their number. Call it until it returns 0."""
    old = (
        sa.select(change_set.c.id)
        .where(change_set.c.status.in_(rules.WAITING), change_set.c.expires_at <= work.now)
        .order_by(change_set.c.expires_at)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    ids = [row.id for row in await work.rows(old)]
    rows = await lifecycle.finish(
        work,
        CHANGE_SETS,
        ids,
        rules.ChangeStatus.EXPIRED,
        sealed_credentials=None,
        sealed_request=None,
    )
    return len(rows)


purge_changes = Retention(change_set, change_set.c.completed_at)
"""Change sets that are closed; what they did stays."""


async def set_applying(work: UnitOfWork, change_id: Id, outcomes: Sequence[rules.Outcome]) -> None:
    """Let a held change set be applied."""
    await work.execute(
        sa.update(change_set)
        .where(change_set.c.id == change_id)
        .values(
            status=rules.ChangeStatus.APPLYING.value,
            outcomes=queries.stored_outcomes(outcomes),
            updated_at=work.now,
        )
    )


async def accept_application(
    work: UnitOfWork, actor: Actor, change_id: Id, job_id: Id, body: ApplyChanges
) -> None:
    """Accept the job that applies what is approved.

    Of requests at the same time one is accepted. Raises as `hold_waiting`, and `ValidationError`
    for an index of nothing.
    """
    row = await hold_waiting(work, actor, change_id)
    _check_indexes(row, body)
    await set_applying(work, change_id, queries.read_outcomes(row))
    await accept_job(
        work,
        actor,
        WorkflowKind.CHANGE_APPLICATION,
        job_id,
        change_id,
        summary=f"Apply {len(row.operations)} operations",
        input={
            "scopes": sorted(actor.scopes),
            "every": body.approve_all,
            "indexes": sorted(set(body.approved_indexes or ())),
        },
    )


def _check_indexes(row: ChangeSet, body: ApplyChanges) -> None:
    for place, index in enumerate(body.approved_indexes or ()):
        if index >= len(row.operations):
            raise ValidationError.at(
                f"approvedIndexes.{place}", f"Must be less than {len(row.operations)}."
            )


async def applier(work: UnitOfWork, job: JobRow) -> Actor:
    """The asker of a job, with the scopes that their credential had and their role still has."""
    actor = await job_actor(work, job)
    return replace(actor, scopes=actor.scopes & {Scope(one) for one in job.input["scopes"]})


async def apply_next(work: UnitOfWork, job: JobRow, keys: KeyRing) -> JsonObject | None:
    """Carry out the next operation that may be; None when it was the last."""
    row = await _held(work, job.subject_id)
    operations, outcomes = opened_operations(keys, row), queries.read_outcomes(row)
    approval = rules.Approval(job.input["every"], frozenset(job.input["indexes"]))
    uses, names, tried = _uses(operations), dict(row.names), False
    for index in range(job.progress.get("next", 0), len(operations)):
        operation = operations[index]
        if not outcomes[index].held:
            continue
        stake = rules.stake_of(operation.kind, operation.input)
        waiting = rules.waits_for(index, uses[index], outcomes, stake, approval)
        if waiting is not None:
            outcomes[index] = waiting
            continue
        if tried:
            await _write(work, row.id, outcomes, rules.ChangeStatus.APPLYING, names)
            return {"next": index}
        actor = await applier(work, job)
        known = {name: Id(value) for name, value in names.items()}
        outcomes[index], made = await _tried(work, actor, keys, operation, known)
        names |= {name: str(id_) for name, id_ in made.items()}
        tried = True
    await _write(work, row.id, outcomes, rules.end_of(outcomes), names)
    return None


async def stop_applying(work: UnitOfWork, job: JobRow) -> None:
    """Let operations that were not applied wait again, when the job failed."""
    row = await _held(work, job.subject_id)
    if row.status == rules.ChangeStatus.APPLYING:
        outcomes = queries.read_outcomes(row)
        await _write(work, row.id, outcomes, rules.end_of(outcomes), row.names)


async def try_out(
    work: UnitOfWork, actor: Actor, keys: KeyRing, change_id: Id, body: ApplyChanges
) -> ApplyResult:
    """Try out applying: what would be applied is `pending`, and nothing is kept.

    Raises what `accept_application` raises.
    """
    row = await hold_waiting(work, actor, change_id)
    _check_indexes(row, body)
    outcomes = await _tried_out(work, actor, keys, row, body)
    return queries.apply_result(row, outcomes, rules.ChangeStatus(row.status))


async def _tried_out(
    work: UnitOfWork, actor: Actor, keys: KeyRing, row: ChangeSet, body: ApplyChanges
) -> Sequence[rules.Outcome]:
    operations, before = opened_operations(keys, row), queries.read_outcomes(row)
    approval = rules.Approval(body.approve_all, frozenset(body.approved_indexes or ()))
    uses, outcomes = _uses(operations), list(before)
    names = {name: Id(value) for name, value in row.names.items()}
    with suppress(_NothingKeptError):
        async with work.savepoint():
            for index, operation in enumerate(operations):
                if not before[index].held:
                    continue
                stake = rules.stake_of(operation.kind, operation.input)
                waiting = rules.waits_for(index, uses[index], outcomes, stake, approval)
                if waiting is not None:
                    outcomes[index] = waiting
                    continue
                outcomes[index], made = await _tried(work, actor, keys, operation, names)
                names |= made
            raise _NothingKeptError
    return [
        after
        if not was.held or after.status is not rules.ResultStatus.APPLIED
        else rules.Outcome(rules.ResultStatus.PENDING)
        for was, after in zip(before, outcomes, strict=True)
    ]


class _NothingKeptError(Exception):
    """Ends the savepoint of a trial."""

    retryable = False


async def _tried(
    work: UnitOfWork, actor: Actor, keys: KeyRing, operation: Operation, names: dict[str, Id]
) -> tuple[rules.Outcome, dict[str, Id]]:
    """Carry out an operation and give its outcome; one that is refused leaves nothing."""
    try:
        async with work.savepoint():
            made = await carry_out(work, actor, keys, operation, names)
    except PlatformError as error:
        return rules.Outcome(rules.ResultStatus.FAILED, error=error.message[:1_000]), {}
    applied = rules.Outcome(rules.ResultStatus.APPLIED, subject_id=str(made.subject_id))
    return applied, named(operation, made)


def _uses(operations: Sequence[Operation]) -> list[Collection[int]]:
    """For every operation, the indexes of those whose results it names."""
    made_by: dict[str, int] = {}
    uses: list[Collection[int]] = []
    for index, one in enumerate(operations):
        uses.append({made_by[ref] for ref in rules.refs_in(one.input) if ref in made_by})
        for name in ([] if one.ref is None else [one.ref]) + record_refs(one):
            made_by[name] = index
    return uses


async def _held(work: UnitOfWork, change_id: Id) -> ChangeSet:
    statement = sa.select(change_set).where(change_set.c.id == change_id).with_for_update()
    found = await work.first(statement, of=ChangeSet)
    assert found is not None, "a change set is not removed while it is applied"
    return found


async def _write(
    work: UnitOfWork,
    change_id: Id,
    outcomes: Sequence[rules.Outcome],
    status: rules.ChangeStatus,
    names: JsonObject,
) -> None:
    closed = status not in {rules.ChangeStatus.APPLYING, rules.ChangeStatus.AWAITING_APPROVAL}
    end_values = {"completed_at": work.now, "sealed_credentials": None} if closed else {}
    await work.execute(
        sa.update(change_set)
        .where(change_set.c.id == change_id)
        .values(
            outcomes=queries.stored_outcomes(outcomes),
            status=status.value,
            names=names,
            updated_at=work.now,
            **end_values,
        )
    )


def sealed_operations(
    keys: KeyRing, change_id: Id, operations: Sequence[Operation]
) -> tuple[list[Operation], bytes | None]:
    """The operations without credentials, and those sealed; None when there are none.

    Raises `ValidationError` for one that was copied from where it is shown hidden.
    """
    masked_operations, entries, problems = [], [], []
    for index, operation in enumerate(operations):
        credentials = operation_credentials(operation.kind, operation.input)
        for each in credentials:
            entries.append([index, each.place, each.value])
            if each.value == each.mask:
                path = ".".join(map(str, ("operations", index, "input", *each.place)))
                problems.append(Detail(path, GIVE_AGAIN))
        hidden = with_values(operation.input, [(each.place, each.mask) for each in credentials])
        masked_operations.append(operation.model_copy(update={"input": hidden}))
    refuse(problems)
    if not entries:
        return masked_operations, None
    return masked_operations, keys.seal(json.dumps(entries).encode(), credentials_place(change_id))


def opened_operations(keys: KeyRing, row: ChangeSet) -> list[Operation]:
    """The operations as they were proposed. Raises `UnreadableError`."""
    operations = queries.read_operations(row)
    if row.sealed_credentials is None:
        return operations
    for index, place, value in json.loads(
        keys.unseal(row.sealed_credentials, credentials_place(row.id))
    ):
        one = operations[index]
        given = with_values(one.input, [(tuple(place), value)])
        operations[index] = one.model_copy(update={"input": given})
    return operations


_CALLING = frozenset(
    {
        rules.OperationKind.CREATE_ITEM,
        rules.OperationKind.CREATE_ACTION,
        rules.OperationKind.CREATE_AUTOMATION,
        rules.OperationKind.UPDATE_AUTOMATION,
    }
)
"""Only what calls other servers is looked through."""


def operation_credentials(kind: rules.OperationKind, values: JsonObject) -> list[Credential]:
    """The credentials that stand in an input."""
    return credentials_in(values, _written) if kind in _CALLING else []


def _written(value: object) -> Iterator[tuple[Place, object]]:
    if not rules.is_reference(value):
        yield from written(value)
