"""The table of calls whose repetition starts no second run, and its retention."""

from datetime import datetime

from sqlalchemy import Index, LargeBinary, delete, select, tuple_
from sqlmodel import Field, SQLModel

from models.core.base import Id
from models.core.purging import MAX_ROWS
from runtime.database import UnitOfWork
from runtime.postgresql.schema import Timestamp, same_workspace, table_of


class WebhookReceipt(SQLModel, table=True):
    """A call and the run it started; until it expires, calls with the same key are this one.

    The run may be gone by then, so the row does not hold on to it.
    """

    __tablename__ = "webhook_receipt"
    __table_args__ = (
        same_workspace("automation_id", "automation.id"),
        Index("ix_webhook_receipt_expires_at", "expires_at"),
    )

    automation_id: Id = Field(primary_key=True)
    key_hash: bytes = Field(sa_type=LargeBinary, primary_key=True)
    workspace_id: Id
    run_id: Id
    expires_at: datetime = Field(sa_type=Timestamp)


webhook_receipt = table_of(WebhookReceipt)


async def purge_receipts(work: UnitOfWork, limit: int = MAX_ROWS) -> int:
    """Delete receipts past their window. Returns their number; call it until that is 0."""
    key = (webhook_receipt.c.automation_id, webhook_receipt.c.key_hash)
    old = (
        select(*key)
        .where(webhook_receipt.c.expires_at <= work.now)
        .order_by(webhook_receipt.c.expires_at)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    return (await work.execute(delete(webhook_receipt).where(tuple_(*key).in_(old)))).rowcount
