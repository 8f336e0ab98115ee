"""Stored replies of calls with an `Idempotency-Key`: rules, table, and claiming a key."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import BYTEA, insert
from sqlmodel import Field, SQLModel

from models.core.base import Id
from models.core.purging import Retention
from runtime.crypto import KeyRing, UnreadableError, sealed
from runtime.database import UnitOfWork
from runtime.errors import ConflictingMutationError, InProgressError, PlatformError, ValidationError
from runtime.ids import new_id
from runtime.postgresql.schema import Timestamp, table_of
from runtime.postgresql.statements import PreparedStatement

HEADER = "Idempotency-Key"
WINDOW = timedelta(hours=24)
MAX_LENGTH = 255

_UNDECIDED = frozenset({400, 401, 403, 404, 408, 413, 415, 429})
"""Statuses of faults in a request or its caller, to be put right before the call is repeated."""


def read_key(values: list[bytes]) -> str | None:
    """The key a client sent, None without one; raises ValidationError for a malformed one."""
    if not values:
        return None
    if len(values) > 1:
        raise ValidationError.at(HEADER, "Send the header only once.")
    value = values[0].strip(b" \t")
    if not 1 <= len(value) <= MAX_LENGTH or not all(0x20 <= byte < 0x7F for byte in value):
        raise ValidationError.at(HEADER, "Must be 1 to 255 printable ASCII characters.")
    return value.decode("ascii")


def is_kept(refusal: PlatformError) -> bool:
    """True when a refusal is the call's answer for the window: the state of things decided it."""
    if isinstance(refusal, InProgressError):
        return False
    return refusal.status < 500 and refusal.status not in _UNDECIDED


def reply_place(fingerprint: bytes) -> str:
    """The place that the sealed reply to a call is bound to."""
    return f"idempotency_reply|{fingerprint.hex()}|reply"


class IdempotencyReply(SQLModel, table=True):
    """The answer to a call, encrypted: replies may carry a secret shown once.

    Status and reply are empty inside the transaction of the call, and while a job works on its
    answer.

    `fingerprint` is SHA-256 of principal, method, path and key: a path may be longer than an
    index entry can be. `workspace_id` is the workspace that the call was about.
    """

    __tablename__ = "idempotency_reply"
    __table_args__ = (
        sa.UniqueConstraint("fingerprint"),
        sa.Index("ix_idempotency_reply_expires_at", "expires_at"),
    )

    id: Id = Field(primary_key=True)
    fingerprint: bytes = Field(sa_type=BYTEA)
    request_hash: bytes = Field(sa_type=BYTEA)
    workspace_id: Id | None = None
    status: int | None = None
    reply: bytes | None = Field(
        default=None,
        sa_type=BYTEA,
        sa_column_kwargs=sealed(
            lambda row: reply_place(row.fingerprint), ("fingerprint",), short_lived=True
        ),
    )
    created_at: datetime = Field(sa_type=Timestamp)
    expires_at: datetime = Field(sa_type=Timestamp)


idempotency_reply = table_of(IdempotencyReply)


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    body: bytes


async def claim_key(
    work: UnitOfWork,
    keys: KeyRing,
    fingerprint: bytes,
    request_hash: bytes,
    workspace_id: Id | None = None,
    *,
    waits: bool = False,
) -> Reply | Id:
    """The stored reply; without one yet, the claim's id: the call ends in `remember_reply`.

    The row of a first call is written now, in the transaction of its effect: a refusal takes it
    back. A call whose answer a job gives commits before it has one; repeated meanwhile, it gets
    the id of the first. Raises InProgressError while another call with this key runs, unless it
    `waits` for that to commit, and ConflictingMutationError when the key was used for another
    request.
    """
    if waits:
        await work.execute(sa.select(sa.func.pg_advisory_xact_lock(_lock(fingerprint))))
    while (claim_id := await _take(work, fingerprint, request_hash, workspace_id)) is None:
        lock = sa.select(sa.func.pg_try_advisory_xact_lock(_lock(fingerprint)))
        if not await work.scalar(lock):
            raise _running()
        row = await work.first(
            sa.select(idempotency_reply).where(idempotency_reply.c.fingerprint == fingerprint),
            of=IdempotencyReply,
        )
        if row is not None and row.expires_at > work.now:
            return _found(keys, row, request_hash)
        # Past its window, or rolled back meanwhile: the key is free again.
        await work.execute(
            sa.delete(idempotency_reply).where(
                idempotency_reply.c.fingerprint == fingerprint,
                idempotency_reply.c.expires_at <= work.now,
            )
        )
    return claim_id


async def is_known(work: UnitOfWork, fingerprint: bytes, workspace_ids: Sequence[Id]) -> bool:
    """True when a call about one of the workspaces has used the key within the window."""
    used = idempotency_reply.c.workspace_id.in_(workspace_ids)
    return await work.scalar(sa.select(_living(work, fingerprint).where(used).exists())) is True


async def find_reply(
    work: UnitOfWork, keys: KeyRing, fingerprint: bytes, request_hash: bytes
) -> Reply | None:
    """The stored reply to a call; None when there is none.

    Raises ConflictingMutationError when the key was used for another request.
    """
    row = await work.first(_living(work, fingerprint), of=IdempotencyReply)
    found = None if row is None else _found(keys, row, request_hash)
    return found if isinstance(found, Reply) else None


async def forget_reply(work: UnitOfWork, fingerprint: bytes) -> None:
    """Free the key of a call whose refusal after its commit is not kept."""
    await work.execute(
        sa.delete(idempotency_reply).where(
            idempotency_reply.c.fingerprint == fingerprint, idempotency_reply.c.reply.is_(None)
        )
    )


async def remember_reply(work: UnitOfWork, keys: KeyRing, fingerprint: bytes, reply: Reply) -> None:
    """Keep the reply to a claimed call for the window."""
    sealed = keys.seal(reply.body, reply_place(fingerprint))
    parameters = {"of": fingerprint, "status": reply.status, "reply": sealed}
    await _REMEMBER.execute(work, parameters)


async def keep_refusal(
    work: UnitOfWork,
    keys: KeyRing,
    fingerprint: bytes,
    request_hash: bytes,
    refusal: Reply,
    workspace_id: Id | None = None,
) -> Reply:
    """Keep what a call was refused with, whose transaction and claim were rolled back.

    Another call may have used the key meanwhile: its answer is then that of both. Raises
    InProgressError while the other has none.
    """
    if await _take(work, fingerprint, request_hash, workspace_id) is None:
        reply = await claim_key(work, keys, fingerprint, request_hash, workspace_id)
        if isinstance(reply, Reply):
            return reply
        raise _running()
    await remember_reply(work, keys, fingerprint, refusal)
    return refusal


def _running() -> InProgressError:
    """The refusal of a call whose key another call is using right now."""
    return InProgressError("A request with this Idempotency-Key is still running. Try again soon.")


async def _take(
    work: UnitOfWork, fingerprint: bytes, request_hash: bytes, workspace_id: Id | None
) -> Id | None:
    """Write the row of a running call, and its id; None when another call has the key.

    The lock is tried, not waited for: a second call is refused at once.
    """
    parameters = {
        "_id": new_id(),
        "_fingerprint": fingerprint,
        "_request_hash": request_hash,
        "_workspace_id": workspace_id,
        "_created_at": work.now,
        "_expires_at": work.now + WINDOW,
        "_lock": _lock(fingerprint),
    }
    row = await _TAKE.first(work, parameters)
    return None if row is None else Id(str(row.id))


_COLUMNS = ("id", "fingerprint", "request_hash", "workspace_id", "created_at", "expires_at")

_TAKE = PreparedStatement(
    insert(idempotency_reply)
    .from_select(
        list(_COLUMNS),
        sa.select(
            *(sa.bindparam(f"_{name}", type_=idempotency_reply.c[name].type) for name in _COLUMNS)
        ).where(sa.func.pg_try_advisory_xact_lock(sa.bindparam("_lock", type_=sa.BigInteger))),
    )
    .on_conflict_do_nothing()
    .returning(idempotency_reply.c.id)
)

_REMEMBER = PreparedStatement(
    sa.update(idempotency_reply)
    .where(idempotency_reply.c.fingerprint == sa.bindparam("of"))
    .values(status=sa.bindparam("status"), reply=sa.bindparam("reply"))
)


def _living(work: UnitOfWork, fingerprint: bytes) -> sa.Select[Any]:
    return sa.select(idempotency_reply).where(
        idempotency_reply.c.fingerprint == fingerprint, idempotency_reply.c.expires_at > work.now
    )


def _found(keys: KeyRing, row: IdempotencyReply, request_hash: bytes) -> Reply | Id:
    if row.request_hash != request_hash:
        raise ConflictingMutationError(
            "This Idempotency-Key was used for another request. Send a new key."
        )
    if row.status is None or row.reply is None:
        return Id(str(row.id))
    try:
        return Reply(row.status, keys.unseal(row.reply, reply_place(row.fingerprint)))
    except UnreadableError:
        raise ConflictingMutationError(
            "The response to this Idempotency-Key can no longer be read. Send a new key."
        ) from None


purge_replies = Retention(idempotency_reply, idempotency_reply.c.expires_at)
"""Replies past their window."""


def _lock(fingerprint: bytes) -> int:
    """The advisory lock of a key: one of 2^64, so that a clash only ever delays."""
    return int.from_bytes(fingerprint[:8], "big", signed=True)
