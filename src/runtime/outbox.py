"""The outbox: what Temporal must be told, written in the transaction that decided it.

A row that exists has not been delivered yet; delivering deletes it. Delivery is at least once,
and every intent is idempotent by workflow id.
"""

import uuid
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import BigInteger, Identity, Index, bindparam, delete, insert, select
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from runtime.database import UnitOfWork
from runtime.families import Family
from runtime.prepared import Prepared
from runtime.schema import Timestamp, table_of

CHANNEL = "outbox"
"""The NOTIFY channel that wakes the relay."""


class Intent(StrEnum):
    START = "start"
    CANCEL = "cancel"


class Outbox(SQLModel, table=True):
    """One undelivered intent; while `claimed_until` lies ahead, a relay is on it or backs off."""

    __tablename__ = "outbox"
    __table_args__ = (
        Index("ix_outbox_workspace_id_id", "workspace_id", "id"),
        Index("ix_outbox_subject_id", "subject_id"),
    )

    id: int = Field(sa_type=BigInteger, sa_column_args=[Identity(always=True)], primary_key=True)
    workspace_id: uuid.UUID
    intent: str
    family: str
    subject_id: uuid.UUID
    facts: dict[str, Any] = Field(sa_type=JSONB)
    created_at: datetime = Field(sa_type=Timestamp)
    claimed_until: datetime | None = Field(default=None, sa_type=Timestamp)
    attempts: int = 0


outbox = table_of(Outbox)


APPEND = insert(outbox).values(
    workspace_id=bindparam("workspace_id"),
    intent=bindparam("intent"),
    family=bindparam("family"),
    subject_id=bindparam("subject_id"),
    facts=bindparam("facts", type_=JSONB),
    created_at=bindparam("now", type_=Timestamp),
    attempts=0,
)
"""For statements that decide and record an intent at once; they set `wake_outbox` themselves."""

_APPEND = Prepared(APPEND)


def intent_values(
    work: UnitOfWork,
    *,
    intent: Intent,
    family: Family,
    workspace_id: uuid.UUID,
    subject_id: uuid.UUID,
    facts: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The parameters of `APPEND`, whose commit wakes the relay.

    `facts` are small and shown to operators: `summary`, `resourceId`, `source`, `priority`.
    """
    work.wake_outbox = True
    return {
        "workspace_id": workspace_id,
        "intent": intent,
        "family": family,
        "subject_id": subject_id,
        "facts": facts or {},
        "now": work.now,
    }


async def append(work: UnitOfWork, **intent: Any) -> None:
    """Record an intent (see `intent_values`) that reaches Temporal exactly if this commits."""
    await _APPEND.execute(work, intent_values(work, **intent))


async def withdraw_start(work: UnitOfWork, subject_id: uuid.UUID) -> bool:
    """Take back a start nobody has claimed; False when a relay may already be delivering it."""
    unclaimed = (
        select(outbox.c.id)
        .where(
            outbox.c.subject_id == subject_id,
            outbox.c.intent == Intent.START,
            outbox.c.claimed_until.is_(None),
        )
        .with_for_update(skip_locked=True)
    )
    result = await work.execute(delete(outbox).where(outbox.c.id.in_(unclaimed)))
    return result.rowcount > 0
