"""Operations that ended long ago are forgotten, with what they say of runs."""

from uuid import UUID

from sqlalchemy import func, insert, select

from models.automation.run_operations.queries import (
    purge_operations,
    run_operation,
    run_operation_result,
)
from runtime.ids import least_id
from tests.support.ageing import ago, ids_of, purged
from tests.support.spaces import Space

ENDED = ("succeeded", "failed", "cancelled")


async def operation(space: Space, status: str, days: int, accepted: int | None = None) -> UUID:
    """An operation over two runs; `days` ago it ended, and `accepted` days ago it was made."""
    made = ago(accepted or days)
    operation_id = UUID(int=least_id(made).int + hash((status, days, accepted)) % 2**60)
    row = {
        "id": operation_id,
        "workspace_id": space.id,
        "actor_user_id": space.user_id,
        "action": "retry",
        "status": status,
        "selection": {},
        "parameters": {},
        **dict.fromkeys(("execution", "selected", "treated", "succeeded", "skipped", "failed"), 0),
        "created_at": made,
        "completed_at": ago(days) if status in ENDED else None,
    }
    async with space.database.transaction() as work:
        await work.execute(insert(run_operation).values(row))
        for position in (1, 2):
            result = {
                "operation_id": operation_id,
                "workspace_id": space.id,
                "position": position,
                "run_id": UUID(int=position),
            }
            await work.execute(insert(run_operation_result).values(result))
    return operation_id


async def test_only_operations_that_ended_or_rest_for_long_are_purged(space: Space) -> None:
    kept = {
        *[await operation(space, status, 89) for status in ENDED],
        await operation(space, "succeeded", 89, accepted=91),
        await operation(space, "queued", 91),
        await operation(space, "running", 91),
        await operation(space, "paused", 89),
    }
    for status in (*ENDED, "paused"):
        await operation(space, status, 91)
    assert await purged(space.database, purge_operations, ago(90), limit=4) >= 4 * 3
    assert await ids_of(space, run_operation) == kept
    async with space.database.transaction() as work:
        own = run_operation_result.c.workspace_id == space.id
        count = select(func.count()).select_from(run_operation_result).where(own)
        assert await work.scalar(count) == 2 * len(kept)
