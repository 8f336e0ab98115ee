"""Finding and keeping the reply to a call that may be repeated (decisions C3)."""

from dataclasses import dataclass

from sqlalchemy import delete, func, select
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


async def recall(
    work: UnitOfWork, keys: KeyRing, fingerprint: bytes, request_hash: bytes
) -> Reply | None:
    """The stored reply, or None when this call is the first, which it then is until it ends.

    Raises InProgressError while another call with this key runs, ConflictingMutationError when
    the key was used for another request.
    """
    lock = int.from_bytes(fingerprint[:8], "big", signed=True)
    if not await work.scalar(select(func.pg_try_advisory_xact_lock(lock))):
        raise _running()
    # Read only now: a snapshot from before the lock would miss the reply of whoever held it.
    row = await work.first(
        select(idempotency_reply).where(
            idempotency_reply.c.fingerprint == fingerprint,
            idempotency_reply.c.expires_at > work.now,
        )
    )
    if row is None:
        return None
    if row.request_hash != request_hash:
        raise ConflictingMutationError(
            "This Idempotency-Key was used for another request; send a new key."
        )
    try:
        return Reply(row.status, keys.unseal(row.reply, _place(fingerprint)))
    except UnreadableError:
        raise ConflictingMutationError(
            "The reply kept for this Idempotency-Key can no longer be read; send a new key."
        ) from None


async def remember(
    work: UnitOfWork, keys: KeyRing, fingerprint: bytes, request_hash: bytes, reply: Reply
) -> None:
    """Keep a reply for the window; raises InProgressError if another call was faster."""
    values = {
        "request_hash": request_hash,
        "status": reply.status,
        "reply": keys.seal(reply.body, _place(fingerprint)),
        "created_at": work.now,
        "expires_at": work.now + WINDOW,
    }
    statement = (
        insert(idempotency_reply)
        .values(id=new_id(), fingerprint=fingerprint, **values)
        .on_conflict_do_update(
            index_elements=["fingerprint"],
            set_=values,
            where=idempotency_reply.c.expires_at <= work.now,
        )
    )
    if (await work.execute(statement)).rowcount == 0:
        raise _running()


async def purge_replies(work: UnitOfWork) -> int:
    """Delete replies whose window has passed; gives how many."""
    old = delete(idempotency_reply).where(idempotency_reply.c.expires_at <= work.now)
    return (await work.execute(old)).rowcount


def _place(fingerprint: bytes) -> str:
    return f"idempotency_reply|{fingerprint.hex()}|reply"


def _running() -> InProgressError:
    return InProgressError("A call with this Idempotency-Key is still running; try again soon.")
