"""The place of a database in the schema's history."""

from functools import cache

from sqlalchemy import text

from models.migrations.runner import head
from runtime.database import UnitOfWork

_known_head = cache(head)


async def is_at_head(work: UnitOfWork) -> bool:
    """Compare the schema with the newest this build knows."""
    if await work.scalar(text("SELECT to_regclass('alembic_version')")) is None:
        return False
    version = await work.scalar(text("SELECT version_num FROM alembic_version"))
    return bool(version == _known_head())
