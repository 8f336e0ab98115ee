"""Imports of spreadsheets: against reading and COPY alone, their memory, and what others feel."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
from python_calamine import CalamineWorkbook

from bench import sheets
from bench.fairness import another_workspace, measured
from bench.figures import Figure, quantile
from bench.graphs import THREE_QUICK
from bench.memory import watched
from bench.platform import Platform
from bench.rounds import Rounds

ROWS = 50_000
MEMORY = 300.0
"""MiB that an import may take beside what an idle platform holds."""
ALONE = 6.0
"""Seconds for which the other workspace is measured alone."""
FEW, MANY, VERY_MANY = 20_000, 200_000, 1_000_000
VERY_MANY_COLUMNS = 3
"""A file of very many rows is still no larger than an import may be."""
_LONG = 600.0


async def import_rates(platform: Platform, rounds: Rounds, scratch: Path) -> list[Figure]:
    """Rows of a file imported a second, and the memory of the worker and of the API."""
    workbook = Figure(f"import of {ROWS} x 10 XLSX vs calamine + COPY", "1/s", at_least=0.5)
    text = Figure(f"import of {ROWS} x 10 CSV vs calamine + COPY", "1/s", at_least=0.6)
    worker, api = _memory(f"{ROWS} x 10 XLSX")
    contents = {
        "xlsx": await asyncio.to_thread(sheets.workbook, ROWS),
        "csv": await asyncio.to_thread(sheets.delimited, ROWS),
    }
    path, files = scratch / "goods.xlsx", {}
    path.write_bytes(contents["xlsx"])
    for kind, content in contents.items():
        files[kind] = await uploaded(platform, f"goods.{kind}", content)
        await imported(platform, files[kind], ROWS)
    for _ in rounds:
        floor = await asyncio.to_thread(_read_and_copied, platform.database_url, path)
        async with (
            watched([platform.worker_pid]) as of_worker,
            watched([platform.api_pid]) as of_api,
        ):
            workbook.add(ROWS / await imported(platform, files["xlsx"], ROWS), ROWS / floor)
        worker.add(of_worker.growth, MEMORY)
        api.add(of_api.growth, MEMORY)
        text.add(ROWS / await imported(platform, files["csv"], ROWS), ROWS / floor)
    return [workbook, text, worker, api]


async def neighbours(platform: Platform, rounds: Rounds) -> list[Figure]:
    """The automations of another workspace alone, and while a workbook is imported."""
    latency = Figure("automations of others beside an import, p95", "ms", at_most=2.0)
    content = await asyncio.to_thread(sheets.workbook, ROWS)
    file_id = await uploaded(platform, "goods.xlsx", content)
    async with another_workspace(platform) as quiet:
        calm = await quiet.publish("Quiet", THREE_QUICK)
        await quiet.run_one(calm)
        for _ in rounds:
            alone, _ = await measured(quiet, calm, asyncio.sleep(ALONE, 1.0))
            beside, _ = await measured(quiet, calm, _imported_twice(platform, file_id))
            latency.add(quantile(beside, 0.95) * 1000, quantile(alone, 0.95) * 1000)
            latency.tail(beside, alone)
    return [latency]


async def _imported_twice(platform: Platform, file_id: str) -> float:
    return sum([await imported(platform, file_id, ROWS) for _ in range(2)])


async def large_imports(platform: Platform, rounds: Rounds) -> list[Figure]:
    """How the time grows with the rows, and the memory of a file of a million rows."""
    growth = Figure(f"import of {MANY} vs {FEW} rows of CSV", "s", at_most=12)
    worker, api = _memory(f"{VERY_MANY} rows of CSV")
    few, many = [await _delimited(platform, count) for count in (FEW, MANY)]
    very_many = await _delimited(platform, VERY_MANY, VERY_MANY_COLUMNS)
    await imported(platform, few, FEW)
    for number in rounds:
        growth.add(await imported(platform, many, MANY), await imported(platform, few, FEW))
        if number == 0:
            async with (
                watched([platform.worker_pid]) as of_worker,
                watched([platform.api_pid]) as of_api,
            ):
                fields = sheets.FIELDS[:VERY_MANY_COLUMNS]
                await imported(platform, very_many, VERY_MANY, fields=fields)
            worker.add(of_worker.growth, MEMORY)
            api.add(of_api.growth, MEMORY)
    return [growth, worker, api]


def _memory(of: str) -> list[Figure]:
    return [
        Figure(f"memory of the {process} beside idle, {of}", "MiB", at_most=1.0)
        for process in ("worker and its children", "API")
    ]


async def _delimited(platform: Platform, count: int, columns: int = len(sheets.HEADERS)) -> str:
    content = await asyncio.to_thread(sheets.delimited, count, columns=columns)
    return await uploaded(platform, f"goods-{count}.csv", content)


async def uploaded(platform: Platform, name: str, content: bytes) -> str:
    """Store a file; its id."""
    path = f"/v1/workspaces/{platform.connection['workspaceId']}/files"
    headers = {"Content-Type": "application/octet-stream"}
    response = await platform.http.post(
        path, params={"name": name}, content=content, headers=headers
    )
    response.raise_for_status()
    return str(response.json()["data"]["fileId"])


async def imported(
    platform: Platform, file_id: str, count: int, fields: Sequence[dict[str, Any]] = sheets.FIELDS
) -> float:
    """Seconds from the request for a new database with this number of records until it exists."""
    path = f"/v1/workspaces/{platform.connection['workspaceId']}/data-sources/import-spreadsheet"
    started = time.perf_counter()
    body = {
        "label": "Imported",
        "kind": "file",
        "fileId": file_id,
        "fields": fields,
        "clientMutationId": f"{file_id}-{started}",
    }
    response = await platform.http.post(path, json=body)
    while response.status_code == 409 and time.perf_counter() - started < _LONG:
        response = await platform.http.post(path, json=body)
    response.raise_for_status()
    taken = time.perf_counter() - started
    assert response.json()["data"]["recordCount"] == count, response.text
    return taken


def _read_and_copied(database_url: str, path: Path) -> float:
    """Seconds of reading the workbook and copying its rows into a bare table."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS bare")
        connection.execute(f"CREATE TABLE bare ({sheets.BARE_TABLE})")
        started = time.perf_counter()
        sheet = CalamineWorkbook.from_path(path).get_sheet_by_index(0)
        lines = iter(sheet.iter_rows())
        next(lines)
        with connection.cursor() as cursor, cursor.copy("COPY bare FROM STDIN") as copy:
            for line in lines:
                copy.write_row(line)
        return time.perf_counter() - started
