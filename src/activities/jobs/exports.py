"""Jobs that export records or a workspace: gathered part by part, then written as one file."""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic_core import from_json, to_json
from typing_extensions import override

from activities.heartbeats import keep_open
from activities.jobs.spreadsheets import write_spreadsheet
from activities.jobs.transactions import Chunks
from activities.sources.processes import NICENESS, run_in_process
from models.core.base import Id, JsonObject
from models.core.bundles import BundleKind
from models.data.record_exports.exports import Rows, read_rows, record_export
from models.data.record_exports.rules import MAX_RECORDS, MAX_SHEET_CELLS
from models.data.record_exports.shapes import ExportFormat
from models.messages.jobs.store import JobRow
from models.people.workspaces import WorkspaceBody
from models.workspace.bundles import rules as bundle_rules
from models.workspace.bundles.archives import ZipWriter
from models.workspace.bundles.lines import blobs_of, next_database, read_lines
from models.workspace.bundles.registry import KINDS
from models.workspace.workspace_exports import exported_workspace, record_bundle
from runtime.database import UnitOfWork
from runtime.errors import UnavailableError, UnsupportedError
from runtime.object_store import ObjectStore, size_and_digest

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
            # Under the lock, so that several exports together pause as long as they read.
            await asyncio.sleep(time.monotonic() - started)
            return page

    async def _write(self, work: UnitOfWork, job: JobRow, parts: int) -> Id:
        with tempfile.TemporaryDirectory(prefix="workspace-export-") as directory:
            source, target = Path(directory, "rows"), Path(directory, "file")
            # The database ends a transaction that is idle for a minute, and a large file takes
            # longer.
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
        raise UnsupportedError(f"An export is limited to {MAX_RECORDS:,} records. Add a filter.")
    is_sheet = ExportFormat(job.input["format"]) is ExportFormat.XLSX
    if is_sheet and records * len(job.input["labels"]) > MAX_SHEET_CELLS:
        raise UnsupportedError(
            f"A sheet is limited to {MAX_SHEET_CELLS:,} cells. Choose fewer fields, or CSV."
        )


PARTS = "exports"
"""The prefix of the keys of all parts of exports."""


def _part_key(job: JobRow, part: int) -> str:
    return f"{PARTS}/{job.workspace_id}/{job.id}/{part}"


def _file_key(job: JobRow) -> str:
    return f"files/{job.workspace_id}/{job.id}"


BUNDLE_PAGE = 5_000
"""Rows of one part."""

PARTS_OF_CHUNK = 4
"""Parts of one chunk."""


@dataclass(slots=True)
class _Progress:
    """The progress of an export, stored in its job.

    `files` has the part numbers of each path, `rows` the number of rows in its parts.
    """

    kind: int = 0
    database: str | None = None
    after: list[Any] | None = None
    parts: int = 0
    files: dict[str, list[int]] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    blobs: list[int] = field(default_factory=list)
    made: dict[str, Any] | None = None


class WorkspaceExports(Chunks):
    """Gather rows kind by kind, write the bundle, remove what was gathered.

    A chunk that is repeated writes the same objects again, so nothing is ever doubled.
    """

    def __init__(self, store: ObjectStore, page: int = BUNDLE_PAGE) -> None:
        self._store = store
        self._page = page

    @override
    async def advance(self, work: UnitOfWork, job: JobRow) -> JsonObject | None:
        progress = _Progress(**job.progress)
        try:
            exported = await exported_workspace(work, job)
            if progress.made is not None:
                await self._remove(job, progress.parts)
                return None
            if progress.kind < len(KINDS):
                # Several small parts share one transaction, whose overhead is most of their cost.
                for _ in range(PARTS_OF_CHUNK):
                    if progress.kind < len(KINDS):
                        await self._gather(work, job, progress)
            else:
                progress.made = await self._write(work, job, exported, progress)
            return asdict(progress)
        except UnavailableError as error:
            raise StoreAwayError from error

    @override
    async def result(self, work: UnitOfWork, job: JobRow) -> JsonObject:
        made: JsonObject = job.progress["made"]
        return made

    @override
    async def undo(self, work: UnitOfWork, job: JobRow) -> bool:
        # Some parts may have been written whose progress was not.
        await self._remove(job, job.progress.get("parts", 0) + 2 * PARTS_OF_CHUNK)
        return True

    async def _gather(self, work: UnitOfWork, job: JobRow, at: _Progress) -> None:
        """Write the next part, and move the progress to the one after it."""
        kind = KINDS[at.kind]
        database_id = None
        if "{database_id}" in kind.file:
            if at.after is None:
                found = await next_database(work, job.workspace_id, at.database)
                if found is None:
                    at.kind, at.database = at.kind + 1, None
                    return
                at.database = str(found)
            database_id = Id(str(at.database))
        page = await read_lines(work, job.workspace_id, kind, at.after, self._page, database_id)
        if page.lines:
            path = kind.file.format(database_id=database_id)
            at.files.setdefault(path, []).append(await self._put(job, at, page.lines))
            at.rows[path] = at.rows.get(path, 0) + len(page.lines)
            at.counts[kind.name] = at.counts.get(kind.name, 0) + len(page.lines)
            await self._note_blobs(work, job, kind, page.lines, at)
        at.after = page.position
        if page.position is None and database_id is None:
            at.kind += 1

    async def _note_blobs(
        self, work: UnitOfWork, job: JobRow, kind: BundleKind, lines: list[bytes], at: _Progress
    ) -> None:
        """Remember where the bytes of files are."""
        if kind.blobs:
            ids = [from_json(line)["id"] for line in lines]
            found = await blobs_of(work, job.workspace_id, kind, ids)
            at.blobs.append(await self._put(job, at, [to_json(one) for one in found]))

    async def _put(self, job: JobRow, at: _Progress, lines: list[bytes]) -> int:
        number = at.parts
        await self._store.put(_bundle_part_key(job, number), _once(b"\n".join(lines) + b"\n"))
        at.parts += 1
        return number

    async def _write(
        self, work: UnitOfWork, job: JobRow, exported: WorkspaceBody, at: _Progress
    ) -> JsonObject:
        writer = ZipWriter()
        pieces = self._pieces(writer, job, exported, at)
        size = await keep_open(work, self._store.put(_file_key(job), writer.digested(pieces)))
        await record_bundle(work, job, exported.name, _file_key(job), size, writer.digest)
        return {"objectKey": _file_key(job), "sha256": writer.digest.hex(), "bytes": size}

    async def _pieces(
        self, writer: ZipWriter, job: JobRow, exported: WorkspaceBody, at: _Progress
    ) -> AsyncIterator[bytes]:
        """The bytes of the bundle."""
        where = bundle_rules.home(job.workspace_id)
        described = exported.model_dump_json(by_alias=True, include={"id", "name", "slug", "icon"})
        async for piece in writer.add(f"{where}workspace.json", _once(described.encode())):
            yield piece
        for path, parts in at.files.items():
            async for piece in writer.add(where + path, self._parts(job, parts)):
                yield piece
        async for piece in self._blobs(writer, job, at):
            yield piece
        rows = {where + path: count for path, count in at.rows.items()}
        entry = bundle_rules.ManifestWorkspace.model_validate(
            {"id": exported.id, "name": exported.name, "counts": at.counts}
        )
        began = job.started_at or job.created_at
        manifest = bundle_rules.manifest_text(entry, began, writer.written, rows)
        # Last, because it has the digests of all other files.
        async for piece in writer.add(bundle_rules.MANIFEST, _once(manifest)):
            yield piece
        yield writer.close()

    async def _blobs(self, writer: ZipWriter, job: JobRow, at: _Progress) -> AsyncIterator[bytes]:
        """The bytes of files, each once."""
        for number in at.blobs:
            noted = b"".join(
                [piece async for piece in self._store.get(_bundle_part_key(job, number))]
            )
            for line in noted.splitlines():
                sha256, object_key = from_json(line)
                path = f"{bundle_rules.home(job.workspace_id)}blobs/{sha256}"
                if path in writer.written:
                    continue
                if len(writer.written) >= bundle_rules.MAX_FILES - 1:
                    raise UnsupportedError(
                        f"A bundle is limited to {bundle_rules.MAX_FILES:,} files."
                    )
                content = self._store.get(object_key)
                async for piece in writer.add(path, content, packed=False):
                    yield piece

    async def _parts(self, job: JobRow, parts: list[int]) -> AsyncIterator[bytes]:
        for number in parts:
            async for piece in self._store.get(_bundle_part_key(job, number)):
                yield piece

    async def _remove(self, job: JobRow, parts: int) -> None:
        for number in range(parts):
            await self._store.delete(_bundle_part_key(job, number))


async def _once(text: bytes) -> AsyncIterator[bytes]:
    yield text


def _bundle_part_key(job: JobRow, number: int) -> str:
    return f"{PARTS}/{job.workspace_id}/{job.id}/{number}"
