"""The work of legacy imports: read bundles, write the rows of workspaces, take them back."""

import asyncio
import hashlib
import tempfile
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from temporalio import activity

from activities.database_errors import refusals
from activities.endings import CLOSED
from activities.heartbeats import heartbeats
from models.core.base import Id
from models.core.bundles import BundleKind, Findings
from models.workspace.bundles import applying, unpacking
from models.workspace.bundles.registry import Step
from models.workspace.bundles.registry import steps as import_steps
from models.workspace.bundles.rules import BundleError, Fault, home, is_blob
from models.workspace.legacy_imports import executions, rollbacks, rules, stages
from models.workspace.legacy_imports.queries import ImportRunRow, find_entry_by_id, find_run
from runtime.crypto import KeyRing
from runtime.database import Database
from runtime.errors import PlatformError, UnavailableError
from runtime.object_store import ObjectStore
from runtime.processes.fault_injection import FaultPoint, inject_fault, stage_of_import


@dataclass(frozen=True, slots=True)
class NextStep:
    """The next step of an execution: its kind, the status of the run, and the ids of entries.

    `execution` is the id of the execution, with which the ids of executions of entries begin.
    """

    kind: str
    status: str
    execution: str = ""
    entries: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Trouble:
    """An entry or a run, and why its work came to an unplanned end."""

    subject_id: str
    reason: str
    cancelled: bool = False


class LegacyImportTransactions:
    """Local activities of the workflow `LegacyImport`."""

    def __init__(self, database: Database, keys: KeyRing) -> None:
        self._database = database
        self._keys = keys

    def all(self) -> list[Callable[..., Any]]:
        """The activities a worker registers."""
        return [self.advance, self.fail_workspace, self.close]

    @activity.defn(name="advance_legacy_import")
    async def advance(self, workflow_id: str) -> NextStep:
        """Bring a run as far as its rows say, and give what comes next."""
        _, run_id, *execution = workflow_id.split("/")
        async with self._database.transaction() as work:
            step = await executions.advance(work, Id(run_id), "/".join(execution), self._keys)
        if step is None:
            return NextStep(rules.StepKind.END, CLOSED)
        found = [str(one) for one in step.entries]
        return NextStep(step.kind, step.status, workflow_id, found)

    @activity.defn(name="fail_import_workspace")
    async def fail_workspace(self, trouble: Trouble) -> None:
        """The execution of a workspace is lost: what it was doing has failed."""
        async with self._database.transaction() as work:
            await stages.fail_entry(work, Id(trouble.subject_id), trouble.reason)

    @activity.defn(name="close_legacy_import")
    async def close(self, trouble: Trouble) -> str:
        """Close a run whose execution cannot continue; returns CLOSED."""
        async with self._database.transaction() as work:
            await executions.abandon(
                work, Id(trouble.subject_id), trouble.reason, cancelled=trouble.cancelled
            )
        return CLOSED


class BundleActivities:
    """The work on the bundle of a run as a whole."""

    def __init__(self, database: Database, store: ObjectStore) -> None:
        self._database = database
        self._store = store

    def all(self) -> list[Callable[..., Any]]:
        """The activities a worker registers."""
        return [self.validate, self.compare]

    @activity.defn(name="validate_bundle")
    async def validate(self, run_id: str) -> None:
        """Check a bundle, unpack it, and record its contents; an invalid one fails the run.

        Safe to repeat: it writes the same objects again.
        """
        run = await self._run(run_id)
        counts = {"bytes": 0}
        async with heartbeats(counts):
            try:
                with tempfile.TemporaryFile() as file:  # written aside
                    async for piece in self._pieces(run, counts):
                        await asyncio.to_thread(file.write, piece)
                    contents = await unpacking.unpack(self._store, file, counts["bytes"], run.id)
            except BundleError as error:
                await self._fail(run.id, error.message)
                return
            if not contents.manifest.workspaces:
                await self._fail(run.id, "The bundle has no workspace.")
                return
            inject_fault(FaultPoint.IMPORT_UNPACKED, run.id)
            async with self._database.transaction() as work:
                await stages.record_manifest(work, run.id, contents.manifest)

    @activity.defn(name="compare_bundle")
    async def compare(self, run_id: str) -> None:
        """See that the bundle is still the one that was approved; else the run fails."""
        run = await self._run(run_id)
        counts = {"bytes": 0}
        async with heartbeats(counts):
            try:
                async for _ in self._pieces(run, counts):
                    pass
            except BundleError as error:
                await self._fail(run.id, error.message)
                return
            async with self._database.transaction() as work:
                await stages.record_comparison(work, run.id)

    async def _pieces(self, run: ImportRunRow, counts: dict[str, int]) -> AsyncIterator[bytes]:
        """The bytes of a bundle, counted. Raises BundleError when their checksum differs."""
        digest = hashlib.sha256()
        try:
            async for piece in self._store.get(run.bundle_object_key):
                digest.update(piece)
                counts["bytes"] += len(piece)
                yield piece
        except FileNotFoundError:
            raise BundleError(
                Fault.MISSING_FILE, f"Object {run.bundle_object_key} not found in the store."
            ) from None
        if digest.hexdigest() != run.bundle_checksum:
            difference = (
                "has changed since it was approved" if run.approved_at else "does not match"
            )
            raise BundleError(
                Fault.CHANGED if run.approved_at else Fault.CHECKSUM,
                f"The bundle {difference}: its checksum is {digest.hexdigest()}.",
            )

    async def _run(self, run_id: str) -> ImportRunRow:
        async with self._database.reading() as work:
            return await find_run(work, Id(run_id))

    async def _fail(self, run_id: Id, reason: str) -> None:
        async with self._database.transaction() as work:
            await executions.fail_run(work, run_id, [reason])


Item = TypeVar("Item")
Read = TypeVar("Read")


async def each_ahead(
    read: Callable[[Item], Awaitable[Read]], items: Iterable[Item]
) -> AsyncGenerator[Read, None]:
    """Read each item; the one that follows is read while the caller works on one.

    Close it when leaving it early (`contextlib.aclosing`), which cancels the read in progress.
    """
    remaining = iter(items)

    def begin() -> asyncio.Future[Read] | None:
        for item in remaining:
            return asyncio.ensure_future(read(item))
        return None

    following = begin()
    try:
        while following is not None:
            ready = await following
            following = begin()
            yield ready
    finally:
        if following is not None:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows that one transaction works on."""

    step: Step
    part: unpacking.Part
    number: int

    @property
    def kinds(self) -> Sequence[BundleKind]:
        return self.step.kinds

    async def read(self, store: ObjectStore) -> list[bytes]:
        """The rows, as lines."""
        return await unpacking.read_lines(store, self.part, self.number)


@dataclass(frozen=True, slots=True)
class Chunks:
    """Chunks of a workspace; `unread` are files that no step of an import reads."""

    all: Sequence[Chunk]
    unread: Sequence[str] = ()

    def of(self, stage: rules.ImportStage) -> "Chunks":
        return Chunks([one for one in self.all if one.step.stage.value == stage.value])

    @property
    def stages(self) -> set[str]:
        return {one.step.stage.value for one in self.all}

    def sample(self) -> Iterator[Chunk]:
        """The last chunk of each step."""
        last = {id(one.step): one for one in self.all}
        yield from last.values()


def chunks_of(contents: unpacking.Contents, workspace_id: str) -> Chunks:
    """The chunks of a workspace, by its id in the bundle."""
    place = home(workspace_id)
    parts = {
        path.removeprefix(place): part
        for path, part in sorted(contents.parts.items())
        if path.startswith(place) and not is_blob(path)
    }
    chunks, read = [], {"workspace.json"}
    for step in import_steps():
        paths = [path for path in parts if step.reads(path)]
        read.update(paths)
        chunks += [
            Chunk(step, parts[path], number)
            for path in paths
            for number in range(parts[path].chunks)
        ]
    return Chunks(chunks, sorted(parts.keys() - read))


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
        """Do the next step of a workspace. Safe to repeat: its row says where to continue.

        An error fails the workspace and not the activity.
        """
        counts: dict[str, int] = {}
        async with heartbeats(counts):
            try:
                with refusals():
                    return await self._work_on(Id(entry_id), counts)
            except stages.EntryMovedError:
                return await self._moved(Id(entry_id))
            except UnavailableError:
                raise
            except PlatformError as error:
                async with self._database.transaction() as work:
                    await stages.fail_entry(work, Id(entry_id), error.message)
                return await self._moved(Id(entry_id))

    async def _moved(self, entry_id: Id) -> WorkspaceReply:
        async with self._database.reading() as work:
            row = await find_entry_by_id(work, entry_id)
        return WorkspaceReply("gone" if row is None else row.stage, done=True)

    async def _work_on(self, entry_id: Id, counts: dict[str, int]) -> WorkspaceReply:
        async with self._database.transaction() as work:
            locked_entry = await stages.hold(work, entry_id, *_PHASES)
        phase = _PHASES[rules.LegacyImportStatus(locked_entry.run.status)]
        return await phase(self, locked_entry, counts)

    async def _check(self, locked_entry: stages.Held, counts: dict[str, int]) -> WorkspaceReply:
        """Plan the ids of all rows, then look what would come of each."""
        stage, entry_id = locked_entry.stage, locked_entry.entry.id
        if stage not in {rules.ImportStage.VALIDATING, rules.ImportStage.DRY_RUN}:
            async with self._database.transaction() as work:
                stage = await stages.begin_dry_run(work, entry_id, self._keys)
        contents = await unpacking.load_contents(self._store, locked_entry.run.id)
        chunks = chunks_of(contents, locked_entry.entry.source_workspace_id)
        is_dry_run = stage == rules.ImportStage.DRY_RUN
        step: Callable[..., Awaitable[Findings]] = applying.plan_chunk
        if is_dry_run:
            source = Id(locked_entry.entry.source_workspace_id)
            context_rows = await unpacking.load_context_rows(self._store, contents, source)
            async with self._database.reading() as reading:
                clean = await stages.is_clean(reading, entry_id)
            step = partial(applying.check_chunk, context_rows=context_rows, checked=clean)

        async def read(chunk: Chunk) -> tuple[Chunk, list[bytes]]:
            return chunk, await chunk.read(self._store)

        async def check(chunk_lines: tuple[Chunk, list[bytes]], number: int) -> Findings:
            chunk, lines = chunk_lines
            async with self._database.transaction() as work:
                now = await stages.hold_chunk(
                    work, entry_id, rules.LegacyImportStatus.DRY_RUNNING, stage, number
                )
                kinds = stages.kinds_for(now.entry, chunk.kinds) if is_dry_run else chunk.kinds
                found = await step(work, now.target(self._keys), kinds, lines)
                await stages.record_chunk(work, now, found, total=len(chunks.all), counted=False)
                return found

        await self._each(entry_id, stage, chunks, counts, read, check)
        async with self._database.transaction() as work:
            now = await stages.hold_chunk(
                work, entry_id, rules.LegacyImportStatus.DRY_RUNNING, stage, len(chunks.all)
            )
            await (
                stages.conclude_dry_run(work, now)
                if is_dry_run
                else stages.conclude_planning(work, now, chunks.unread)
            )
        return WorkspaceReply(stage, is_dry_run, counts)

    async def _import(self, locked_entry: stages.Held, counts: dict[str, int]) -> WorkspaceReply:
        """Apply the rows of one stage."""
        stage, entry_id = locked_entry.stage, locked_entry.entry.id
        if stage not in rules.IMPORT_STAGES:
            raise stages.EntryMovedError
        contents = await unpacking.load_contents(self._store, locked_entry.run.id)
        source = locked_entry.entry.source_workspace_id
        all_chunks = chunks_of(contents, source)
        chunks, importing = all_chunks.of(stage), rules.LegacyImportStatus.IMPORTING
        if stage == rules.ImportStage.CREATING and not locked_entry.done:
            async with self._database.transaction() as work:
                now = await stages.hold_chunk(work, entry_id, importing, stage, 0)
                await stages.make_workspace(work, now)

        target = locked_entry.target(self._keys)

        async def read(chunk: Chunk) -> tuple[list[BundleKind], applying.ReadChunk]:
            lines = await chunk.read(self._store)
            await unpacking.store_blobs(
                self._store, contents, Id(source), target, chunk.kinds, lines
            )
            kinds = stages.kinds_for(locked_entry.entry, chunk.kinds)
            async with self._database.reading() as work:
                return kinds, await applying.read_chunk(work, target, kinds, lines)

        async def apply(
            chunk: tuple[list[BundleKind], applying.ReadChunk], number: int
        ) -> Findings:
            kinds, rows = chunk
            async with self._database.transaction() as work:
                now = await stages.hold_chunk(work, entry_id, importing, stage, number)
                found = await applying.apply_chunk(work, target, kinds, rows)
                await stages.record_chunk(work, now, found, total=len(chunks.all), counted=True)
                return found

        await self._each(entry_id, stage, chunks, counts, read, apply)
        async with self._database.transaction() as work:
            now = await stages.hold_chunk(work, entry_id, importing, stage, len(chunks.all))
            following = await stages.end_stage(work, now, all_chunks.stages)
        return WorkspaceReply(stage, following == rules.ImportStage.VERIFYING, counts)

    async def _verify(self, locked_entry: stages.Held, counts: dict[str, int]) -> WorkspaceReply:
        """Compare counts, and samples of the contents, with what the bundle says."""
        if locked_entry.stage != rules.ImportStage.VERIFYING:
            raise stages.EntryMovedError
        contents = await unpacking.load_contents(self._store, locked_entry.run.id)
        chunks = chunks_of(contents, locked_entry.entry.source_workspace_id)
        entry_id = locked_entry.entry.id
        samples = []
        for chunk in chunks.sample():
            lines = await chunk.read(self._store)
            async with self._database.transaction() as work:
                now = await stages.hold(work, entry_id, rules.LegacyImportStatus.VERIFYING)
                kinds = stages.kinds_for(now.entry, chunk.kinds)
                samples += await stages.verify_sample(work, now.target(self._keys), kinds, lines)
            inject_fault(stage_of_import(rules.ImportStage.VERIFYING), entry_id)
        counts["rows"] = sum(one.rows for one in samples)
        async with self._database.transaction() as work:
            now = await stages.hold(work, entry_id, rules.LegacyImportStatus.VERIFYING)
            await stages.verify_counts(work, now, samples)
        return WorkspaceReply(rules.ImportStage.VERIFYING, done=True, counts=counts)

    async def _take_back(self, locked_entry: stages.Held, counts: dict[str, int]) -> WorkspaceReply:
        """Remove the imported rows, newest first, a batch in a transaction."""
        entry_id = locked_entry.entry.id
        counts["removed"] = 0
        while True:
            async with self._database.transaction() as work:
                now = await stages.hold(
                    work,
                    entry_id,
                    rules.LegacyImportStatus.CANCELLING,
                    rules.LegacyImportStatus.ROLLING_BACK,
                )
                removed = await rollbacks.remove_batch(work, now)
            if removed is None:
                return WorkspaceReply("rollback", done=True, counts=counts)
            counts["removed"] += removed
            inject_fault(stage_of_import("rollback"), entry_id)

    async def _each(
        self,
        entry_id: Id,
        stage: rules.ImportStage,
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
    rules.LegacyImportStatus,
    Callable[[WorkspaceActivities, stages.Held, dict[str, int]], Awaitable[WorkspaceReply]],
] = {
    rules.LegacyImportStatus.DRY_RUNNING: WorkspaceActivities._check,
    rules.LegacyImportStatus.IMPORTING: WorkspaceActivities._import,
    rules.LegacyImportStatus.VERIFYING: WorkspaceActivities._verify,
    rules.LegacyImportStatus.CANCELLING: WorkspaceActivities._take_back,
    rules.LegacyImportStatus.ROLLING_BACK: WorkspaceActivities._take_back,
}
