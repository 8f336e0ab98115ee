"""Copying rows from their file into a database that the run creates, in one transaction."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from activities.data_source_runs.progress import reporting
from activities.sources.reading import Reading
from activities.sources.reading_process import Fill
from models.core.base import JsonObject
from models.data.records.commands.copying import copy_records
from models.data.records.rules.write.options import may_grow
from models.sources.data_source_runs.commands import appending
from models.sources.data_source_runs.commands.staging import ReadBatch, keep_rejections
from models.sources.data_source_runs.commands.targets import Grown
from models.sources.data_source_runs.rows import SourceRunRow
from models.sources.data_source_runs.rules import Stage
from models.sources.data_sources.rules.configs import FieldMapping
from models.sources.tabular.rules.options import MAX_ROWS
from models.sources.tabular.rules.problems import ErrorKind, SourceProblem
from runtime.database import Database
from runtime.fault_injection import FaultPoint, inject_fault

Report = Callable[..., Awaitable[None]]


def refuse_empty(read: int) -> None:
    """Refuse a table without rows. Raises SourceProblem."""
    if not read:
        raise SourceProblem(ErrorKind.PARSE, "The file has no rows below its headers.")


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
    total = ReadBatch(0, 0, {}, b"")
    async with database.transaction() as work:
        target = await appending.create_target(work, run, mapping, new_options)
        fields = appending.with_options(request.fields, new_options)

        async def reported(rows: int) -> None:
            await report(stage=Stage.STAGE.value, read=rows)

        async def append(batch: ReadBatch) -> None:
            nonlocal total
            await copy_records(work, batch.lines)
            await keep_rejections(work, run, batch.rejections, len(total.rejections))
            total = total.with_counts_of(batch)
            counts["rows"] = total.read

        async with reporting(lambda: counts["rows"], reported):
            form = replace(request, fields=fields, lines=target.lines)
            await table.fill(form, append)
        refuse_empty(total.read)
        lost = {"lost": sum(total.lost_cells.values()), "lostIn": total.lost_cells}
        told = {"read": total.read, "skipped": total.skipped, **lost, **head}
        inserted = total.read - total.skipped
        stats = await appending.finish_append(work, run, target, inserted, **told)
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

    async def none_comes(_: ReadBatch) -> None:
        """All rows are left out, but for what they mean to later ones."""

    return await table.fill(only_these, none_comes)
