"""The beginning and the end of every decision about a run."""

from collections.abc import Collection, Sequence

from models.core.base import Id
from models.core.lifecycle import commands as lifecycle
from models.workspace.legacy_imports.errors import WrongStatusError
from models.workspace.legacy_imports.lifecycle import LEGACY_IMPORTS
from models.workspace.legacy_imports.rules import LegacyImportStatus
from models.workspace.legacy_imports.tables import LegacyImportRun, LegacyImportWorkspace
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError


async def move(
    work: UnitOfWork, run: LegacyImportRun, target: LegacyImportStatus, **values: object
) -> None:
    """Bring a locked run to another status, which it may reach from its own."""
    moved = await lifecycle.move(
        work, LEGACY_IMPORTS, run.id, target, updated_at=work.now, **values
    )
    assert moved, "the row is locked, and its status was looked at"


def require(run: LegacyImportRun, statuses: Collection[LegacyImportStatus], action: str) -> None:
    """Raises WrongStatusError for a run that is in none of the statuses."""
    if run.status not in statuses:
        raise WrongStatusError(run.status, action)


def chosen_of(
    entries: Sequence[LegacyImportWorkspace], ids: Sequence[Id]
) -> list[LegacyImportWorkspace]:
    """The entries of these ids. Raises NotFoundError for an id of another run or of none."""
    known = {one.id: one for one in entries}
    if any(one not in known for one in ids):
        raise NotFoundError("workspace of the legacy import run")
    return [known[one] for one in dict.fromkeys(ids)]
