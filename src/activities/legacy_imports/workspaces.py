"""The work on one workspace of a run: what the run's status asks for, a stage in each call."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from temporalio import activity

from activities.database_errors import refusals
from activities.heartbeats import heartbeats
from activities.legacy_imports.chunks import Chunk, Chunks, chunks_of
from activities.reading_ahead import each_ahead
from models.core.base import Id
from models.core.bundles.findings import Findings
from models.core.bundles.kinds import BundleKind
from models.workspace.bundles.applying import (
    ReadChunk,
    apply_chunk,
    check_chunk,
    plan_chunk,
    read_chunk,
)
from models.workspace.bundles.context_rows import load_context_rows
from models.workspace.bundles.unpacking import load_contents, store_blobs
from models.workspace.legacy_imports.commands import checking, entries, importing, rollbacks
from models.workspace.legacy_imports.commands.entries import EntryMovedError, Held
from models.workspace.legacy_imports.commands.verification import verify_counts, verify_sample
from models.workspace.legacy_imports.queries import find_entry_by_id
from models.workspace.legacy_imports.rules import IMPORT_STAGES, ImportStage, LegacyImportStatus
from runtime.crypto import KeyRing
from runtime.database import Database
from runtime.errors import PlatformError, UnavailableError
from runtime.fault_injection import inject_fault, stage_of_import
from runtime.object_store import ObjectStore

Read = TypeVar("Read")


@dataclass(frozen=True, slots=True)
class WorkspaceReply:
    """The stage that was done, and whether nothing is left of what the run's status asks for."""

    stage: str
    done: bool
    counts: Mapping[str, int] = field(default_factory=dict)


class WorkspaceActivities:
    """The activity of the workflow `ImportWorkspace`."""

    def __init__(self, database: Database, store: ObjectStore, keys: KeyRing) -> None:
        self._database = database
        self._store = store
        self._keys = keys

    @activity.defn(name="work_on_import_workspace")
    async def work_on(self, entry_id: str) -> WorkspaceReply:
        """Do what is next of a workspace. Safe to repeat: its row says where to go on.

        What cannot be done fails the workspace and not the activity.
        """
        counts: dict[str, int] = {}
        async with heartbeats(counts):
            try:
                with refusals():
                    return await self._work_on(Id(entry_id), counts)
            except EntryMovedError:
                return await self._moved(Id(entry_id))
            except UnavailableError:
                raise
            except PlatformError as error:
                async with self._database.transaction() as work:
                    await entries.fail_entry(work, Id(entry_id), error.message)
                return await self._moved(Id(entry_id))

    async def _moved(self, entry_id: Id) -> WorkspaceReply:
        async with self._database.reading() as work:
            row = await find_entry_by_id(work, entry_id)
        return WorkspaceReply("gone" if row is None else row.stage, done=True)

    async def _work_on(self, entry_id: Id, counts: dict[str, int]) -> WorkspaceReply:
        async with self._database.transaction() as work:
            locked_entry = await entries.hold(work, entry_id, *_PHASES)
        phase = _PHASES[LegacyImportStatus(locked_entry.run.status)]
        return await phase(self, locked_entry, counts)

    async def _check(self, locked_entry: Held, counts: dict[str, int]) -> WorkspaceReply:
        """Plan the ids of all rows, then look what would come of each."""
        stage, entry_id = locked_entry.stage, locked_entry.entry.id
        if stage not in {ImportStage.VALIDATING, ImportStage.DRY_RUN}:
            async with self._database.transaction() as work:
                stage = await checking.begin(work, entry_id, self._keys)
        contents = await load_contents(self._store, locked_entry.run.id)
        chunks = chunks_of(contents, locked_entry.entry.source_workspace_id)
        is_dry_run = stage == ImportStage.DRY_RUN
        step: Callable[..., Awaitable[Findings]] = plan_chunk
        if is_dry_run:
            source = Id(locked_entry.entry.source_workspace_id)
            context_rows = await load_context_rows(self._store, contents, source)
            async with self._database.reading() as reading:
                clean = await checking.is_clean(reading, entry_id)
            step = partial(check_chunk, context_rows=context_rows, checked=clean)

        async def read(chunk: Chunk) -> tuple[Chunk, list[bytes]]:
            return chunk, await chunk.read(self._store)

        async def check(chunk_lines: tuple[Chunk, list[bytes]], number: int) -> Findings:
            chunk, lines = chunk_lines
            async with self._database.transaction() as work:
                now = await entries.hold_chunk(
                    work, entry_id, LegacyImportStatus.DRY_RUNNING, stage, number
                )
                kinds = importing.kinds_for(now.entry, chunk.kinds) if is_dry_run else chunk.kinds
                found = await step(work, now.target(self._keys), kinds, lines)
                await entries.record_chunk(work, now, found, total=len(chunks.all), counted=False)
                return found

        await self._each(entry_id, stage, chunks, counts, read, check)
        async with self._database.transaction() as work:
            now = await entries.hold_chunk(
                work, entry_id, LegacyImportStatus.DRY_RUNNING, stage, len(chunks.all)
            )
            await (
                checking.conclude(work, now)
                if is_dry_run
                else checking.planned(work, now, chunks.unread)
            )
        return WorkspaceReply(stage, is_dry_run, counts)

    async def _import(self, locked_entry: Held, counts: dict[str, int]) -> WorkspaceReply:
        """Apply the rows of one stage."""
        stage, entry_id = locked_entry.stage, locked_entry.entry.id
        if stage not in IMPORT_STAGES:
            raise EntryMovedError
        contents = await load_contents(self._store, locked_entry.run.id)
        source = locked_entry.entry.source_workspace_id
        all_chunks = chunks_of(contents, source)
        chunks = all_chunks.of(stage)
        if stage == ImportStage.CREATING and not locked_entry.done:
            async with self._database.transaction() as work:
                now = await entries.hold_chunk(
                    work, entry_id, LegacyImportStatus.IMPORTING, stage, 0
                )
                await importing.make_workspace(work, now)

        target = locked_entry.target(self._keys)

        async def read(chunk: Chunk) -> tuple[list[BundleKind], ReadChunk]:
            lines = await chunk.read(self._store)
            await store_blobs(self._store, contents, Id(source), target, chunk.kinds, lines)
            kinds = importing.kinds_for(locked_entry.entry, chunk.kinds)
            async with self._database.reading() as work:
                return kinds, await read_chunk(work, target, kinds, lines)

        async def apply(chunk: tuple[list[BundleKind], ReadChunk], number: int) -> Findings:
            kinds, rows = chunk
            async with self._database.transaction() as work:
                now = await entries.hold_chunk(
                    work, entry_id, LegacyImportStatus.IMPORTING, stage, number
                )
                found = await apply_chunk(work, target, kinds, rows)
                await entries.record_chunk(work, now, found, total=len(chunks.all), counted=True)
                return found

        await self._each(entry_id, stage, chunks, counts, read, apply)
        async with self._database.transaction() as work:
            now = await entries.hold_chunk(
                work, entry_id, LegacyImportStatus.IMPORTING, stage, len(chunks.all)
            )
            following = await importing.end_stage(work, now, all_chunks.stages)
        return WorkspaceReply(stage, following == ImportStage.VERIFYING, counts)

    async def _verify(self, locked_entry: Held, counts: dict[str, int]) -> WorkspaceReply:
        """Compare counts, and samples of the contents, with what the bundle says."""
        if locked_entry.stage != ImportStage.VERIFYING:
            raise EntryMovedError
        contents = await load_contents(self._store, locked_entry.run.id)
        chunks = chunks_of(contents, locked_entry.entry.source_workspace_id)
        entry_id = locked_entry.entry.id
        samples = []
        for chunk in chunks.sample():
            lines = await chunk.read(self._store)
            async with self._database.transaction() as work:
                now = await entries.hold(work, entry_id, LegacyImportStatus.VERIFYING)
                kinds = importing.kinds_for(now.entry, chunk.kinds)
                samples += await verify_sample(work, now.target(self._keys), kinds, lines)
            inject_fault(stage_of_import(ImportStage.VERIFYING), entry_id)
        counts["rows"] = sum(one.rows for one in samples)
        async with self._database.transaction() as work:
            now = await entries.hold(work, entry_id, LegacyImportStatus.VERIFYING)
            await verify_counts(work, now, samples)
        return WorkspaceReply(ImportStage.VERIFYING, done=True, counts=counts)

    async def _take_back(self, locked_entry: Held, counts: dict[str, int]) -> WorkspaceReply:
        """Remove what was imported, newest first, a batch in a transaction."""
        entry_id = locked_entry.entry.id
        counts["removed"] = 0
        while True:
            async with self._database.transaction() as work:
                now = await entries.hold(
                    work, entry_id, LegacyImportStatus.CANCELLING, LegacyImportStatus.ROLLING_BACK
                )
                removed = await rollbacks.remove_batch(work, now)
            if removed is None:
                return WorkspaceReply("rollback", done=True, counts=counts)
            counts["removed"] += removed
            inject_fault(stage_of_import("rollback"), entry_id)

    async def _each(
        self,
        entry_id: Id,
        stage: ImportStage,
        chunks: Chunks,
        counts: dict[str, int],
        read: Callable[[Chunk], Awaitable[Read]],
        work_on: Callable[[Read, int], Awaitable[Findings]],
    ) -> None:
        """Do the chunks of a stage that are left; the next is read beside the work on one."""
        async with self._database.reading() as work:
            row = await find_entry_by_id(work, entry_id)
        first = int(row.progress.get("done", 0)) if row is not None else 0
        async with aclosing(each_ahead(read, chunks.all[first:])) as ready:
            number = first
            async for chunk in ready:
                found = await work_on(chunk, number)
                for kind, rows in found.rows.items():
                    counts[kind] = counts.get(kind, 0) + rows
                inject_fault(stage_of_import(stage), entry_id)
                number += 1


_PHASES: Mapping[
    LegacyImportStatus,
    Callable[[WorkspaceActivities, Held, dict[str, int]], Awaitable[WorkspaceReply]],
] = {
    LegacyImportStatus.DRY_RUNNING: WorkspaceActivities._check,
    LegacyImportStatus.IMPORTING: WorkspaceActivities._import,
    LegacyImportStatus.VERIFYING: WorkspaceActivities._verify,
    LegacyImportStatus.CANCELLING: WorkspaceActivities._take_back,
    LegacyImportStatus.ROLLING_BACK: WorkspaceActivities._take_back,
}
