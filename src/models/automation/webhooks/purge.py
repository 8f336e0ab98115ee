"""Deleting the receipts of calls that are older than their deduplication window."""

from sqlalchemy import delete, select, tuple_

from models.automation.webhooks.tables import webhook_receipt
from models.core.purging import MAX_ROWS
from runtime.database import UnitOfWork


async def purge_receipts(work: UnitOfWork, limit: int = MAX_ROWS) -> int:
    """Delete receipts past their window. Returns how many; to be called until it is 0."""
    key = (webhook_receipt.c.automation_id, webhook_receipt.c.key_hash)
    old = (
        select(*key)
        .where(webhook_receipt.c.expires_at <= work.now)
        .order_by(webhook_receipt.c.expires_at)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    return (await work.execute(delete(webhook_receipt).where(tuple_(*key).in_(old)))).rowcount
