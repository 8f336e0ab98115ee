"""Reading the shipped starters, and the outcomes of seeding them."""

from typing import TypeVar

from models.core.access.rules import Actor
from models.core.base import Id, Shape
from models.messages.jobs.queries import succeeded_job
from models.workspace.changes.rules.kinds import OperationKind
from models.workspace.starters.files import Template, templates
from models.workspace.starters.rules.counts import counts_of
from models.workspace.starters.shapes import StarterTemplateShape
from runtime.database import UnitOfWork
from runtime.families import Family

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
    """The result of building, None while it goes on.

    Raises `ConflictError` when it failed, `InProgressError` when this is the last time to ask.
    """
    job = await succeeded_job(
        work,
        actor.workspace_id,
        Family.STARTER_SEED,
        seed_id,
        failed="The starter could not be built; nothing of it is left.",
        in_progress="The starter is still being built." if last else None,
    )
    return None if job is None else shape.model_validate(job.result)
