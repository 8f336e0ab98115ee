"""Finding and keeping the reply to a call that may be repeated (decisions C3)."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, delete, func, literal, select, update
from sqlalchemy.dialects.postgresql import insert

from models.idempotency.rules import WINDOW
from models.idempotency.tables import idempotency_reply
from runtime.crypto import KeyRing, UnreadableError
from runtime.database import UnitOfWork
from runtime.errors import ConflictingMutationError, InProgressError
from runtime.ids import new_id


@dataclass(frozen=True, slots=True)
class Reply:
    """What a call was answered."""

    status: int
    body: bytes


async def claim(
    work: UnitOfWork, keys: KeyRing, fingerprint: bytes, request_hash: bytes
) -> Reply | None:
    """The stored reply, or None when this call is the first; it then ends with `remember`.

    The row of a first call is written now, in the transaction of its effect: a refusal takes it
    back. Raises InProgressError while another call with this key runs, ConflictingMutationError
    when the key was used for another request.
    """
    while not await _take(work, fingerprint, request_hash):
        lock = select(func.pg_try_advisory_xact_lock(_lock(fingerprint)))
        if not await work.scalar(lock):
            raise _running()
        row = await work.first(
            select(idempotency_reply).where(idempotency_reply.c.fingerprint == fingerprint)
        )
        if row is not None and row.expires_at > work.now:
            return _replay(keys, row, request_hash)
        # Past its window, or rolled back meanwhile: the key is free again.
        await work.execute(
            delete(idempotency_reply).where(
                idempotency_reply.c.fingerprint == fingerprint,
                idempotency_reply.c.expires_at <= work.now,
            )
        )
    return None


async def remember(work: UnitOfWork, keys: KeyRing, fingerprint: bytes, reply: Reply) -> None:
    """Keep the reply to a claimed call for the window."""
    await work.execute(
        update(idempotency_reply)
        .where(idempotency_reply.c.fingerprint == fingerprint)
        .values(status=reply.status, reply=keys.seal(reply.body, _place(fingerprint)))
    )


async def _take(work: UnitOfWork, fingerprint: bytes, request_hash: bytes) -> bool:
    """Write the row of a running call; False when another call has the key.

    The lock keeps a second call from waiting for the first one's commit: it is told at once.
    """
    values = {
        "id": new_id(),
        "fingerprint": fingerprint,
        "request_hash": request_hash,
        "created_at": work.now,
        "expires_at": work.now + WINDOW,
    }
    columns = idempotency_reply.c
    row = select(*(literal(value, columns[name].type) for name, value in values.items())).where(
        func.pg_try_advisory_xact_lock(_lock(fingerprint))
    )
    statement = (
        insert(idempotency_reply)
        .from_select(list(values), row)
        .on_conflict_do_nothing()
        .returning(idempotency_reply.c.id)
    )
    return (await work.execute(statement)).first() is not None


def _replay(keys: KeyRing, row: Row[Any], request_hash: bytes) -> Reply:
    if row.request_hash != request_hash:
        raise ConflictingMutationError(
            "This Idempotency-Key was used for another request; send a new key."
        )
    try:
        return Reply(row.status, keys.unseal(row.reply, _place(row.fingerprint)))
    except UnreadableError:
        raise ConflictingMutationError(
            "The reply kept for this Idempotency-Key can no longer be read; send a new key."
        ) from None


async def purge_replies(work: UnitOfWork) -> int:
    """Delete replies whose window has passed; gives how many."""
    old = delete(idempotency_reply).where(idempotency_reply.c.expires_at <= work.now)
    return (await work.execute(old)).rowcount


def _lock(fingerprint: bytes) -> int:
    """The advisory lock of a key: one of 2^64, so that a clash only ever delays."""
    return int.from_bytes(fingerprint[:8], "big", signed=True)


def _place(fingerprint: bytes) -> str:
    return f"idempotency_reply|{fingerprint.hex()}|reply"


def _running() -> InProgressError:
    return InProgressError("A call with this Idempotency-Key is still running; try again soon.")
