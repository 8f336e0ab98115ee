"""Plans of AI runs: operations made from an instruction, by a model in a job or by rules."""

from collections.abc import Sequence

from models.core.access.rules import Actor
from models.core.base import Id
from models.messages.jobs.commands import accept_job
from models.messages.jobs.queries import succeeded_job
from models.messages.jobs.rows import JobRow
from models.workspace.changes.commands.proposals import propose
from models.workspace.changes.queries import get_changes
from models.workspace.changes.rules.status import ChangeSource
from models.workspace.changes.shapes import ChangeSetDetail, CreateAiRun, Operation
from models.workspace.model_settings.queries import has_model
from models.workspace.starters.drafts import plan_by_rules
from models.workspace.starters.rules.operations import operations_of
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import ValidationError
from runtime.families import Family


async def plan_run(
    work: UnitOfWork, actor: Actor, keys: KeyRing, run_id: Id, body: CreateAiRun
) -> ChangeSetDetail | None:
    """A new run, or None when a model plans it: ask `plan_outcome`.

    Raises `ValidationError` without exactly one of instruction and operations, and below
    `operations`.
    """
    if (body.instruction is None) == (body.operations is None):
        raise ValidationError.at("", "Either an instruction or operations must be given.")
    if body.operations is not None:
        return await propose(work, actor, keys, run_id, body.operations, title=body.title)
    assert body.instruction is not None
    if not await has_model(work, actor.workspace_id):
        return await propose_by_rules(work, actor, keys, run_id, body.instruction, body.title)
    asked = {"instruction": body.instruction, "title": body.title}
    summary = "Plan of a run"
    await accept_job(work, actor, Family.CHANGE_PLAN, run_id, run_id, summary=summary, input=asked)
    return None


async def propose_by_rules(
    work: UnitOfWork,
    actor: Actor,
    keys: KeyRing,
    run_id: Id,
    instruction: str,
    title: str | None,
) -> ChangeSetDetail:
    """A run that builds what the instruction names."""
    operations = operations_of(plan_by_rules(instruction))
    return await propose(
        work,
        actor,
        keys,
        run_id,
        operations,
        source=ChangeSource.RULES,
        title=title,
        instruction=instruction,
    )


async def propose_by_model(
    work: UnitOfWork, actor: Actor, keys: KeyRing, job: JobRow, operations: Sequence[Operation]
) -> None:
    """A run of what the model planned. Raises `ValidationError` for operations that are wrong."""
    await propose(
        work,
        actor,
        keys,
        job.id,
        operations,
        source=ChangeSource.MODEL,
        title=job.input["title"],
        instruction=job.input["instruction"],
    )


async def plan_outcome(
    work: UnitOfWork, actor: Actor, run_id: Id, *, last: bool
) -> ChangeSetDetail | None:
    """The run once it is planned, None while it is.

    Raises `ConflictError` when it cannot be, `InProgressError` when this is the last time to ask.
    """
    job = await succeeded_job(
        work,
        actor.workspace_id,
        Family.CHANGE_PLAN,
        run_id,
        failed="The run could not be planned.",
        in_progress="The model is still planning. List the runs to see what came of it."
        if last
        else None,
    )
    return None if job is None else await get_changes(work, actor, run_id)
