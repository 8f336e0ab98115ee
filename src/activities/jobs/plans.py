"""Jobs that plan by a language model, build a starter, and apply a change set."""

from collections.abc import Sequence

from pydantic import ValidationError as ShapeError
from typing_extensions import override

from activities.jobs.transactions import Chunks, ask_outside
from activities.language_model import asking
from models.core.access.rules import Actor
from models.core.base import JsonObject
from models.core.pagination import page_request
from models.data.databases.store import list_databases
from models.messages.jobs.store import JobRow, job_actor
from models.workspace.changes.commands import apply_next, stop_applying
from models.workspace.changes.operations import check_operations
from models.workspace.changes.shapes import MAX_OPERATIONS, Operation
from models.workspace.model_settings import open_endpoint
from models.workspace.starters import seeding
from models.workspace.starters.rules.plan import normalized
from models.workspace.starters.shapes import StarterPlan
from runtime.crypto import KeyRing
from runtime.database import Transaction, UnitOfWork
from runtime.errors import ValidationError
from runtime.outbound_policy import OutboundPolicy, saving_by

MOST_TOLD = 30
"""Databases that a prompt lists at most."""


class WorkspaceDrafts(Chunks):
    """The plan of a model, or that of the rules when the model gives none."""

    def __init__(self, keys: KeyRing, model: asking.LanguageModel) -> None:
        self._keys = keys
        self._model = model

    @override
    async def advance(self, work: Transaction, job: JobRow) -> None:
        plan = await self._asked(work, job)
        if plan is None:
            plan = seeding.draft_by_rules(job.input["description"], job.input["locale"])
        job.progress.update(plan.model_dump(mode="json", by_alias=True))

    @override
    async def result(self, work: UnitOfWork, job: JobRow) -> JsonObject:
        return job.progress

    async def _asked(self, work: Transaction, job: JobRow) -> StarterPlan | None:
        endpoint = await open_endpoint(work, self._keys, job.workspace_id)
        if endpoint is None:
            return None
        prompt = asking.draft_prompt(job.input["description"], job.input["locale"])
        answer = await ask_outside(
            work, job, self._model.ask(endpoint, asking.DRAFT_INSTRUCTIONS, prompt)
        )
        try:
            return normalized(answer)
        # A model may answer anything; the rules plan instead.
        except ValidationError:
            return None


class ChangePlans(Chunks):
    """A run of the operations that a model plans, or of the operations of the rules."""

    def __init__(self, keys: KeyRing, model: asking.LanguageModel) -> None:
        self._keys = keys
        self._model = model

    @override
    async def advance(self, work: Transaction, job: JobRow) -> JsonObject | None:
        actor = await job_actor(work, job)
        operations = await self._asked(work, actor, job)
        if operations:
            await seeding.propose_by_model(work, actor, self._keys, job, operations)
        else:
            instruction, title = job.input["instruction"], job.input["title"]
            await seeding.propose_by_rules(work, actor, self._keys, job.id, instruction, title)
        return None

    async def _asked(self, work: Transaction, actor: Actor, job: JobRow) -> Sequence[Operation]:
        endpoint = await open_endpoint(work, self._keys, job.workspace_id)
        if endpoint is None:
            return ()
        page = page_request(self._keys, MOST_TOLD, None)
        databases = (await list_databases(work, actor, page)).databases
        prompt = asking.change_prompt(job.input["instruction"], databases)
        answer = await ask_outside(
            work, job, self._model.ask(endpoint, asking.CHANGE_INSTRUCTIONS, prompt)
        )
        return read_answer(answer)


def read_answer(answer: object) -> Sequence[Operation]:
    """The operations of an answer; none when one of them is wrong."""
    listed = answer.get("operations") if isinstance(answer, dict) else None
    if not isinstance(listed, list) or len(listed) > MAX_OPERATIONS:
        return ()
    try:
        operations = [Operation.model_validate(one) for one in listed]
        check_operations(operations)
    # A model may answer anything; the rules plan instead.
    except (ShapeError, ValidationError):
        return ()
    return operations


class StarterSeeds(Chunks):
    """Builds everything in one transaction, so that no reader sees half of a starter."""

    def __init__(self, keys: KeyRing) -> None:
        self._keys = keys

    @override
    async def advance(self, work: UnitOfWork, job: JobRow) -> None:
        job.progress.update(await seeding.seed(work, job, self._keys))

    @override
    async def result(self, work: UnitOfWork, job: JobRow) -> JsonObject:
        return job.progress

    @override
    async def undo(self, work: UnitOfWork, job: JobRow) -> bool:
        await seeding.seed_failed(work, job)
        return True


class ChangeApplications(Chunks):
    """Carries out one operation in each transaction, together with what becomes of it."""

    def __init__(self, keys: KeyRing, policy: OutboundPolicy) -> None:
        self._keys = keys
        self._policy = policy

    @override
    async def advance(self, work: UnitOfWork, job: JobRow) -> JsonObject | None:
        with saving_by(self._policy):
            return await apply_next(work, job, self._keys)

    @override
    async def undo(self, work: UnitOfWork, job: JobRow) -> bool:
        await stop_applying(work, job)
        return True
