"""Bringing rows into a database that the run itself creates: they are copied to where they stay."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy import true

from models.core.access.rules import Actor
from models.core.base import JsonObject
from models.core.counted_ids import first_id
from models.data.fields.rules.fields import FieldSpec, Option, Schema
from models.data.records.commands.bulk import derive_where
from models.data.records.commands.bulk_events import emit_written
from models.data.records.rules.write.copied import lead_of
from models.sources.data_source_runs.commands.endings import RunOverError
from models.sources.data_source_runs.commands.execution import (
    counted,
    run_actor,
    succeed,
    take_long,
)
from models.sources.data_source_runs.commands.staging import (
    find_run,
    record_progress,
)
from models.sources.data_source_runs.commands.targets import Grown, open_target
from models.sources.data_source_runs.rows import SourceRunRow
from models.sources.data_source_runs.rules import Stage
from models.sources.data_sources.rules.configs import FieldMapping, WriteMode
from models.sources.tabular.rules.lines import RecordLines
from runtime.database import UnitOfWork


def appends(run: SourceRunRow) -> bool:
    """True when a run has nothing to compare its rows with.

    It creates its database, no other run will know its rows again, and no row replaces another.
    """
    keyed = run.plan["keyFields"] and WriteMode(run.plan["writeMode"]) is not WriteMode.APPEND
    return run.database_id is None and "sourceId" not in run.plan and not keyed


@dataclass(frozen=True, slots=True)
class NewTarget:
    """The database that a run has created, who writes it, and the form its rows are copied in."""

    schema: Schema
    actor: Actor
    lines: RecordLines


async def create_target(
    work: UnitOfWork, run: SourceRunRow, mapping: Sequence[FieldMapping], new_options: Grown
) -> NewTarget:
    """Create the database of a run in this transaction, which `finish_append` ends.

    Raises `NotFoundError` and `DeniedError` for who may not create it any more.
    """
    await take_long(work)
    actor = await run_actor(work, run)
    schema = await open_target(work, actor, run, mapping, new_options)
    lead = lead_of(actor, schema.database_id, work.now)
    return NewTarget(schema, actor, RecordLines(lead, await first_id(work)))


def with_options(fields: Sequence[FieldSpec], new_options: Grown) -> list[FieldSpec]:
    """The fields with the options that rows need."""
    return [
        replace(
            spec,
            options=(*spec.options, *(Option(**one) for one in new_options.get(spec.key, ()))),
        )
        for spec in fields
    ]


async def finish_append(
    work: UnitOfWork, run: SourceRunRow, target: NewTarget, inserted: int, **progress: object
) -> JsonObject:
    """Bring up to date what follows from the rows, and end the run; gives the counts.

    The row of the run is held from here only, so that a cancel never waits long: it wins, and this
    raises RunOverError.
    """
    if inserted:
        await derive_where(work, target.schema, true())
        await emit_written(work, target.actor, target.schema)
    if not await record_progress(work, run.id, stage=Stage.APPLY.value, **progress):
        raise RunOverError
    written = await find_run(work, run.id)
    stats = counted(written, inserted=inserted)
    await succeed(work, written, target.actor, target.schema.database_id, stats)
    return stats
