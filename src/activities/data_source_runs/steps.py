"""The steps of a run: fetch, stage, apply. Each is safe to repeat.

See interface.md#steps-of-a-refresh.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from functools import partial
from pathlib import Path

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.data_source_runs import inputs
from activities.database_errors import refusals
from activities.endings import CLOSED
from activities.heartbeats import heartbeats
from activities.sources.fetchers import Fetchers, Wanted, noted_fetch
from activities.sources.fetching import Fetched
from activities.sources.reading import Reading, reading
from activities.sources.reading_process import PROFILED, Fill
from models.core.base import Id, JsonObject
from models.data.records.bulk import copy_records
from models.data.records.rules.values import may_grow
from models.messages.jobs.rules import JobStatus
from models.sources.data_source_runs import endings, execution, rules, staging
from models.sources.data_source_runs.tables import SourceRunRow
from models.sources.data_source_runs.targets import Grown, filled_fields, known_fields
from models.sources.data_sources.rules import FieldMapping
from models.sources.tabular.rules.options import MAX_ROWS, ErrorKind, ReadOptions, SourceProblem
from models.sources.tabular.rules.rejections import MAX_REJECTIONS
from runtime.clock import wait_until_set
from runtime.database import Database
from runtime.errors import PlatformError, UnavailableError
from runtime.object_store import ObjectStore
from runtime.processes.fault_injection import FaultPoint, inject_fault

REPORT_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class StepReply:
    """The reply of a step: `continue` or `closed`, and what it counted."""

    status: str
    counts: Mapping[str, int] = field(default_factory=dict)


@asynccontextmanager
async def reporting(
    count: Callable[[], int], report: Callable[[int], Awaitable[None]]
) -> AsyncIterator[None]:
    """While the block runs, report its counts once a second if they have changed.

    Raises at its end what `report` raised.
    """
    over = asyncio.Event()

    async def follow() -> None:
        last = count()
        while not over.is_set():
            await wait_until_set(over, REPORT_SECONDS)
            found = count()
            if found != last and not over.is_set():
                await report(found)
                last = found

    task = asyncio.create_task(follow())
    try:
        yield
    finally:
        # Not cancelled: a cancelled statement would cost its connection, and a report is short.
        over.set()
        await task


Report = Callable[..., Awaitable[None]]


def refuse_empty(read: int) -> None:
    """Refuse a table without rows. Raises SourceProblem."""
    if not read:
        raise SourceProblem(ErrorKind.PARSE, "The file has no rows below the header row.")


async def append_rows(
    database: Database,
    run: SourceRunRow,
    table: Reading,
    request: Fill,
    counts: dict[str, int],
    report: Report,
    head: JsonObject,
) -> JsonObject:
    """Read, copy and end the run; gives what it counted.

    `report` merges into the progress what others see of this meanwhile, `head` becomes a part of
    it. Raises SourceProblem, and RunOverError when the run was closed.
    """
    mapping = [FieldMapping.model_validate(entry) for entry in head["mapping"]]
    # The fields come before the rows, and their options from the rows: these are read twice.
    new_options = await _needed_options(table, request)
    total = staging.ReadBatch(0, 0, {}, b"")
    async with database.transaction() as work:
        # In the transaction of the rows, so that a failure leaves no empty database.
        target = await execution.create_target(work, run, mapping, new_options)
        fields = execution.with_options(request.fields, new_options)

        async def reported(rows: int) -> None:
            await report(stage=rules.Stage.STAGE.value, read=rows)

        async def append(batch: staging.ReadBatch) -> None:
            nonlocal total
            await copy_records(work, batch.lines)
            await staging.keep_rejections(work, run, batch.rejections, len(total.rejections))
            total = total.with_counts_of(batch)
            counts["rows"] = total.read

        async with reporting(lambda: counts["rows"], reported):
            form = replace(request, fields=fields, lines=target.lines)
            await table.fill(form, append)
        refuse_empty(total.read)
        lost = {"lost": sum(total.lost_cells.values()), "lostIn": total.lost_cells}
        told = {"read": total.read, "skipped": total.skipped, **lost, **head}
        inserted = total.read - total.skipped
        stats = await execution.finish_append(work, run, target, inserted, **told)
        inject_fault(FaultPoint.AFTER_ROWS_BEFORE_COMMIT, run.id)
    inject_fault(FaultPoint.AFTER_TERMINAL_WRITE, run.id)
    return stats


async def _needed_options(table: Reading, request: Fill) -> Grown:
    """The options that rows bring into being, by the key of their field."""
    growing = [
        (source, spec)
        for source, spec in zip(request.sources, request.fields, strict=True)
        if may_grow(spec)
    ]
    if not growing:
        return {}
    sources, fields = zip(*growing, strict=True)
    only_these = replace(request, sources=sources, fields=fields, skip=MAX_ROWS)

    async def none_comes(_: staging.ReadBatch) -> None:
        """All rows are left out, but for what they mean to later ones."""

    return await table.fill(only_these, none_comes)


CONTINUE = "continue"
STAGE_AGAIN = "stage_again"
APPLIED = ("inserted", "updated", "unchanged", "removed", "skipped")
"""The counts of a run that applying rows adds to."""


class DataSourceRunActivities:
    """The activities of the workflow `DataSourceRefresh`."""

    def __init__(self, database: Database, store: ObjectStore, fetchers: Fetchers) -> None:
        self._database = database
        self._store = store
        self._fetchers = fetchers

    @activity.defn(name="fetch_source")
    async def fetch(self, run_id: str) -> StepReply:
        """Fetch the source page by page; a repeated call continues after the last page."""
        counts: dict[str, int] = {}
        async with self._attempt(run_id, counts) as run:
            if run is None:
                return await self._closed(run_id, counts)
            wanted = inputs.wanted_by(run)
            if not wanted.stored and await self._fetch(run, wanted, counts):
                return await self._closed(run_id, counts)
        return StepReply(CONTINUE, counts)

    async def _fetch(self, run: SourceRunRow, request: Wanted, counts: dict[str, int]) -> bool:
        """Fetch the source. True when it has not changed, and the run has ended so."""
        start, content = inputs.fetched_by(run), run.progress.get("content", "")
        async with self._database.transaction() as work:
            access = await self._fetchers.access(work, request)
            last = await execution.repeated_run(work, run)
        if last is not None:
            request = replace(request, conditions=execution.validators_of(last))

        async def keep(path: Path, state: Fetched) -> None:
            nonlocal content
            content = await asyncio.to_thread(inputs.content_with, content, path, state)
            await self._store.put_file(inputs.page_key(run, state.pages - 1), path)
            inject_fault(FaultPoint.AFTER_PAGE_BEFORE_PROGRESS, run.id)
            await asyncio.to_thread(path.unlink)
            counts.update(pages=state.pages, bytes=state.bytes)
            await self._progress(
                run,
                fetched=asdict(state),
                content=content,
                pages=state.pages,
                bytes=state.bytes,
                received=state.bytes,
                stage=rules.Stage.FETCH.value,
            )

        async with inputs.scratch() as directory:

            def received() -> int:
                # The unpacked bytes of the page so far; a complete page counts as sent.
                return counts["bytes"] + inputs.bytes_in(directory)

            counts.update(pages=start.pages, bytes=start.bytes)
            reported = reporting(received, partial(self._received, run))
            async with reported, noted_fetch(self._database, request):
                fetched = await self._fetchers.fetch(request, access, directory, keep, start)
        async with self._database.transaction() as work:
            if not fetched.unchanged:
                last = await execution.repeated_run(work, run, content)
            if last is None:
                return False
            validators = fetched.validators or execution.validators_of(last)
            await execution.end_unchanged(work, run, last, validators, counts["bytes"])
        return True

    async def _received(self, run: SourceRunRow, count: int) -> None:
        await self._progress(run, received=count, stage=rules.Stage.FETCH.value)

    @activity.defn(name="stage_rows")
    async def stage(self, run_id: str) -> StepReply:
        """Read the fetched files and stage their rows; a repeated call continues after the last
        batch.

        Rows of a database that the run creates are not staged: one transaction writes all of them
        and ends the run.
        """
        counts = {"rows": 0}
        # A run that was closed meanwhile leaves the block without an error.
        is_closed = True
        async with self._attempt(run_id, counts) as run:
            if run is None:
                return await self._closed(run_id, counts)
            counts["rows"] = run.progress.get("read", 0)
            if run.progress.get("staged"):
                return StepReply(CONTINUE, counts)
            async with inputs.scratch() as directory:
                files = await inputs.input_files(self._database, self._store, run, directory)
                wanted = inputs.wanted_by(run)
                size = {"bytes": inputs.bytes_in(directory)} if wanted.stored else {}
                await self._progress(run, stage=rules.Stage.STAGE.value, **size)
                options, known = await inputs.options_as_before(self._database, run, wanted, files)
                async with reading(files, options) as table:
                    columns = await self._described(run, table, options, known)
                    is_closed = await self._read(run, table, columns, counts)
        return await self._closed(run_id, counts) if is_closed else StepReply(CONTINUE, counts)

    async def _read(
        self, run: SourceRunRow, table: Reading, columns: inputs.ReadColumns, counts: dict[str, int]
    ) -> bool:
        """Read a table to where its rows go. True when the run has ended with it."""
        async with self._database.transaction() as work:
            places = columns.places if columns.has_rows else None
            specs = await filled_fields(work, run, columns.mapping, places)
        request, head = inputs.filling(run, specs, columns), columns.head
        if not execution.appends(run):
            await self._stage(run, table, request, counts, head)
            return False
        report = partial(self._progress, run)
        stats = await append_rows(self._database, run, table, request, counts, report, head)
        counts.update(_applied(stats))
        return True

    async def _described(
        self, run: SourceRunRow, table: Reading, options: ReadOptions, known: rules.KnownColumns
    ) -> inputs.ReadColumns:
        """The columns of a table, and how their cells are read."""
        async with self._database.transaction() as work:
            fields = await known_fields(work, run) or {}
            before = await execution.last_conventions(work, run)
        asked = inputs.looked_for(run, known, fields, before)
        # The kinds of columns need all rows; they are not requested where a mapping names them.
        profiled = PROFILED if run.plan["fields"] else None
        described = await table.describe(0, profiled, **asked)
        return inputs.described_columns(run, described, options, known)

    async def _stage(
        self,
        run: SourceRunRow,
        table: Reading,
        request: Fill,
        counts: dict[str, int],
        head: JsonObject,
    ) -> None:
        progress = await self._ready_to_stage(run)

        async def stage(batch: staging.ReadBatch) -> None:
            async with self._database.transaction() as work:
                # Before the run is locked, so that a cancel does not wait for the rows.
                await staging.copy_rows(work, batch)
                held = await staging.hold_run(work, run.id)
                if held is None:
                    raise endings.RunOverError
                await staging.record_batch(work, held, batch)
            counts["rows"] += batch.read
            inject_fault(FaultPoint.AFTER_BATCH_OF_ROWS, run.id)

        counts["rows"] = progress.get("read", 0)
        kept = progress.get("rejected", 0)
        behind = replace(request, skip=counts["rows"], rejections=MAX_REJECTIONS - kept)
        new_options = await table.fill(behind, stage)
        if run.trigger == rules.RunTrigger.IMPORT and "sourceId" not in run.plan:
            refuse_empty(counts["rows"])
        async with self._database.transaction() as work:
            # The comparison is planned by statistics, which autovacuum would write too late.
            await staging.analyze_staged_rows(work)
        await self._progress(run, staged=True, options=new_options, **head)

    async def _ready_to_stage(self, run: SourceRunRow) -> JsonObject:
        """The progress to continue from: the beginning when PostgreSQL lost the staged rows."""
        async with self._database.transaction() as work:
            held = await staging.hold_run(work, run.id)
            if held is None:
                raise endings.RunOverError
            if await staging.is_staged(work, held):
                return held.progress
            await staging.unstage(work, run.id)
            await staging.forget_rejections(work, run.id)
            counts = {"read": 0, "skipped": 0, "lost": 0, "rejected": 0}
            await staging.record_progress(work, run.id, **counts, lostIn={})
            return {}

    @activity.defn(name="apply_rows")
    async def apply(self, run_id: str) -> StepReply:
        """Compare and write the staged rows, and end the run, in one transaction.

        Returns STAGE_AGAIN when PostgreSQL has lost the staged rows.
        """
        counts: dict[str, int] = {}
        async with self._attempt(run_id, counts) as run:
            if run is not None:
                await self._progress(run, stage=rules.Stage.APPLY.value)
                try:
                    stats = await self._apply(run)
                except execution.StagedRowsLostError:
                    # In a transaction of its own: that of the rows was rolled back.
                    await self._progress(run, staged=False)
                    return StepReply(STAGE_AGAIN)
                counts.update(_applied(stats))
        return await self._closed(run_id, counts)

    async def _closed(self, run_id: str, counts: dict[str, int]) -> StepReply:
        """The reply for a run that has ended, also by an earlier call that was lost then."""
        async with self._database.transaction() as work:
            closed = await staging.find_run(work, Id(run_id))
        # After the commit of the end: a step that is repeated would still read them.
        await self._remove_pages(closed)
        return StepReply(CLOSED, counts)

    async def _apply(self, run: SourceRunRow) -> JsonObject:
        async with self._database.transaction() as work:
            stats = await execution.apply_run(work, await staging.find_run(work, run.id))
            inject_fault(FaultPoint.AFTER_ROWS_BEFORE_COMMIT, run.id)
        inject_fault(FaultPoint.AFTER_TERMINAL_WRITE, run.id)
        return stats

    @activity.defn(name="close_data_source_run")
    async def close(self, run_id: str, cancelled: bool) -> str:
        """End a run whose steps could not be done, remove what it staged, and give its status."""
        async with self._database.transaction() as work:
            status = JobStatus.CANCELLED if cancelled else JobStatus.FAILED
            await endings.abandon_run(work, Id(run_id), status)
            run = await staging.find_run(work, Id(run_id))
        await self._remove_pages(run)
        return run.status

    async def _progress(self, run: SourceRunRow, **changed: object) -> None:
        async with self._database.transaction() as work:
            if not await staging.record_progress(work, run.id, **changed):
                raise endings.RunOverError

    async def _remove_pages(self, run: SourceRunRow) -> None:
        # One page may have been kept whose progress was not.
        for page in range(run.progress.get("pages", 0) + 1):
            await self._store.delete(inputs.page_key(run, page))

    @asynccontextmanager
    async def _attempt(
        self, run_id: str, counts: Mapping[str, int]
    ) -> AsyncIterator[SourceRunRow | None]:
        """One attempt of a step: problems that remain end the run, others are tried again."""
        async with heartbeats(counts):
            async with self._database.transaction() as work:
                run = await staging.hold_run(work, Id(run_id))
            try:
                with refusals():
                    yield run
            except endings.RunOverError:
                return
            except SourceProblem as problem:
                await self._problem(Id(run_id), problem)
            except UnavailableError:
                raise
            except PlatformError as error:
                await self._problem(Id(run_id), SourceProblem(ErrorKind.WRITE, error.message))

    async def _problem(self, run_id: Id, problem: SourceProblem) -> None:
        info = activity.info()
        policy = info.retry_policy
        last = policy is None or info.attempt >= policy.maximum_attempts
        # Only the last attempt ends the run: its row must stay open for the next one.
        if problem.retryable and not last:
            wait = problem.retry_after
            raise ApplicationError(
                problem.kind,
                type=problem.kind,
                category=ApplicationErrorCategory.BENIGN,
                next_retry_delay=None if wait is None else timedelta(seconds=wait),
            ) from None
        async with self._database.transaction() as work:
            await endings.fail_run(work, run_id, problem)
        raise ApplicationError(problem.kind, type=problem.kind, non_retryable=True) from None


def _applied(stats: JsonObject) -> dict[str, int]:
    return {name: stats[f"rows{name.capitalize()}"] for name in APPLIED}
