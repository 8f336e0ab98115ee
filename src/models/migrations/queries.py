"""The place of a database in the schema's history."""

from functools import cache
from pathlib import Path

from sqlalchemy import text

from runtime.database import UnitOfWork

_VERSIONS = Path(__file__).parent / "versions"


@cache
def newest() -> str:
    """The newest revision this build knows: the highest number among the names of its files.

    Alembic, which finds the same, is a twentieth of the start of an API that migrates nothing.
    """
    return max(file.name.partition("_")[0] for file in _VERSIONS.glob("[0-9]*_*.py"))


async def is_at_head(work: UnitOfWork) -> bool:
    """Compare the schema with the newest this build knows."""
    if await work.scalar(text("SELECT to_regclass('alembic_version')")) is None:
        return False
    version = await work.scalar(text("SELECT version_num FROM alembic_version"))
    return bool(version == newest())
