"""Bounds on the work of each family that a workspace has under way, and that it has open.

Work over the first waits in the outbox; work over the second is refused.
"""

from collections.abc import Mapping
from typing import ClassVar

from sqlalchemy import ColumnElement, func, select

from models.core.access.rules import Actor, PrincipalType
from models.core.base import Id
from models.core.lifecycle.commands import WorkTable
from runtime.database import UnitOfWork
from runtime.errors import RateLimitedError
from runtime.families import JOB_FAMILIES, Family

_LONG = 2
"""Half of the chunks of long work that a worker executes at once, so that others find room."""

RUNNING: Mapping[Family, int] = {
    **dict.fromkeys(JOB_FAMILIES, _LONG),
    Family.ACTION_RUN: 50,
    Family.DATA_SOURCE_REFRESH: _LONG,
    Family.OAUTH_EXCHANGE: 20,
    Family.PROVIDER_CALL: 20,
    Family.SPREADSHEET_IMPORT: _LONG,
}
"""Of automation runs the operator says how many, by `WORKSPACE_RUNNING_CAP`."""

_FOLLOWS = frozenset(
    {
        Family.FIELD_CONVERSION,
        Family.FIELD_INDEX,
        Family.FIELD_REMOVAL,
        Family.OAUTH_REVOCATION,
        Family.RECOMPUTATION,
    }
)
"""Jobs that a change brings with it, which is bounded itself: refusing them would refuse it."""

OPEN: Mapping[Family, int] = {
    **dict.fromkeys((family for family in JOB_FAMILIES if family not in _FOLLOWS), 100),
    Family.ACTION_RUN: 1_000,
    Family.DATA_SOURCE_REFRESH: 1_000,
    Family.LEGACY_IMPORT: 20,
    Family.SPREADSHEET_IMPORT: 100,
}
"""Of legacy imports, which belong to no workspace, so many of a user."""


class TooMuchOpenError(RateLimitedError):
    """As much of a kind of work is open as may be; it is not done yet."""

    advice = "Wait until some of it has ended, or cancel some."
    headers: ClassVar[dict[str, str]] = {"Retry-After": "10"}

    def __init__(self, family: Family, bound: int) -> None:
        super().__init__(
            f"{bound:,} of this kind ({family.value.replace('-', ' ')}) are open, as many as may "
            "be. Wait until one has ended, or cancel one."
        )


async def require_place(
    work: UnitOfWork, actor: Actor, kind: WorkTable, family: Family, *which: ColumnElement[bool]
) -> None:
    """Refuse what was just accepted, when more of its family is open than may be.

    `which` rows of the table are of the family. What the platform does by itself waits instead.
    Raises `TooMuchOpenError`, and then nothing may be committed.
    """
    if actor.principal.type is not PrincipalType.SYSTEM:
        of_workspace = kind.table.c.workspace_id == actor.workspace_id
        await require_place_of(work, actor.workspace_id, kind, family, of_workspace, *which)


async def require_place_of(
    work: UnitOfWork, owner: Id, kind: WorkTable, family: Family, *which: ColumnElement[bool]
) -> None:
    """As `require_place`, for `which` rows of an owner."""
    bound = OPEN.get(family)
    if bound is None:
        return
    # One after the other, so that the next one counts this one, too.
    place = f"open/{family}/{owner}"
    await work.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(place, 0))))
    some = select(kind.table.c.id).where(kind.is_open, *which).limit(bound + 1).subquery()
    if await work.scalar(select(func.count()).select_from(some)) > bound:
        raise TooMuchOpenError(family, bound)
