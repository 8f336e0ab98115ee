"""Jobs that export records: rows are gathered part by part, then written as one file."""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from pydantic_core import to_json
from typing_extensions import override

from activities.jobs.spreadsheets import write_spreadsheet
from activities.jobs.transactions import Chunks
from activities.open_transactions import keep_open
from activities.sources.processes import NICENESS, run_in_process
from models.core.base import Id, JsonObject
from models.data.record_exports.commands import record_export
from models.data.record_exports.queries import Rows, read_rows
from models.data.record_exports.rules import MAX_RECORDS, MAX_SHEET_CELLS
from models.data.record_exports.shapes import ExportFormat
from models.messages.jobs.rows import JobRow
from runtime.database import UnitOfWork
from runtime.errors import UnavailableError, UnsupportedError
from runtime.file_digests import size_and_digest
from runtime.object_store import ObjectStore

_QUICK = 256 * 1024
"""Bytes of rows that are written before it would be noticed."""
PART = 10_000
"""Rows of one part, and so of one chunk."""


class StoreAwayError(Exception):
    """The object store does not answer: the chunk is repeated until it does."""

    retryable = True


class Exports(Chunks):
    """Gather rows, write the file, remove what was gathered.

    A chunk that is repeated writes the same objects again, so nothing is ever doubled.
    """

    def __init__(self, store: ObjectStore, part: int = PART) -> None:
        self._store = store
        self._part = part
        self._page = asyncio.Lock()

    @override
    async def advance(self, work: UnitOfWork, job: JobRow) -> JsonObject | None:
        progress = job.progress or {"parts": 0, "count": 0, "position": None, "whole": False}
        try:
            if "fileId" in progress:
                await self._remove(job, progress["parts"])
                return None
            if progress["whole"]:
                return {**progress, "fileId": str(await self._write(work, job, progress["parts"]))}
            return await self._gather(work, job, progress)
        except UnavailableError as error:
            raise StoreAwayError from error

    @override
    async def result(self, work: UnitOfWork, job: JobRow) -> JsonObject:
        return {"fileId": job.progress["fileId"]}

    @override
    async def undo(self, work: UnitOfWork, job: JobRow) -> bool:
        # One part may have been written whose progress was not.
        await self._remove(job, job.progress.get("parts", 0) + 1)
        return True

    async def _gather(self, work: UnitOfWork, job: JobRow, progress: JsonObject) -> JsonObject:
        after = dict(progress)

        async def lines() -> AsyncIterator[bytes]:
            until = progress["count"] + self._part
            while not after["whole"] and after["count"] < until:
                found = await self._read(work, job, after["position"])
                after["count"] += len(found.rows)
                after["position"] = found.position
                after["whole"] = found.position is None
                yield b"".join(to_json(row) + b"\n" for row in found.rows)

        await self._store.put(_part_key(job, progress["parts"]), lines())
        _check_size(job, after["count"])
        return {**after, "parts": progress["parts"] + 1}

    async def _read(self, work: UnitOfWork, job: JobRow, position: list[Any] | None) -> Rows:
        """The next page. All exports of a worker leave half of its time to other work."""
        async with self._page:
            started = time.monotonic()
            page = await read_rows(work, job, position)
            await asyncio.sleep(time.monotonic() - started)
            return page

    async def _write(self, work: UnitOfWork, job: JobRow, parts: int) -> Id:
        with tempfile.TemporaryDirectory(prefix="workspace-export-") as directory:
            source, target = Path(directory, "rows"), Path(directory, "file")
            await keep_open(work, self._fetch(job, parts, source))
            file_format = ExportFormat(job.input["format"])
            writing = write_spreadsheet, file_format, job.input["labels"], source, target
            size = (await asyncio.to_thread(source.stat)).st_size
            niceness = NICENESS if size > _QUICK else 0
            await keep_open(work, run_in_process(*writing, niceness=niceness))
            size, digest = await asyncio.to_thread(size_and_digest, target)
            await keep_open(work, self._store.put_file(_file_key(job), target))
            return await record_export(work, job, _file_key(job), size, digest)

    async def _fetch(self, job: JobRow, parts: int, target: Path) -> None:
        with await asyncio.to_thread(target.open, "wb") as file:
            for part in range(parts):
                async for piece in self._store.get(_part_key(job, part)):
                    await asyncio.to_thread(file.write, piece)

    async def _remove(self, job: JobRow, parts: int) -> None:
        for part in range(parts):
            await self._store.delete(_part_key(job, part))


def _check_size(job: JobRow, records: int) -> None:
    if records > MAX_RECORDS:
        raise UnsupportedError(
            f"An export holds at most {MAX_RECORDS:,} records. Narrow it with a filter."
        )
    is_sheet = ExportFormat(job.input["format"]) is ExportFormat.XLSX
    if is_sheet and records * len(job.input["labels"]) > MAX_SHEET_CELLS:
        raise UnsupportedError(
            f"A sheet holds at most {MAX_SHEET_CELLS:,} cells. Choose fewer fields, or csv."
        )


def _part_key(job: JobRow, part: int) -> str:
    return f"exports/{job.workspace_id}/{job.id}/{part}"


def _file_key(job: JobRow) -> str:
    return f"files/{job.workspace_id}/{job.id}"
