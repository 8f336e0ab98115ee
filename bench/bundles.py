"""Bundles that are brought in: against COPY of the same rows, and the memory it takes."""

import asyncio
import io
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg

from bench.figures import Figure
from bench.memory import watched
from bench.platform import Platform
from bench.rounds import Rounds
from cli.convert.bundle_file import BundleFile, Report
from models.data.fields.rules.fields import FieldKind, FieldSpec
from runtime.ids import new_id

RECORDS = 100_000
TOGETHER, EACH = 3, 3_000
"""Workspaces that are imported at once, and the records of each."""
FEW, VERY_MANY = 10_000, 1_000_000
MEMORY = 300.0
"""MiB that the worker may take above its idle memory, for any number of records."""
_LONG = 3_600.0
_PAUSE = 0.1
_REVIEWED = {"uploaded", "validating", "dry_running"}
_IMPORTED = {"approved", "importing", "verifying"}
_COLUMNS = "id, workspace_id, database_id, title, data, archived, created_at, updated_at"


async def bundle_rates(platform: Platform, rounds: Rounds, scratch: Path) -> list[Figure]:
    """Records applied and verified a second, from the start to the end of an approved import."""
    rate = Figure(f"import of a bundle of {RECORDS} records vs COPY", "1/s", at_least=0.25)
    path = await asyncio.to_thread(_bundle, scratch / "bundle.zip", RECORDS)
    rounds = rounds.shared_by(2)
    for _ in rounds:
        taken = await _imported(platform, path)
        rate.add(RECORDS / taken, RECORDS / await asyncio.to_thread(_copied, platform, RECORDS))
    return [rate, await _together(platform, rounds, scratch)]


async def _together(platform: Platform, rounds: Rounds, scratch: Path) -> Figure:
    """Workspaces imported concurrently against as many one after another, each a run of its own."""
    growth = Figure(f"import of {TOGETHER} workspaces at once vs in turn", "s", at_most=1.0)
    path = await asyncio.to_thread(_bundle, scratch / "each.zip", EACH)
    for _ in rounds:
        started = time.perf_counter()
        for _ in range(TOGETHER):
            await _imported(platform, path)
        in_turn = time.perf_counter() - started
        started = time.perf_counter()
        await asyncio.gather(*(_imported(platform, path) for _ in range(TOGETHER)))
        growth.add(time.perf_counter() - started, in_turn)
    return growth


async def large_bundles(platform: Platform, scratch: Path) -> list[Figure]:
    """How time and memory grow from few records to very many."""
    growth = Figure(f"import of {VERY_MANY} vs {FEW} records of a bundle", "s", at_most=150)
    memory = Figure(f"memory of the worker beside idle, {VERY_MANY} records", "MiB", at_most=1.0)
    few = await _imported(platform, await asyncio.to_thread(_bundle, scratch / "few.zip", FEW))
    many = await asyncio.to_thread(_bundle, scratch / "many.zip", VERY_MANY)
    async with watched([platform.worker_pid]) as of_worker:
        growth.add(await _imported(platform, many), few)
    memory.add(of_worker.growth, MEMORY)
    return [growth, memory]


def _bundle(path: Path, count: int) -> Path:
    """A bundle with one database of this number of records."""
    with BundleFile(path, "Bench", "bench/1", Report()) as bundle:
        database = str(new_id())
        bundle.database(database, "goods", "Goods", None)
        kinds = {"title": FieldKind.TEXT, "code": FieldKind.TEXT, "price": FieldKind.NUMBER}
        for place, (key, kind) in enumerate(kinds.items()):
            spec = FieldSpec(id=new_id(), key=key, label=key, kind=kind, position=place)
            bundle.field(database, spec)
        for number in range(count):
            data = {"code": f"c{number}", "price": number}
            bundle.record(database, str(new_id()), f"Record {number}", data)
    return path


async def _imported(platform: Platform, path: Path) -> float:
    """Seconds that an approved import of a bundle takes."""
    content = await asyncio.to_thread(path.read_bytes)
    headers = {"Content-Type": "application/zip"}
    runs = "/v1/admin/legacy-imports"
    response = await platform.http.post(runs, content=content, headers=headers)
    response.raise_for_status()
    run = f"{runs}/{response.json()['data']['id']}"
    await _ended(platform, run, _REVIEWED, "awaiting_review")
    await platform.post(f"{run}/approve", {})
    await platform.post(f"{run}/start", {})
    ended = await _ended(platform, run, _IMPORTED, "completed")
    began, completed = (datetime.fromisoformat(ended[key]) for key in ("startedAt", "completedAt"))
    return (completed - began).total_seconds()


async def _ended(platform: Platform, run: str, open_states: set[str], wanted: str) -> Any:
    until = time.monotonic() + _LONG
    while time.monotonic() < until:
        shown = (await platform.http.get(run)).json()["data"]
        if shown["status"] not in open_states:
            assert shown["status"].startswith(wanted), shown
            return shown
        await asyncio.sleep(_PAUSE)
    raise TimeoutError(run)


def _copied(platform: Platform, count: int) -> float:
    """Seconds of copying as many records into a table like theirs, with its indexes."""
    with psycopg.connect(platform.database_url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS bare_record")
        connection.execute("CREATE TABLE bare_record (LIKE record INCLUDING ALL)")
        rows = io.BytesIO()
        newest = f"SELECT {_COLUMNS} FROM record ORDER BY created_at DESC LIMIT {count}"  # noqa: S608
        with connection.cursor() as cursor:
            with cursor.copy(f"COPY ({newest}) TO STDOUT") as copy:
                for piece in copy:
                    rows.write(piece)
            started = time.perf_counter()
            with cursor.copy(f"COPY bare_record ({_COLUMNS}) FROM STDIN") as copy:
                copy.write(rows.getvalue())
        return time.perf_counter() - started
