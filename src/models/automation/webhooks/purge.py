"""Forgetting calls whose repetition is a new call."""

from sqlalchemy import delete, select, tuple_

from models.automation.webhooks.tables import webhook_receipt
from models.core.purging import MAX_ROWS
from runtime.database import UnitOfWork


async def purge_receipts(work: UnitOfWork, limit: int = MAX_ROWS) -> int:
    """Remove receipts past their window; how many. To be called until it gives 0."""
    key = (webhook_receipt.c.automation_id, webhook_receipt.c.key_hash)
    old = (
        select(*key)
        .where(webhook_receipt.c.expires_at <= work.now)
        .order_by(webhook_receipt.c.expires_at)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    return (await work.execute(delete(webhook_receipt).where(tuple_(*key).in_(old)))).rowcount
