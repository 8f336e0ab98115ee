"""The lock of a person's times, for writers that look at several entries of theirs."""

from models.core.base import Id
from runtime.advisory_locks import lock_name
from runtime.database import UnitOfWork


async def lock_times(work: UnitOfWork, workspace_id: Id, user_id: Id) -> None:
    """Have others who make room or write times down for this user wait for the transaction."""
    place = f"time-entries/{workspace_id}/{user_id}"
    await lock_name(work, place)
