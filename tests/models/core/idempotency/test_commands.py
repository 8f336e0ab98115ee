"""Replies are forgotten when their window has passed."""

from datetime import timedelta
from uuid import UUID

from sqlalchemy import select, update

from models.core.idempotency import (
    WINDOW,
    Reply,
    claim_key,
    idempotency_reply,
    purge_replies,
    remember_reply,
)
from runtime.crypto import KeyRing
from runtime.database import Database
from runtime.ids import new_id


async def kept(database: Database, keys: KeyRing, age: timedelta) -> UUID:
    """The id of a reply that was given so long ago."""
    fingerprint = new_id().bytes * 2
    async with database.transaction() as work:
        made = await claim_key(work, keys, fingerprint, b"request")
        assert isinstance(made, UUID)
        await remember_reply(work, keys, fingerprint, Reply(200, b"{}"))
        ends = {"expires_at": work.now + WINDOW - age}
        own = idempotency_reply.c.id == made
        await work.execute(update(idempotency_reply).where(own).values(ends))
    return made


async def purge(database: Database, limit: int) -> int:
    async with database.transaction() as work:
        return await purge_replies(work, limit=limit)


async def test_only_replies_past_their_window_go_and_a_few_at_a_time(
    database: Database, keys: KeyRing
) -> None:
    while await purge(database, 1_000):
        pass  # what other tests left
    young = await kept(database, keys, WINDOW - timedelta(minutes=1))
    old = [await kept(database, keys, WINDOW + timedelta(minutes=1)) for _ in range(3)]
    assert [await purge(database, 2) for _ in range(3)] == [2, 1, 0]
    async with database.transaction() as work:
        rows = await work.rows(select(idempotency_reply.c.id))
    assert young in {row.id for row in rows}
    assert not {row.id for row in rows} & set(old)
