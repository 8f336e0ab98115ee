"""Old calls are forgotten."""

from uuid import UUID

from models.people.request_logs import LogEntry, append_entries, purge_request_logs, request_log
from tests.support.ageing import ago, ids_of, purged
from tests.support.spaces import Space


async def call(space: Space, days: float) -> UUID:
    """The id of a call this number of days ago."""
    before = await ids_of(space, request_log)
    entry = LogEntry(
        workspace_id=space.id,
        principal_type="session",
        principal_id=space.user_id,
        api_key_id=None,
        method="GET",
        path="/v1/me",
        status=200,
        idempotency_key=None,
        error=None,
        duration_ms=1,
        created_at=ago(days),
    )
    async with space.database.transaction() as work:
        await append_entries(work, [entry])
    (made,) = await ids_of(space, request_log) - before
    return made


async def test_only_old_calls_go_and_a_few_at_a_time(space: Space, foreign: Space) -> None:
    await purged(space.database, purge_request_logs, ago(30))
    kept = {await call(space, days) for days in (0, 29, 29.9)}
    theirs = await call(foreign, 29)
    for _ in range(5):
        await call(space, 31)
    assert await purged(space.database, purge_request_logs, ago(30), limit=2) == 5
    assert await ids_of(space, request_log) == kept
    assert await ids_of(foreign, request_log) == {theirs}
