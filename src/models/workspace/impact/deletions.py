"""Deletions that break something: refused with the list of places unless they are forced."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from models.core.access.rules import Actor
from models.core.base import Shape
from models.core.keys import own_field_keys
from models.core.references.rules import SubjectKind
from models.workspace.impact import queries
from models.workspace.impact.things import find_thing
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, NotFoundError

MAX_LISTED = 100
"""Places that a refusal lists."""
_NAMED = 5
"""Definitions that its message names."""


class BrokenPlaces(Shape):
    """The places that a deletion breaks, at most 100.

    `total` counts all places that name the thing, `breaking` the ones that break. The ones that the
    caller may not see are counted by `hidden`, and are not listed.
    """

    places: list[queries.ImpactPlace]
    total: int
    breaking: int
    hidden: int


class InUseError(ConflictError):
    """The deletion breaks the places in `details`, and `force` is not `true`."""

    advice = "Change the places that use it, or delete with `force=true`."
    code = "in_use"
    retryable = False

    def __init__(self, answer: queries.ImpactAnswer) -> None:
        broken = [place for place in answer.places if place.breaks]
        self.removes_member = answer.kind is SubjectKind.MEMBER
        act = "removal" if self.removes_member else "deletion"
        super().__init__(_sentence(act, broken, answer.breaking))
        self.details = BrokenPlaces(
            places=broken[:MAX_LISTED],
            total=answer.total,
            breaking=answer.breaking,
            hidden=answer.hidden,
        )


def _sentence(act: str, broken: list[queries.ImpactPlace], breaking: int) -> str:
    labels: dict[str, int] = {}
    for place in broken:
        label = f"{place.kind.replace('_', ' ')} {place.label}"
        labels[label] = labels.get(label, 0) + 1
    named = dict(list(labels.items())[:_NAMED])
    more = breaking - sum(named.values())
    listed = ", ".join([*named, *([f"{more} more"] if named and more else [])])
    places = "1 place" if breaking == 1 else f"{breaking} places"
    which = f": {listed}" if listed else " that you cannot see"
    return f"The {act} breaks {places}{which}. Change them first, or force the {act}."


@asynccontextmanager
async def unless_in_use(
    work: UnitOfWork, actor: Actor, question: queries.ImpactQuestion
) -> AsyncIterator[None]:
    """Delete inside the block. Raises InUseError when that breaks a place, to be rolled back.

    Places are read before the deletion, and after it under the locks that it holds: a reference
    that was committed meanwhile counts. Who names fields is waited for, as by a rename. Other
    refusals of the deletion go first.
    """
    if question.kind is SubjectKind.FIELD:
        await own_field_keys(work, actor.workspace_id)
    try:
        thing = await find_thing(work, actor, question.kind, question.id, question.key)
    except NotFoundError:
        # The deletion itself says what the caller may not see.
        yield
        return
    answer = await queries.impact_of(work, actor, question, thing)
    yield
    if not answer.breaking:
        answer = await queries.impact_of(work, actor, question, thing)
    if answer.breaking:
        raise InUseError(answer)
