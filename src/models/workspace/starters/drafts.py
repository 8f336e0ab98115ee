"""Drafts: plans written from a description, by rules at once or by a model in a job."""

from collections.abc import Mapping
from dataclasses import dataclass

from models.core.access.rules import Actor, Principal, Role, Scope
from models.core.base import Id
from models.messages.jobs.commands import accept_job, forget_job
from models.messages.jobs.queries import find_job
from models.messages.jobs.rules import OPEN_JOB, JobStatus
from models.workspace.model_settings.queries import has_model
from models.workspace.starters.files import vocabulary
from models.workspace.starters.rules.drafting import drafted, instructed
from models.workspace.starters.rules.plan import normalized
from models.workspace.starters.shapes import DraftWorkspace, StarterPlan
from runtime.database import UnitOfWork
from runtime.families import Family


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
