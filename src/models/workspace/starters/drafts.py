"""Drafts of workspaces and plans of AI runs: written by rules at once, or by a model in a job."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from models.core.access.rules import Actor, Principal, Role, Scope
from models.core.base import Id
from models.messages.jobs.rules import OPEN_JOB, JobStatus
from models.messages.jobs.store import JobRow, accept_job, find_job, forget_job, succeeded_job
from models.workspace.changes.commands import propose
from models.workspace.changes.queries import get_changes
from models.workspace.changes.rules import ChangeSource
from models.workspace.changes.shapes import ChangeSetDetail, CreateAiRun, Operation
from models.workspace.model_settings import has_model
from models.workspace.starters.rules.drafting import drafted, instructed
from models.workspace.starters.rules.operations import operations_of
from models.workspace.starters.rules.plan import normalized
from models.workspace.starters.seeding import vocabulary
from models.workspace.starters.shapes import DraftWorkspace, StarterPlan
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import ValidationError
from runtime.temporal.families import Family


async def with_model(
    work: UnitOfWork, principal: Principal, roles: Mapping[Id, Role]
) -> Actor | None:
    """The caller in the first of their workspaces that has a model they may use; else None."""
    for workspace_id, role in roles.items():
        scopes = principal.usable_scopes(role)
        if Scope.AI_WRITE in scopes and await has_model(work, workspace_id):
            return Actor(principal=principal, workspace_id=workspace_id, role=role, scopes=scopes)
    return None


def draft_by_rules(description: str, locale: str | None) -> StarterPlan:
    """The plan that the rules make of a description; always the same."""
    return normalized(drafted(description, locale, vocabulary()))


def plan_by_rules(instruction: str) -> StarterPlan:
    """The plan that the rules make of an instruction."""
    return normalized(instructed(instruction, vocabulary()))


@dataclass(frozen=True, slots=True)
class ModelDraft:
    """A draft that a model is asked for."""

    actor: Actor
    id: Id
    body: DraftWorkspace


async def accept_draft(work: UnitOfWork, draft: ModelDraft) -> None:
    """Accept the job that asks the model of a workspace."""
    asked = draft.body.model_dump(mode="json")
    await accept_job(
        work, draft.actor, Family.WORKSPACE_DRAFT, draft.id, draft.id, summary="Draft", input=asked
    )


async def draft_outcome(draft: ModelDraft, work: UnitOfWork, last: bool) -> StarterPlan | None:
    """The plan of the model, None while it writes; that of the rules when there is none in time."""
    workspace_id, body = draft.actor.workspace_id, draft.body
    found = await find_job(work, workspace_id, Family.WORKSPACE_DRAFT, draft.id)
    if found.status == JobStatus.SUCCEEDED and found.result is not None:
        return StarterPlan.model_validate(found.result)
    if last or found.status not in OPEN_JOB:
        return draft_by_rules(body.description, body.locale)
    return None


async def forget_draft(draft: ModelDraft, work: UnitOfWork) -> None:
    """Remove what was asked and answered."""
    await forget_job(work, draft.actor.workspace_id, draft.id)


async def plan_run(
    work: UnitOfWork, actor: Actor, keys: KeyRing, run_id: Id, body: CreateAiRun
) -> ChangeSetDetail | None:
    """A new run, or None when a model plans it: ask `plan_outcome`.

    Raises `ValidationError` without exactly one of instruction and operations, and below
    `operations`.
    """
    if (body.instruction is None) == (body.operations is None):
        raise ValidationError.at("", "Set either instruction or operations.")
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
        failed="The plan could not be created.",
        in_progress="Still planning. Check the list of runs for the result." if last else None,
    )
    return None if job is None else await get_changes(work, actor, run_id)
