"""Copies of databases: against COPY of the same rows, and against themselves at a tenth."""

import time
import uuid

from bench.figures import Figure
from bench.platform import Platform
from bench.rounds import Rounds

MANY, FEW = 20_000, 2_000
FIELDS = [
    {"label": "Code", "kind": "text"},
    {"label": "Price", "kind": "number"},
    {"label": "State", "kind": "select", "options": [{"name": "Open"}, {"name": "Done"}]},
    {"label": "Due", "kind": "date"},
    {"label": "Notes", "kind": "long_text"},
]
_FILL = """
    INSERT INTO record (id, workspace_id, database_id, title, data, archived, created_at,
                        updated_at)
    SELECT gen_random_uuid(), %(workspace)s, %(database)s, 'Record ' || n,
           jsonb_build_object('code', 'C-' || n, 'price', n * 1.5, 'state', 'open',
                              'due', '2026-01-31', 'notes', repeat('some words ', 10)),
           false, now(), now()
    FROM generate_series(1, %(count)s) n
"""


async def copy_rates(platform: Platform, rounds: Rounds) -> list[Figure]:
    """Records copied a second against rows of a COPY, and how the time grows with the records."""
    rows = Figure(f"duplicate of {MANY} records vs COPY", "1/s", at_least=0.3)
    growth = Figure(f"duplicate of {MANY} vs {FEW} records", "s", at_most=12)
    many, few = await _filled(platform, MANY), await _filled(platform, FEW)
    await _duplicate(platform, few)
    floor = CopyFloor(platform, many)
    await floor.prepare()
    for _ in rounds:
        ours = await _duplicate(platform, many)
        rows.add(MANY / ours, MANY / await floor.seconds())
        growth.add(ours, await _duplicate(platform, few))
    return [rows, growth]


async def _filled(platform: Platform, count: int) -> str:
    body = {"label": f"Goods {count}", "fields": FIELDS}
    workspace = platform.connection["workspaceId"]
    made = await platform.post(f"/v1/workspaces/{workspace}/databases", body)
    values = {"workspace": workspace, "database": made["id"], "count": count}
    await platform.database.execute(_FILL, values)
    await platform.database.execute("ANALYZE record")
    return str(made["id"])


async def _duplicate(platform: Platform, database_id: str) -> float:
    """Seconds from the request to the answer with the whole copy."""
    workspace = platform.connection["workspaceId"]
    path = f"/v1/workspaces/{workspace}/databases/{database_id}/duplicate"
    started = time.perf_counter()
    await platform.post(path, {"includeRecords": True})
    return time.perf_counter() - started


class CopyFloor:
    """COPY of the records of a database into a table with the same indexes, committed."""

    def __init__(self, platform: Platform, database_id: str) -> None:
        self._database = platform.database
        self._database_id = uuid.UUID(database_id)
        self._rows = b""

    async def prepare(self) -> None:
        await self._database.execute(
            "CREATE TABLE IF NOT EXISTS copied (LIKE record INCLUDING ALL)"
        )
        read = "COPY (SELECT * FROM record WHERE database_id = %s) TO STDOUT"
        async with self._database.cursor().copy(read, [self._database_id]) as copy:
            self._rows = b"".join([bytes(block) async for block in copy])

    async def seconds(self) -> float:
        """Each round begins with an empty table, which is kinder to COPY than to us."""
        await self._database.execute("TRUNCATE copied")
        started = time.perf_counter()
        async with self._database.cursor().copy("COPY copied FROM STDIN") as copy:
            await copy.write(self._rows)
        return time.perf_counter() - started
