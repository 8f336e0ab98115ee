"""Beginning a run, and staging its rows, a batch per transaction."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from models.core.access.rules import Principal, PrincipalType
from models.core.base import Id, JsonObject
from models.core.lifecycle import commands as lifecycle
from models.messages.jobs.rules import JobStatus
from models.messages.workspace_events.log import append_event
from models.messages.workspace_events.rules import EventType
from models.sources.data_source_runs.comparison import SKIPPED
from models.sources.data_source_runs.rules import Stage
from models.sources.data_source_runs.tables import (
    DATA_SOURCE_RUNS,
    SourceRunRow,
    data_source_run,
    run_rejection,
    staged_row,
)
from models.sources.data_sources.queries import source_item
from models.sources.tabular.rules import rejections as tabular_rejections
from models.sources.tabular.rules.conversion import STAGED_COLUMNS
from runtime.database import UnitOfWork
from runtime.postgresql.copy_format import HEADER, TRAILER

_COPY = f"COPY {staged_row.name} ({', '.join(STAGED_COLUMNS)}) FROM STDIN (FORMAT BINARY)"


class ReadBatch(NamedTuple):
    """The rows that were read, the number without a record, and the lost cells by their field.

    `rejections` are the rows and cells of these that are kept.
    """

    read: int
    skipped: int
    lost_cells: Mapping[str, int]
    lines: bytes
    rejections: Sequence[tabular_rejections.Rejection] = ()

    def with_counts_of(self, batch: "ReadBatch") -> "ReadBatch":
        """The counts of both, and the lines of this one."""
        counts = (self.read + batch.read, self.skipped + batch.skipped)
        lost_cells = sums(self.lost_cells, batch.lost_cells)
        return ReadBatch(*counts, lost_cells, self.lines, [*self.rejections, *batch.rejections])


def sums(counts: Mapping[str, int], more_counts: Mapping[str, int]) -> Mapping[str, int]:
    """The sums of counts by their names."""
    return Counter(counts) + Counter(more_counts)


async def hold_run(work: UnitOfWork, run_id: Id) -> SourceRunRow | None:
    """The run, locked and marked as running; None when it is closed."""
    row = await lifecycle.hold(work, DATA_SOURCE_RUNS, run_id, of=SourceRunRow)
    if row is not None and row.status == JobStatus.QUEUED:
        await lifecycle.move(
            work,
            DATA_SOURCE_RUNS,
            run_id,
            JobStatus.RUNNING,
            started_at=work.now,
            progress={"stage": Stage.FETCH.value},
        )
        await log_status(work, row, JobStatus.RUNNING)
    return row


async def find_run(work: UnitOfWork, run_id: Id) -> SourceRunRow:
    """The run, open or closed."""
    found = await work.first(
        sa.select(data_source_run).where(data_source_run.c.id == run_id), of=SourceRunRow
    )
    assert found is not None, "who executes a run was given its id"
    return found


async def record_progress(work: UnitOfWork, run_id: Id, **changed: object) -> bool:
    """Merge how far an open run has come into what was recorded; False when it is closed."""
    progress = data_source_run.c.progress.op("||", return_type=JSONB())(sa.literal(changed, JSONB))
    written = await work.execute(
        sa.update(data_source_run)
        .where(data_source_run.c.id == run_id, DATA_SOURCE_RUNS.is_open)
        .values(progress=progress)
    )
    return written.rowcount > 0


async def copy_rows(work: UnitOfWork, batch: ReadBatch) -> None:
    """Stage the rows of a batch."""
    driver = await work.driver()
    async with driver.cursor() as cursor, cursor.copy(_COPY) as copy:
        await copy.write(HEADER + batch.lines + TRAILER)


async def record_batch(work: UnitOfWork, run: SourceRunRow, batch: ReadBatch) -> None:
    """Record the counts and rejections of a batch whose rows are staged; the run is held."""
    before = run.progress
    rejection_count = before.get("rejected", 0)
    await keep_rejections(work, run, batch.rejections, rejection_count)
    await record_progress(
        work,
        run.id,
        stage=Stage.STAGE.value,
        read=before.get("read", 0) + batch.read,
        skipped=before.get("skipped", 0) + batch.skipped,
        lost=before.get("lost", 0) + sum(batch.lost_cells.values()),
        lostIn=sums(before.get("lostIn", {}), batch.lost_cells),
        rejected=rejection_count + len(batch.rejections),
    )


async def is_staged(work: UnitOfWork, run: SourceRunRow) -> bool:
    """True when the rows that the run has read are there: a crash of PostgreSQL loses them all."""
    read, skipped = run.progress.get("read", 0), run.progress.get("skipped", 0)
    counted = await work.scalar(
        sa.select(sa.func.count()).select_from(staged_row).where(staged_row.c.run_id == run.id)
    )
    return bool(counted == read - skipped)


async def analyze_staged_rows(work: UnitOfWork) -> None:
    """Let the comparison that follows be planned for as many rows as there are."""
    await work.execute(sa.text(f"ANALYZE {staged_row.name} (run_id, position, identity)"))


async def unstage(work: UnitOfWork, run_id: Id) -> None:
    """Remove what a run has staged."""
    await work.execute(sa.delete(staged_row).where(staged_row.c.run_id == run_id))


async def keep_rejections(
    work: UnitOfWork,
    run: SourceRunRow,
    rejections: Sequence[tabular_rejections.Rejection],
    before: int,
) -> None:
    """Keep what a run leaves out, behind its rejections from before."""
    if not rejections:
        return
    own = {"workspace_id": run.workspace_id, "run_id": run.id}
    rows = [
        {**own, "place": place, "row_number": one.row, **_columns(one)}
        for place, one in enumerate(rejections, start=before)
    ]
    await work.execute(sa.insert(run_rejection), rows)


def _columns(rejection: tabular_rejections.Rejection) -> JsonObject:
    kept = rejection._asdict()
    del kept["row"]
    return kept


async def forget_rejections(work: UnitOfWork, run_id: Id) -> None:
    """Remove what a run kept of its rejections."""
    own = sa.select(data_source_run.c.workspace_id).where(data_source_run.c.id == run_id)
    await work.execute(
        sa.delete(run_rejection).where(
            run_rejection.c.workspace_id == own.scalar_subquery(), run_rejection.c.run_id == run_id
        )
    )


async def forget_earlier_rejections(work: UnitOfWork, run: SourceRunRow) -> None:
    """Remove the rejections of earlier runs of the data source, which may run every minute."""
    if run.data_source_id is None:
        return
    earlier = sa.select(data_source_run.c.id).where(
        data_source_run.c.workspace_id == run.workspace_id,
        data_source_run.c.data_source_id == run.data_source_id,
        data_source_run.c.id != run.id,
    )
    own = (run_rejection.c.workspace_id == run.workspace_id, run_rejection.c.run_id.in_(earlier))
    await work.execute(sa.delete(run_rejection).where(*own))


async def reject_skipped(work: UnitOfWork, run: SourceRunRow) -> None:
    """Keep the rows that the comparison has skipped, behind what reading them left out."""
    rejection_count = run.progress.get("rejected", 0)
    place = sa.func.row_number().over(order_by=staged_row.c.position)
    skipped = (
        sa.select(
            sa.literal(run.workspace_id),
            sa.literal(run.id),
            rejection_count - 1 + place,
            sa.func.coalesce(staged_row.c.row_number, staged_row.c.position + 1),
            sa.case(
                (staged_row.c.record_id.is_(None), tabular_rejections.DUPLICATE),
                else_=tabular_rejections.IN_TRASH,
            ),
        )
        .where(staged_row.c.run_id == run.id, staged_row.c.change == SKIPPED)
        .order_by(staged_row.c.position)
        .limit(tabular_rejections.MAX_REJECTIONS - rejection_count)
    )
    columns = ["workspace_id", "run_id", "place", "row_number", "reason"]
    await work.execute(sa.insert(run_rejection).from_select(columns, skipped))


async def log_status(
    work: UnitOfWork,
    run: SourceRunRow,
    status: JobStatus,
    principal: Principal | None = None,
) -> None:
    """Log that a run has reached a status; of an import only its requester is notified."""
    user_id = run.actor_user_id or run.id
    doer = principal or Principal(type=PrincipalType.SYSTEM, id=run.id, user_id=user_id)
    subject = {} if run.data_source_id is None else {"dataSourceId": str(run.data_source_id)}
    await append_event(
        work,
        doer,
        run.workspace_id,
        EventType.DATA_SOURCE_RUN,
        {
            **subject,
            "runId": str(run.id),
            "trigger": run.trigger,
            "status": status.value,
            **_found(run.progress),
        },
        audience_user_id=run.actor_user_id if run.data_source_id is None else None,
        item_id=await _item(work, run),
    )


def _found(progress: JsonObject) -> JsonObject:
    """The numbers of cells that could not be read, and of columns that came, went or changed."""
    columns = progress.get("columns", {})
    counts = {
        "cellsSkipped": progress.get("lost", 0),
        "columnsAdded": len(columns.get("added", ())),
        "columnsMissing": len(columns.get("missing", ())),
        "columnsChanged": len(columns.get("changed", ())),
    }
    return {name: count for name, count in counts.items() if count}


async def _item(work: UnitOfWork, run: SourceRunRow) -> Id | None:
    """The item of the data source that runs: members who see it are notified."""
    if run.data_source_id is None:
        return None
    return (await source_item(work, run.workspace_id, run.data_source_id)).id
