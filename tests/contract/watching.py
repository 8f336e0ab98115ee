"""What a workspace holds, hashed: a refusal must not move it."""

from sqlalchemy import text

from models.tables import metadata
from runtime.database import Database

_MOVES_BY_ITSELF = {"request_log"}
"""Written by the kernel for refused calls too."""


async def checksum(database: Database, workspace_id: str) -> str:
    """A hash of the rows of every table that belong to the workspace."""
    return repr(sorted((await checksums(database, workspace_id)).items()))


async def checksums(database: Database, workspace_id: str) -> dict[str, str | None]:
    """Of each table, a hash of the rows that belong to the workspace; None when there are none."""
    tables = [
        table.name
        for table in metadata.sorted_tables
        if "workspace_id" in table.c and table.name not in _MOVES_BY_ITSELF
    ]
    parts = " UNION ALL ".join(
        f"SELECT '{name}' AS name, md5(string_agg(r, '' ORDER BY r)) AS hash FROM"  # noqa: S608
        f" (SELECT (to_jsonb(x) - 'last_used_at')::text AS r FROM {name} x"
        " WHERE workspace_id = CAST(:workspace AS uuid)) q"
        for name in tables
    )
    async with database.transaction() as work:
        hashes = await work.rows(text(parts), {"workspace": workspace_id})
    return {row.name: row.hash for row in hashes}
