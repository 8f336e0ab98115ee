"""Values that templates give new records, which the noun of templates knows.

It says so through `find_prefills_with`; `models.registrations` lists it.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass

from models.core.base import Id, JsonObject
from runtime.database import UnitOfWork


@dataclass(frozen=True, slots=True)
class Prefill:
    """The content a template gives a new record; an empty surface is left out."""

    data: JsonObject
    relations: JsonObject
    content_surface_id: Id | None


FindPrefills = Callable[[UnitOfWork, Id, Id, Collection[Id]], Awaitable[Mapping[Id, Prefill]]]
"""Takes a workspace, a database and ids of templates; raises `NotFoundError` for one it lacks."""

_FIND: list[FindPrefills] = []


def find_prefills_with(find: FindPrefills) -> None:
    """Ask `find` for prefills; registering it again changes nothing."""
    if find not in _FIND:
        _FIND.append(find)


async def prefills_of(
    work: UnitOfWork, workspace_id: Id, database_id: Id, template_ids: Collection[Id]
) -> Mapping[Id, Prefill]:
    """The prefill of each of these templates. Raises `NotFoundError`."""
    (find,) = _FIND
    return await find(work, workspace_id, database_id, template_ids)
