"""Deleting authorizations whose users did not come back."""

from sqlalchemy import select

from models.core.purging import MAX_ROWS, purge
from models.sources.authorizations.tables import oauth_authorization
from runtime.database import UnitOfWork


async def purge_authorizations(work: UnitOfWork, limit: int = MAX_ROWS) -> int:
    """Remove what has expired and was not exchanged.

    Gives how many rows were removed, at most `limit`; to be called until it is 0.
    """
    old = (
        select(oauth_authorization.c.id)
        .where(
            oauth_authorization.c.expires_at < work.now, oauth_authorization.c.returned_at.is_(None)
        )
        .order_by(oauth_authorization.c.expires_at)
    )
    return await purge(work, oauth_authorization, old, limit)
