"""The table of stored replies."""

from datetime import datetime

from sqlalchemy import Index, UniqueConstraint
from sqlalchemy.dialects.postgresql import BYTEA
from sqlmodel import Field, SQLModel

from models.core.base import Id
from runtime.schema import Timestamp, table_of
from runtime.sealed_columns import sealed


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
        UniqueConstraint("fingerprint"),
        Index("ix_idempotency_reply_expires_at", "expires_at"),
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
