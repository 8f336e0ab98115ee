"""Applying change sets: accepted by a request, carried out by a job, one transaction each."""

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace

from sqlalchemy import select, update

from models.core.access.rules import Actor, Scope
from models.core.base import Id, JsonObject
from models.messages.jobs.commands import accept_job
from models.messages.jobs.queries import job_actor
from models.messages.jobs.rows import JobRow
from models.workspace.changes.commands.execution import carry_out, named
from models.workspace.changes.commands.proposals import hold_waiting, set_applying
from models.workspace.changes.commands.sealing import opened
from models.workspace.changes.queries import (
    apply_result,
    read_outcomes,
    stored_outcomes,
)
from models.workspace.changes.rules.kinds import stake_of
from models.workspace.changes.rules.operations import record_refs
from models.workspace.changes.rules.references import refs_in
from models.workspace.changes.rules.status import (
    Approval,
    ChangeStatus,
    Outcome,
    ResultStatus,
    end_of,
    waits_for,
)
from models.workspace.changes.shapes import ApplyChanges, ApplyResult, Operation
from models.workspace.changes.tables import ChangeSet, change_set
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import PlatformError, ValidationError
from runtime.families import Family


async def accept_application(
    work: UnitOfWork, actor: Actor, change_id: Id, job_id: Id, body: ApplyChanges
) -> None:
    """Accept the job that applies what is approved.

    Of requests at the same time one is accepted. Raises as `hold_waiting`, and `ValidationError`
    for an index of nothing.
    """
    row = await hold_waiting(work, actor, change_id)
    _check_indexes(row, body)
    await set_applying(work, change_id, read_outcomes(row))
    await accept_job(
        work,
        actor,
        Family.CHANGE_APPLICATION,
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
                f"approvedIndexes.{place}", f"There are {len(row.operations)} operations."
            )


async def applier(work: UnitOfWork, job: JobRow) -> Actor:
    """The asker of a job, with the scopes that their credential had and their role still has."""
    actor = await job_actor(work, job)
    return replace(actor, scopes=actor.scopes & {Scope(one) for one in job.input["scopes"]})


async def apply_next(work: UnitOfWork, job: JobRow, keys: KeyRing) -> JsonObject | None:
    """Carry out the next operation that may be; None when it was the last."""
    row = await _held(work, job.subject_id)
    operations, outcomes = opened(keys, row), read_outcomes(row)
    approval = Approval(job.input["every"], frozenset(job.input["indexes"]))
    uses, names, tried = _uses(operations), dict(row.names), False
    for index in range(job.progress.get("next", 0), len(operations)):
        operation = operations[index]
        if not outcomes[index].held:
            continue
        stake = stake_of(operation.kind, operation.input)
        waiting = waits_for(index, uses[index], outcomes, stake, approval)
        if waiting is not None:
            outcomes[index] = waiting
            continue
        if tried:
            await _write(work, row.id, outcomes, ChangeStatus.APPLYING, names)
            return {"next": index}
        actor = await applier(work, job)
        known = {name: Id(value) for name, value in names.items()}
        outcomes[index], made = await _tried(work, actor, keys, operation, known)
        names |= {name: str(id_) for name, id_ in made.items()}
        tried = True
    await _write(work, row.id, outcomes, end_of(outcomes), names)
    return None


async def stop_applying(work: UnitOfWork, job: JobRow) -> None:
    """Let what was not looked at wait again, when the job could not go on."""
    row = await _held(work, job.subject_id)
    if row.status == ChangeStatus.APPLYING:
        outcomes = read_outcomes(row)
        await _write(work, row.id, outcomes, end_of(outcomes), row.names)


async def try_out(
    work: UnitOfWork, actor: Actor, keys: KeyRing, change_id: Id, body: ApplyChanges
) -> ApplyResult:
    """Try out applying: what would be applied is `pending`, and nothing is kept.

    Raises what `accept_application` raises.
    """
    row = await hold_waiting(work, actor, change_id)
    _check_indexes(row, body)
    outcomes = await _tried_out(work, actor, keys, row, body)
    return apply_result(row, outcomes, ChangeStatus(row.status))


async def _tried_out(
    work: UnitOfWork, actor: Actor, keys: KeyRing, row: ChangeSet, body: ApplyChanges
) -> Sequence[Outcome]:
    operations, before = opened(keys, row), read_outcomes(row)
    approval = Approval(body.approve_all, frozenset(body.approved_indexes or ()))
    uses, outcomes = _uses(operations), list(before)
    names = {name: Id(value) for name, value in row.names.items()}
    with suppress(_NothingKeptError):
        async with work.savepoint():
            for index, operation in enumerate(operations):
                if not before[index].held:
                    continue
                stake = stake_of(operation.kind, operation.input)
                waiting = waits_for(index, uses[index], outcomes, stake, approval)
                if waiting is not None:
                    outcomes[index] = waiting
                    continue
                outcomes[index], made = await _tried(work, actor, keys, operation, names)
                names |= made
            raise _NothingKeptError
    return [
        after
        if not was.held or after.status is not ResultStatus.APPLIED
        else Outcome(ResultStatus.PENDING)
        for was, after in zip(before, outcomes, strict=True)
    ]


class _NothingKeptError(Exception):
    """Ends the savepoint of a trial."""

    retryable = False


async def _tried(
    work: UnitOfWork, actor: Actor, keys: KeyRing, operation: Operation, names: dict[str, Id]
) -> tuple[Outcome, dict[str, Id]]:
    """Carry out an operation and give its outcome; one that is refused leaves nothing."""
    try:
        async with work.savepoint():
            made = await carry_out(work, actor, keys, operation, names)
    except PlatformError as error:
        return Outcome(ResultStatus.FAILED, error=error.message[:1_000]), {}
    applied = Outcome(ResultStatus.APPLIED, subject_id=str(made.subject_id))
    return applied, named(operation, made)


def _uses(operations: Sequence[Operation]) -> list[Collection[int]]:
    """For every operation, the indexes of those whose results it names."""
    made_by: dict[str, int] = {}
    uses: list[Collection[int]] = []
    for index, one in enumerate(operations):
        uses.append({made_by[ref] for ref in refs_in(one.input) if ref in made_by})
        for name in ([] if one.ref is None else [one.ref]) + record_refs(one):
            made_by[name] = index
    return uses


async def _held(work: UnitOfWork, change_id: Id) -> ChangeSet:
    statement = select(change_set).where(change_set.c.id == change_id).with_for_update()
    found = await work.first(statement, of=ChangeSet)
    assert found is not None, "a change set is not removed while it is applied"
    return found


async def _write(
    work: UnitOfWork,
    change_id: Id,
    outcomes: Sequence[Outcome],
    status: ChangeStatus,
    names: JsonObject,
) -> None:
    closed = status not in {ChangeStatus.APPLYING, ChangeStatus.AWAITING_APPROVAL}
    end_values = {"completed_at": work.now, "sealed_credentials": None} if closed else {}
    await work.execute(
        update(change_set)
        .where(change_set.c.id == change_id)
        .values(
            outcomes=stored_outcomes(outcomes),
            status=status.value,
            names=names,
            updated_at=work.now,
            **end_values,
        )
    )
