"""The table of calls whose repetition starts no second run, and its retention."""

from datetime import datetime

from sqlalchemy import Index, LargeBinary
from sqlmodel import Field, SQLModel

from models.core.base import Id
from models.core.purging import Retention
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


purge_receipts = Retention(webhook_receipt, webhook_receipt.c.expires_at)
"""Receipts past their window."""
