"""Locks of PostgreSQL by name, for what no row stands for."""

from sqlalchemy import func, select

from runtime.database import UnitOfWork


async def lock_name(work: UnitOfWork, name: str) -> None:
    """Wait until no other transaction has the lock of a name, and keep it until the commit."""
    await work.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(name, 0))))
