"""Seeding a workspace, and drafts of what it is seeded with.

A template or a plan is accepted by a request and built by a job. Drafts of workspaces and plans of
AI runs are written by rules at once, or by a model in a job.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeVar

from models.core.access.rules import Actor, Principal, PrincipalType, Role, Scope
from models.core.base import Id, JsonObject, Shape
from models.messages.jobs import store as job_store
from models.messages.jobs.rules import OPEN_JOB, JobStatus
from models.messages.workspace_events.log import append_event
from models.messages.workspace_events.rules import EventType
from models.workspace.changes.commands import propose
from models.workspace.changes.operations import Made, carry_out, named
from models.workspace.changes.queries import get_changes
from models.workspace.changes.rules import ChangeSource, OperationKind
from models.workspace.changes.shapes import ChangeSetDetail, CreateAiRun, Operation
from models.workspace.model_settings import has_model
from models.workspace.starters.rules.drafting import drafted, instructed
from models.workspace.starters.rules.operations import counts_of, dated, operations_of
from models.workspace.starters.rules.plan import normalized
from models.workspace.starters.shapes import DraftWorkspace, StarterPlan, StarterTemplateShape
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError, ValidationError
from runtime.package_data import read_yaml
from runtime.temporal.workflow_kinds import WorkflowKind

_PACKAGE = "models.workspace.starters"


@dataclass(frozen=True, slots=True)
class Template:
    """One shipped starter: what it is, and the operations that build it."""

    key: str
    label: str
    headline: str
    description: str
    icon: str
    category: str
    operations: tuple[Operation, ...]


@cache
def templates() -> Mapping[str, Template]:
    """Every template by its key, in the order they are shown."""
    order: list[str] = read_yaml(_PACKAGE, "order.yaml")
    return {key: _template(key) for key in order}


def find_template(key: str) -> Template:
    """The template of a key. Raises `NotFoundError`."""
    found = templates().get(key)
    if found is None:
        raise NotFoundError("starter template")
    return found


def _template(key: str) -> Template:
    raw: JsonObject = read_yaml(_PACKAGE, f"templates/{key}.yaml")
    operations = tuple(Operation.model_validate(one) for one in raw.pop("operations"))
    return Template(operations=operations, **raw)


@cache
def vocabulary() -> JsonObject:
    """The words of drafts: topics, trades and phrases, in every language."""
    raw: JsonObject = read_yaml(_PACKAGE, "vocabulary.yaml")
    return raw


S = TypeVar("S", bound=Shape)


def list_templates() -> list[StarterTemplateShape]:
    """Every shipped starter, in the order they are shown."""
    return [_shape(one) for one in templates().values()]


def _shape(template: Template) -> StarterTemplateShape:
    databases = [
        one.input["label"]
        for one in template.operations
        if one.kind is OperationKind.CREATE_DATABASE
    ]
    return StarterTemplateShape(
        key=template.key,
        label=template.label,
        headline=template.headline,
        description=template.description,
        icon=template.icon,
        category=template.category,
        databases=databases,
        **counts_of(template.operations).model_dump(),
    )


async def seed_outcome(
    work: UnitOfWork, actor: Actor, seed_id: Id, shape: type[S], *, last: bool
) -> S | None:
    """The result of building, None while it runs.

    Raises `ConflictError` when it failed, `InProgressError` when this is the last time to ask.
    """
    job = await job_store.succeeded_job(
        work,
        actor.workspace_id,
        WorkflowKind.STARTER_SEED,
        seed_id,
        failed="The starter could not be created. Nothing was changed.",
        in_progress="The starter is still being created." if last else None,
    )
    return None if job is None else shape.model_validate(job.result)


async def accept_template(work: UnitOfWork, actor: Actor, seed_id: Id, key: str) -> None:
    """Accept the job that builds a shipped starter. Raises `NotFoundError`."""
    template = find_template(key)
    await _accept(work, actor, seed_id, f"Starter · {template.key}", {"templateKey": template.key})


async def accept_plan(work: UnitOfWork, actor: Actor, seed_id: Id, plan: JsonObject) -> None:
    """Accept the job that builds a plan. Raises `ValidationError` when nothing is to build."""
    well_formed = normalized(plan).model_dump(mode="json", by_alias=True)
    await _accept(work, actor, seed_id, "Starter · draft", {"plan": well_formed})


async def _accept(
    work: UnitOfWork, actor: Actor, seed_id: Id, summary: str, asked: JsonObject
) -> None:
    accepted = await job_store.accept_job(
        work, actor, WorkflowKind.STARTER_SEED, seed_id, seed_id, summary=summary, input=asked
    )
    if accepted:
        data = _facts(seed_id, asked)
        kind = EventType.STARTER_SEED_STARTED
        await append_event(work, actor.principal, actor.workspace_id, kind, data)


def _facts(seed_id: Id, asked: JsonObject) -> JsonObject:
    """The facts that analytics get: the starter, and no text of a user."""
    key = asked.get("templateKey")
    if key is None:
        return {"seedId": str(seed_id), "source": "draft"}
    return {"seedId": str(seed_id), "source": "template", "templateKey": key}


async def seed(work: UnitOfWork, job: job_store.JobRow, keys: KeyRing) -> JsonObject:
    """Build everything, with the present rights of the requester; returns the answer.

    Raises what one of the operations raises.
    """
    person = await job_store.job_actor(work, job)
    # Sample records are no news: they start no automations.
    actor = replace(person, principal=replace(person.principal, bulk=True))
    headline, operations = _asked(job, work)
    names: dict[str, Id] = {}
    item_ids: list[str] = []
    for one in operations:
        made = await carry_out(work, actor, keys, one, names)
        names |= named(one, made)
        if one.kind in _PLACED and one.input.get("parentItemId") is None:
            item_ids.append(str(_item_of(made)))
    counts = counts_of(operations).model_dump(by_alias=True)
    facts = {**_facts(job.id, job.input), **counts}
    kind = EventType.STARTER_SEED_COMPLETED
    await append_event(work, person.principal, job.workspace_id, kind, facts)
    return {**_facts(job.id, job.input), "headline": headline, "itemIds": item_ids, **counts}


_PLACED = frozenset(
    {
        OperationKind.CREATE_ITEM,
        OperationKind.CREATE_DATABASE,
        OperationKind.CREATE_AUTOMATION,
        OperationKind.CREATE_ACTION,
    }
)


def _item_of(made: Made) -> Id:
    return made.parts.get("item", made.subject_id)


def _asked(job: job_store.JobRow, work: UnitOfWork) -> tuple[str, Sequence[Operation]]:
    key = job.input.get("templateKey")
    if key is None:
        plan = StarterPlan.model_validate(job.input["plan"])
        return plan.headline, operations_of(plan)
    template = find_template(key)
    today = work.now.date()
    operations = [
        one.model_copy(update={"input": dated(one.input, today)}) for one in template.operations
    ]
    return template.headline, operations


async def seed_failed(work: UnitOfWork, job: job_store.JobRow) -> None:
    """Tell that nothing came of a seed; its one transaction left nothing."""
    data = {**_facts(job.id, job.input), "errorCode": job.error_code or "interrupted"}
    # The requester may have left since.
    principal = Principal(type=PrincipalType.SYSTEM, id=job.id, user_id=job.actor_user_id)
    await append_event(work, principal, job.workspace_id, EventType.STARTER_SEED_FAILED, data)


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
    await job_store.accept_job(
        work,
        draft.actor,
        WorkflowKind.WORKSPACE_DRAFT,
        draft.id,
        draft.id,
        summary="Draft",
        input=draft.body.model_dump(mode="json"),
    )


async def draft_outcome(draft: ModelDraft, work: UnitOfWork, last: bool) -> StarterPlan | None:
    """The plan of the model, None while it writes; that of the rules when there is none in time."""
    workspace_id, body = draft.actor.workspace_id, draft.body
    found = await job_store.find_job(work, workspace_id, WorkflowKind.WORKSPACE_DRAFT, draft.id)
    if found.status == JobStatus.SUCCEEDED and found.result is not None:
        return StarterPlan.model_validate(found.result)
    if last or found.status not in OPEN_JOB:
        return draft_by_rules(body.description, body.locale)
    return None


async def forget_draft(draft: ModelDraft, work: UnitOfWork) -> None:
    """Remove what was asked and answered."""
    await job_store.forget_job(work, draft.actor.workspace_id, draft.id)


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
    await job_store.accept_job(
        work, actor, WorkflowKind.CHANGE_PLAN, run_id, run_id, summary=summary, input=asked
    )
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
    work: UnitOfWork,
    actor: Actor,
    keys: KeyRing,
    job: job_store.JobRow,
    operations: Sequence[Operation],
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
    job = await job_store.succeeded_job(
        work,
        actor.workspace_id,
        WorkflowKind.CHANGE_PLAN,
        run_id,
        failed="The plan could not be created.",
        in_progress="Still planning. Check the list of runs for the result." if last else None,
    )
    return None if job is None else await get_changes(work, actor, run_id)
