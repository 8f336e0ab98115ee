"""Jobs that import resources: one transaction for each batch of them."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path

from typing_extensions import override

from activities.data_source_runs.inputs import scratch
from activities.jobs.providers import ask_provider, try_later_or_refuse
from activities.jobs.transactions import Chunks, ask_outside
from activities.providers import adapter as provider_adapter
from activities.providers.adapters import OpenConnection, Providers, in_time
from models.content.files.commands import new_object_key
from models.content.files.rules import Content, file_name, media_type
from models.content.items.commands import check_parent
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.problems import an
from models.messages.jobs.store import JobRow, job_actor
from models.sources.data_source_runs.queries import open_runs
from models.sources.external_resources.rules.resources import ProviderResource
from models.sources.resource_imports import native, rows, rules
from models.sources.resource_imports.commands import find_root
from models.sources.resource_imports.pages import make_page
from models.sources.resource_imports.rows import ImportedRow
from runtime.database import Transaction, UnitOfWork
from runtime.errors import PlatformError, UnsupportedError
from runtime.object_store import ObjectStore, size_and_digest
from runtime.processes.fault_injection import FaultPoint, inject_fault


class ImportProgress:
    """The facts of a job's progress, which a chunk adds to."""

    def __init__(self, before: JsonObject) -> None:
        self.facts: JsonObject = {
            **before,
            "counts": dict(before["counts"]),
            "skipped": list(before["skipped"]),
        }

    def skip(self, name: str, reason: str) -> None:
        """Say of a resource why it is left out, as far as there is room."""
        if len(self.facts["skipped"]) < rules.MAX_SKIPPED:
            self.facts["skipped"].append({"name": name, "reason": reason})

    def count(
        self,
        outcome: rules.Outcome,
        kind: str = "",
        parts: rules.PartCounts | None = None,
        *,
        times: int = 1,
    ) -> None:
        """Count resources of an outcome, and the parts of one."""
        self.facts["counts"][outcome.value] += times
        if parts is not None:
            before = self.facts.get(kind, {})
            self.facts[kind] = {
                name: before.get(name, 0) + count for name, count in asdict(parts).items()
            }


CHUNK_PAGES = 20
_NOT = "Resources of the kind {} can't be imported."


async def list_folder(work: Transaction, job: JobRow, connection: OpenConnection) -> JsonObject:
    """List some pages of the folder that the job is at; gives its progress.

    Raises ProviderProblem for what concerns the whole import.
    """
    progress = ImportProgress(job.progress)
    row = await rows.find_row(work, job.workspace_id, Id(job.progress["folder"]))
    assert row is not None, "a folder that is listed has its row"
    try:
        listing = _pages(connection, row.external_id, job.progress["cursor"])
        resources, cursor = await ask_outside(work, job, listing)
    except provider_adapter.ProviderProblem as problem:
        if row.id == row.root_id or problem.kind in {
            *provider_adapter.RETRIED,
            provider_adapter.ProblemKind.AUTH,
        }:
            raise
        progress.skip(row.resource_name, problem.message)
        return {**progress.facts, "folder": None, "cursor": None}
    room = rules.MAX_ENTRIES - await rows.count_rows(work, row.root_id)
    _, left_out = await rows.record_listed(work, row, job.id, resources, room)
    for one in left_out:
        progress.skip(one.name, _NOT.format(one.surface_kind))
    if len(resources) > room:
        progress.skip(
            row.resource_name, f"An import is limited to {rules.MAX_ENTRIES:,} resources."
        )
        cursor = None
    following = job.progress["folder"] if cursor else None
    return {**progress.facts, "folder": following, "cursor": cursor}


async def _pages(
    connection: OpenConnection, folder: str, cursor: str | None
) -> tuple[list[ProviderResource], str | None]:
    """The resources of some pages, and where the next one begins."""
    resources = list[ProviderResource]()
    adapter = connection.adapter
    for _ in range(CHUNK_PAGES):
        listing = provider_adapter.Listing(folder, limit=provider_adapter.MAX_LISTED, cursor=cursor)
        asked_for = adapter.browse(connection.access, listing)
        for page in (await in_time(asked_for, adapter.listing_seconds)).pages():
            resources += page.resources[: provider_adapter.MAX_LISTED]
            cursor = page.cursor
        if cursor is None or len(resources) >= CHUNK_PAGES * provider_adapter.MAX_LISTED:
            break
    return resources, cursor


AT_ONCE = 8
"""Resources of one import that are requested concurrently."""
BEGIN_SECONDS = 120.0
"""The time in which a chunk begins downloads: the last ones end within its five minutes."""
DOWNLOAD_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Fetched:
    """The content of one resource: blocks of a page, or a file; or why there is none."""

    blocks: list[JsonObject] | None = None
    content: Content | None = None
    digest: str = ""
    problem: str | None = None


async def fetch_contents(
    connection: OpenConnection, rows: Sequence[ImportedRow], store: ObjectStore, directory: Path
) -> list[Fetched | None]:
    """The contents of resources, in their order; None where there was no time to ask.

    Raises ProviderProblem for what concerns all of them: a provider that is away, or does not
    accept the credentials.
    """
    gate, ends = asyncio.Semaphore(AT_ONCE), time.monotonic() + BEGIN_SECONDS

    async def one(row: ImportedRow) -> Fetched | provider_adapter.ProviderProblem | None:
        """A problem is a value, so that it does not cancel the other requests."""
        async with gate:
            if time.monotonic() > ends:
                return None
            try:
                return await _fetch(connection, row, store, directory / str(row.id))
            except provider_adapter.ProviderProblem as problem:
                concerns_all = problem.kind in {
                    *provider_adapter.RETRIED,
                    provider_adapter.ProblemKind.AUTH,
                }
                if concerns_all or row.id == row.root_id:
                    return problem
                return Fetched(problem=problem.message)

    contents: list[Fetched | None] = []
    for found in await asyncio.gather(*(one(row) for row in rows)):
        if isinstance(found, provider_adapter.ProviderProblem):
            raise found
        contents.append(found)
    return contents


async def _fetch(
    connection: OpenConnection, row: ImportedRow, store: ObjectStore, path: Path
) -> Fetched:
    resource = ProviderResource.model_validate(
        {
            "externalType": row.external_type,
            "externalId": row.external_id,
            "name": row.resource_name,
            "surfaceKind": "generic",
            "capabilities": [],
            **({} if row.mime_type is None else {"mimeType": row.mime_type}),
        }
    )
    got = await in_time(
        connection.adapter.download(connection.access, resource, path, {}), DOWNLOAD_SECONDS
    )
    size, digest = await asyncio.to_thread(size_and_digest, path)
    if size > provider_adapter.MAX_DOWNLOAD_BYTES:
        raise provider_adapter.ProviderProblem(
            provider_adapter.ProblemKind.TOO_LARGE, "The resource is larger than 100 MiB."
        )
    if row.kind == rules.ImportedKind.PAGE:
        return await _page(got, path, size, digest)
    key = new_object_key(row.workspace_id)
    # Before the row: an object without a row is removed later, a row without an object is broken.
    await store.put_file(key, path)
    content = Content(
        name=file_name(row.resource_name),
        mime_type=media_type(got.mime_type),
        byte_size=size,
        sha256=digest,
        object_key=key,
    )
    return Fetched(content=content, digest=digest.hex())


async def _page(got: provider_adapter.Downloaded, path: Path, size: int, digest: bytes) -> Fetched:
    mime_type = rules.essence(got.mime_type)
    if mime_type not in rules.PAGE_TYPES:
        return Fetched(problem=f"Documents of the type {mime_type} can't be imported as a page.")
    if size > provider_adapter.MAX_READ_BYTES:
        return Fetched(problem="The document is larger than 1 MiB.")
    return await asyncio.to_thread(_blocks_of, path, mime_type, digest)


def _blocks_of(path: Path, mime_type: str, digest: bytes) -> Fetched:
    # The parsers are much to import, and few workers read a document.
    from activities.providers import documents  # noqa: PLC0415  # as above

    content = path.read_bytes()
    try:
        if mime_type in rules.HTML_TYPES:
            blocks = documents.html_document(content)
        elif mime_type in rules.MARKDOWN_TYPES:
            blocks = documents.markdown_document(content)
        else:
            blocks = documents.text_document(content)
    except documents.UnreadableDocumentError as error:
        return Fetched(problem=str(error))
    return Fetched(blocks=blocks, digest=digest.hex())


BATCH = 40
"""Resources of one chunk."""
RUN_SECONDS = 8.0
"""Seconds for which a chunk waits for the runs that bring in tables."""


class ResourceImports(Chunks):
    """Imports pending resources, folders before their contents, until none is pending.

    A chunk that is repeated finds what the one before it wrote: each resource has one row, and a
    row that is done is not pending. So no resource is imported twice.
    """

    def __init__(self, providers: Providers, store: ObjectStore) -> None:
        self._providers = providers
        self._store = store

    @override
    async def advance(self, work: Transaction, job: JobRow) -> JsonObject | None:
        actor = await job_actor(work, job)
        seen, connection_id = not job.input.get("configured"), Id(job.input["connectionId"])
        connection = await self._providers.open(work, actor, connection_id, seen=seen)
        try:
            if not job.progress:
                return await _begin(work, job, actor, connection)
            return await self._go_on(work, job, actor, connection)
        except provider_adapter.ProviderProblem as problem:
            try_later_or_refuse(problem)

    @override
    async def result(self, work: UnitOfWork, job: JobRow) -> JsonObject:
        return job.progress

    async def _go_on(
        self, work: Transaction, job: JobRow, actor: Actor, connection: OpenConnection
    ) -> JsonObject | None:
        if job.progress["folder"] is not None:
            return await list_folder(work, job, connection)
        run = _Import(work, job, actor, connection)
        pending = await rows.pending_rows(work, Id(job.progress["rootId"]), BATCH)
        if not pending:
            return None
        if pending[0].kind == rules.ImportedKind.FOLDER:
            return await run.begin_folder(pending[0])
        batch = [one for one in pending if one.kind != rules.ImportedKind.FOLDER]
        async with scratch() as directory:
            return await run.contents(batch, self._store, directory)


async def _begin(
    work: Transaction, job: JobRow, actor: Actor, connection: OpenConnection
) -> JsonObject:
    named = ProviderResource.model_validate(job.input["resource"])
    resource = await ask_provider(work, job, connection.adapter.describe(connection.access, named))
    kind = rules.imported_kind(resource)
    if kind is None:
        raise UnsupportedError(f"Resources of the kind {resource.surface_kind} can't be imported.")
    _check_kind(job, kind)
    connection_id = connection.detail.id
    known = await find_root(work, actor, connection_id, resource.external_id)
    if known is None:
        workspace_id = job.workspace_id
        root_id = await rows.add_root(work, workspace_id, connection_id, job.id, resource, kind)
    else:
        root_id = known.id
        await rows.renew_root(work, root_id, job.id, resource)
    counts = {outcome.value: 0 for outcome in rules.Outcome}
    return {"rootId": str(root_id), "counts": counts, "skipped": [], "folder": None, "cursor": None}


def _check_kind(job: JobRow, kind: rules.ImportedKind) -> None:
    if kind.value not in job.input["kinds"]:
        raise UnsupportedError(f"You don't have permission to create {an(kind.value)}.")


def _alike(written: tuple[ImportedRow, Fetched]) -> tuple[bool, Id | None]:
    """True and the folder of a new file, False and the row of any other content."""
    row, fetched = written
    is_new_file = row.item_id is None and fetched.content is not None
    return is_new_file, row.parent_id if is_new_file else row.id


class _Import:
    """One chunk of an import."""

    def __init__(
        self, work: Transaction, job: JobRow, actor: Actor, connection: OpenConnection
    ) -> None:
        self._work = work
        self._job = job
        self._actor = actor
        self._connection = connection
        self._progress = ImportProgress(job.progress)
        self._parents: dict[Id | None, Id | None] = {}
        """The items that the transaction has found below which rows have theirs."""

    async def begin_folder(self, row: ImportedRow) -> JsonObject:
        """Create the folder; its contents are listed next, unless a user deleted it."""
        outcome = await native.make_folder(self._work, self._actor, row, await self._parent_of(row))
        self._progress.count(outcome)
        if outcome is not rules.Outcome.KEPT:
            self._progress.facts["folder"] = str(row.id)
        return self._progress.facts

    async def contents(
        self, batch: list[ImportedRow], store: ObjectStore, directory: Path
    ) -> JsonObject:
        """Import resources that are not folders, with concurrent requests."""
        pending: list[ImportedRow] = []
        for row in batch:
            if row.kind not in self._job.input["kinds"]:
                await self._drop(row, f"You don't have permission to edit {an(row.kind)}.")
            elif (known := await native.as_it_was(self._work, self._actor, row)) is not None:
                self._progress.count(known)
                await self._sheets(row)
            else:
                pending.append(row)
        if len(pending) < len(batch):
            # A later chunk, which has written nothing before, requests the contents.
            return self._progress.facts
        tables = [row for row in pending if row.kind == rules.ImportedKind.DATABASE]
        documents = [row for row in pending if row.kind != rules.ImportedKind.DATABASE]
        fetching = fetch_contents(self._connection, documents, store, directory)
        contents = await ask_outside(self._work, self._job, fetching)
        asked = [(row, one) for row, one in zip(documents, contents, strict=True) if one]
        for (new_files, _), written in groupby(asked, _alike):
            if new_files:
                await self._new_files([(row, one.content) for row, one in written if one.content])
            else:
                for row, fetched in written:
                    await self._content(row, fetched)
        for row in tables:
            await self._table(row)
        if tables and not documents:
            await self._await_runs(tables)
        inject_fault(FaultPoint.AFTER_CONTENTS_BEFORE_COMMIT, self._job.id)
        return self._progress.facts

    async def _new_files(self, files: Sequence[tuple[ImportedRow, Content]]) -> None:
        """Make the files of one folder, by the same statements for all of them."""
        try:
            parent = await self._parent_of(files[0][0])
        except PlatformError as error:
            for row, _ in files:
                await self._drop(row, error.message, error)
        else:
            await native.make_files(self._work, self._actor, parent, files)
            self._progress.count(rules.Outcome.CREATED, times=len(files))

    async def _content(self, row: ImportedRow, fetched: Fetched) -> None:
        if fetched.problem is not None:
            await self._drop(row, fetched.problem)
            return
        work, actor = self._work, self._actor
        try:
            parent = await self._parent_of(row)
            # A refused resource must not undo the others of the chunk.
            async with work.savepoint():
                if fetched.blocks is not None:
                    outcome, parts = await make_page(
                        work, actor, row, parent, fetched.blocks, fetched.digest
                    )
                else:
                    assert fetched.content is not None, "what is no page is a file"
                    outcome = await native.refresh_file(work, actor, row, fetched.content)
                    parts = None
        except PlatformError as error:
            await self._drop(row, error.message, error)
        else:
            self._progress.count(outcome, "blocks", parts)

    async def _table(self, row: ImportedRow) -> None:
        try:
            parent = await self._parent_of(row)
            async with self._work.savepoint():
                if row.run_id is None:
                    outcome = await native.begin_database(
                        self._work, self._actor, self._job.id, row, parent
                    )
                    result = None if outcome is None else (outcome, rules.PartCounts())
                else:
                    result = await native.finish_database(self._work, self._actor, row)
        except PlatformError as error:
            await self._drop(row, error.message, error)
        else:
            if result is not None:
                self._progress.count(result[0], "rows", result[1])
                await self._sheets(row)

    async def _sheets(self, row: ImportedRow) -> None:
        """The other sheets of a workbook are to be imported, too, each into its own database."""
        if row.kind != rules.ImportedKind.DATABASE or row.sheet_name is not None:
            return
        named = await native.sheets_beside(self._work, row)
        room = max(rules.MAX_ENTRIES - await rows.count_rows(self._work, row.root_id), 0)
        await rows.record_sheets(self._work, row, named[:room])

    async def _await_runs(self, tables: list[ImportedRow]) -> None:
        """Wait for a while for the ends of runs that an earlier chunk accepted."""
        waiting = [row for row in tables if row.run_id is not None]
        ends = time.monotonic() + RUN_SECONDS
        while waiting and time.monotonic() < ends:
            open_ = await open_runs(self._work, [row.run_id for row in waiting])
            if len(open_) < len(waiting):
                return
            await asyncio.sleep(0.1)

    async def _parent_of(self, row: ImportedRow) -> Id | None:
        """The item below which a new one is made. Raises what `check_parent` raises."""
        if row.parent_id not in self._parents:
            parent = await self._item_above(row)
            if row.item_id is not None:
                return parent
            # It stays where it is until the transaction ends: one check is enough.
            await check_parent(self._work, self._actor, parent)
            self._parents[row.parent_id] = parent
        return self._parents[row.parent_id]

    async def _item_above(self, row: ImportedRow) -> Id | None:
        if row.parent_id is None:
            parent = self._job.input["parentItemId"]
            return None if parent is None else Id(parent)
        above = await rows.find_row(self._work, self._job.workspace_id, row.parent_id)
        assert above is not None, "a row goes with the folder above it"
        return above.item_id

    async def _drop(
        self, row: ImportedRow, reason: str, error: PlatformError | None = None
    ) -> None:
        """Leave a resource out; a problem of the requested one refuses the whole import."""
        if row.id == row.root_id:
            raise error or UnsupportedError(reason)
        await rows.settle(self._work, row)
        self._progress.skip(row.resource_name, reason)
