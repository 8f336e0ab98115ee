"""Claims of the next rows of the outbox: a row a line in turn, by weighed age in a line."""

import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.sql.selectable import LateralFromClause

from models.automation.automation_runs.rules import RunStatus
from models.automation.automation_runs.run_header import RunHeader, header_columns, read_header
from models.automation.automation_runs.tables import AUTOMATION_RUNS, automation_run
from models.core.base import Id
from models.core.lifecycle.commands import WorkTable, executed_tables
from models.tables import metadata
from runtime.database import Work
from runtime.postgresql.schema import is_among, listed, skip_scan
from runtime.postgresql.statements import PreparedStatement
from runtime.temporal.outbox import ANEW, WEIGHT, Intent, Outbox, outbox
from runtime.temporal.workflow_kinds import WorkflowKind

_COUNTED = [kind for kind in executed_tables(metadata) if kind.takes_places]


def under_way() -> sa.CompoundSelect[Any]:
    """The number of each workflow kind of each workspace that has any.

    Automation runs count while they run. Other work counts from the moment at which its start is
    claimed, which its row keeps, until it is closed.
    """
    running = automation_run.c.status == RunStatus.RUNNING.value
    return sa.union_all(
        _numbers(AUTOMATION_RUNS).where(running),
        *(
            _numbers(kind).where(kind.table.c.dispatched_at.is_not(None), _open(kind))
            for kind in _COUNTED
        ),
    )


def _open(kind: WorkTable) -> sa.TextClause:
    """Written out as the index has it, which a prepared statement uses for nothing else."""
    return sa.text(f"{kind.table.name}.status IN ({listed(kind.lifecycle.open)})")


def _numbers(kind: WorkTable) -> sa.Select[Any]:
    workspace_id, workflow_kind = (
        kind.table.c.workspace_id,
        kind.workflow_kind_of_row.label("workflow_kind"),
    )
    number = sa.func.count().label("number")
    return sa.select(workspace_id, workflow_kind, number).group_by(workspace_id, workflow_kind)


def dispatching(claimed: sa.CTE) -> list[sa.Update]:
    """Count the work whose starts are among these rows of the outbox.

    A row that is locked is about to be closed, or had begun before.
    """
    starts = sa.select(claimed.c.subject_id).where(claimed.c.intent == Intent.START)
    return [_dispatching(kind.table, starts) for kind in _COUNTED]


def _dispatching(table: sa.Table, starts: sa.Select[Any]) -> sa.Update:
    # A transaction that closes the row holds its lock: a claim must not wait for it, nor
    # deadlock.
    these = (
        sa.select(table.c.id)
        .where(is_among(table.c.id, starts), table.c.dispatched_at.is_(None))
        .with_for_update(of=table, skip_locked=True)
    )
    return sa.update(table).where(is_among(table.c.id, these)).values(dispatched_at=sa.func.now())


LINE = (outbox.c.workspace_id, outbox.c.intent, outbox.c.workflow_kind)
"""The key of a line, in the order of the index."""


def lines() -> sa.CTE:
    """The lines that have rows, one for each weight, and the number of starts each has room for.

    `until_end` may begin before a running one ends, `until_begin` before one begins that this relay
    has started; null without a bound.
    """
    line = skip_scan("found", (*LINE, WEIGHT.label("weight")))
    starts, caps = _started(), _caps()
    busy = under_way().subquery("busy")
    of_workspace = (
        sa.select(sa.func.count())
        .where(starts.c.workspace_id == line.c.workspace_id)
        .correlate(line)
        .scalar_subquery()
    )
    of_all = sa.select(sa.func.count()).select_from(starts).scalar_subquery()
    is_start = line.c.intent == Intent.START
    is_run = is_start & (line.c.workflow_kind == WorkflowKind.AUTOMATION_RUN)
    not_begun = sa.case((is_run, of_workspace), else_=0)
    until_end = caps.c.cap - sa.func.coalesce(busy.c.number, 0) - not_begun
    room_of_all = sa.bindparam("starts", type_=sa.Integer) - of_all
    until_begin = sa.func.least(
        sa.bindparam("of_one", type_=sa.Integer) - of_workspace, room_of_all
    )
    of_line = (busy.c.workspace_id == line.c.workspace_id) & (
        busy.c.workflow_kind == line.c.workflow_kind
    )
    return (
        sa.select(
            *line.c,
            is_run.label("is_run"),
            sa.case((is_start, until_end)).label("until_end"),
            sa.case((is_run, until_begin)).label("until_begin"),
            room_of_all.label("room_of_all"),
        )
        .select_from(line)
        .outerjoin(busy, of_line)
        .outerjoin(caps, caps.c.workflow_kind == line.c.workflow_kind)
        .cte("lines")
    )


def _started() -> sa.CTE:
    """The workspaces of the runs that this relay has started and that have not begun."""
    waited_for = automation_run.c.id == sa.func.any(
        sa.bindparam("not_begun", type_=sa.ARRAY(sa.Uuid))
    )
    return (
        sa.select(automation_run.c.workspace_id)
        .where(waited_for, automation_run.c.status == RunStatus.QUEUED.value)
        .cte("started")
    )


def _caps() -> sa.TableValuedAlias:
    workflow_kinds, caps = (
        sa.bindparam("workflow_kinds", type_=sa.ARRAY(sa.Text)),
        sa.bindparam("caps", type_=sa.ARRAY(sa.Integer)),
    )
    return (
        sa.func.unnest(workflow_kinds, caps)
        .table_valued("workflow_kind", "cap")
        .render_derived("caps")
    )


CLAIM = timedelta(seconds=10)
"""Time after which the rows of a relay that never came back are claimed again."""

Line = tuple[Id, str, str]
"""The workspace, intent and workflow kind of a line."""
BEFORE_ALL: Line = (Id(int=0), "", "")


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of one claim."""

    rows: int
    """Rows of all kinds."""
    starting: int
    """Runs that this relay has started and that have not begun."""
    ahead: int
    """Runs that are claimed ahead by all workspaces, while several start runs."""
    running: Mapping[WorkflowKind, int]
    """The number of running executions of a kind from which a workspace starts no more."""

    def of_one(self, workspaces: int) -> int:
        """The runs that one of these `workspaces`, which all start runs, may have claimed and not
        begun.

        A single workspace leaves a place for another one.
        """
        return max(1, self.starting - 1 if workspaces < 2 else self.ahead // workspaces)


@dataclass(frozen=True, slots=True)
class Claim:
    """The rows that this relay delivers, in their turn, and the reasons for which others wait."""

    rows: Sequence[Outbox]
    waits_for_begin: bool
    """A start was left because too many runs have not begun."""
    waits_for_end: bool
    """A start was left because its workspace runs as many of its workflow kind as it may."""


class _ClaimedRow:
    """A row of the outbox, without an id when nothing was claimed, and three columns more."""

    id: int | None
    number: int | None
    waits_for_begin: bool
    waits_for_end: bool


async def claim(
    work: Work,
    limits: Limits,
    not_begun: Sequence[Id],
    delivered: Sequence[int],
    *,
    of_one: int,
    after: Line = BEFORE_ALL,
) -> Claim:
    """Delete delivered rows, and claim the next ones, from the line that follows `after`.

    `not_begun` are runs this relay has claimed; ones begun since do not count. One workspace may
    have `of_one` of them.
    """
    records = await _CLAIM.rows(
        work,
        {
            "limit": limits.rows,
            "starts": limits.starting,
            "of_one": of_one,
            "workflow_kinds": [workflow_kind.value for workflow_kind in limits.running],
            "caps": list(limits.running.values()),
            "not_begun": not_begun,
            "delivered": delivered,
            "after_workspace": after[0],
            "after_intent": after[1],
            "after_workflow_kind": after[2],
        },
    )
    rows = typing.cast("Sequence[Outbox]", [row for row in records if row.id is not None])
    return Claim(rows, records[0].waits_for_begin, records[0].waits_for_end)


MOST_READ = 16 * 1024
"""Bytes of a run that a claim reads with its start, as they are stored; a larger one waits for its
begin."""
_RUN = "run_"


def claimed_header(row: Outbox) -> RunHeader | None:
    """The run that a claimed row starts, where it has not begun and is small."""
    columns = [getattr(row, f"{_RUN}{column.key}") for column in header_columns()]
    return None if columns[0] is None else read_header(columns)


def _starting_run(claimed: sa.CTE) -> LateralFromClause:
    run = automation_run.c
    size = sa.func.pg_column_size(run.trigger_payload) + sa.func.pg_column_size(run.options)
    return (
        sa.select(*(column.label(f"{_RUN}{column.key}") for column in header_columns()))
        .where(
            run.id == claimed.c.subject_id,
            claimed.c.intent == Intent.START,
            claimed.c.workflow_kind == WorkflowKind.AUTOMATION_RUN,
            run.status == RunStatus.QUEUED.value,
            run.started_at.is_(None),
            size < MOST_READ,
        )
        # A join without it could be planned as a walk through all runs.
        .limit(1)
        .correlate(claimed)
        .lateral("run")
    )


def _claim_statement() -> sa.Select[Any]:
    """The columns of `_ClaimedRow`; at least one row."""
    every = lines()
    heads = _heads(every)
    selection = _chosen(heads)
    next_rows = (
        sa.select(outbox.c.id)
        .where(is_among(outbox.c.id, sa.select(selection.c.id)))
        # Rows that another relay claims at this moment are delivered by that one.
        .with_for_update(of=outbox, skip_locked=True)
    )
    delivered = sa.delete(outbox).where(
        outbox.c.id == sa.func.any(sa.bindparam("delivered", type_=sa.ARRAY(sa.BigInteger)))
    )
    claimed = (
        sa.update(outbox)
        .where(is_among(outbox.c.id, next_rows))
        # Counted at the claim: a relay that dies in the delivery must not repeat it without
        # backoff.
        .values(claimed_until=sa.func.now() + CLAIM, attempts=outbox.c.attempts + 1)
        .returning(*outbox.c)
        .cte("claimed")
    )
    reasons, run = _reasons_to_wait(heads, selection), _starting_run(claimed)
    # It does not wait for the disk: a claim that a crash of the server loses is made again, as
    # after one of the relay, and every commit that follows from it flushes it, too (ADR 0178).
    unflushed = sa.func.set_config("synchronous_commit", "off", sa.true())
    return (
        sa.select(*claimed.c, selection.c.number, *reasons.c, *run.c, unflushed)
        .select_from(
            reasons.outerjoin(claimed, sa.true())
            .outerjoin(selection, selection.c.id == claimed.c.id)
            .outerjoin(run, sa.true())
        )
        .order_by(selection.c.number)
        .add_cte(
            delivered.cte("delivered"),
            *(
                marked.cte(f"dispatched_{number}")
                for number, marked in enumerate(dispatching(claimed))
            ),
        )
    )


def _heads(every: sa.CTE) -> sa.CTE:
    """The first rows of every line, with their `turn` in it; enough of each to fill a claim."""
    limit = sa.bindparam("limit", type_=sa.Integer)
    room = sa.func.coalesce(sa.func.least(every.c.until_end, every.c.until_begin), 1)
    with_room = sa.select(sa.func.greatest(sa.func.count(), 1)).where(room > 0).scalar_subquery()
    head = (
        sa.select(
            outbox.c.id,
            _weighed_age().label("age"),
            ((outbox.c.attempts > 0) | (str(ANEW) == WEIGHT)).label("has_place"),
        )
        .where(
            *(column == every.c[column.name] for column in LINE),
            every.c.weight == WEIGHT,
            (outbox.c.claimed_until.is_(None)) | (outbox.c.claimed_until < sa.func.now()),
        )
        .order_by(outbox.c.id)
        # Few rows of each line where there are many lines: all together then fill one claim.
        .limit(limit // with_room + 1)
        .correlate(every)
        .lateral("head")
    )
    line = [every.c[column.name] for column in LINE]
    turn = sa.func.row_number().over(partition_by=line, order_by=(head.c.age.desc(), head.c.id))
    return (
        sa.select(
            *line,
            *(every.c.is_run, every.c.until_end, every.c.until_begin, every.c.room_of_all),
            *(head.c.id, head.c.has_place, turn.label("turn")),
        )
        .select_from(every.join(head, sa.true()))
        .cte("heads")
    )


def _chosen(heads: sa.CTE) -> sa.CTE:
    """The rows that are next, numbered in their turn: one of each line, and so on."""
    line = sa.tuple_(*(heads.c[column.name] for column in LINE))
    after = sa.tuple_(
        sa.bindparam("after_workspace", type_=sa.Uuid),
        sa.bindparam("after_intent", type_=sa.Text),
        sa.bindparam("after_workflow_kind", type_=sa.Text),
    )
    order = (heads.c.turn, line <= after, *(heads.c[column.name] for column in LINE))
    among = sa.func.row_number().over(partition_by=heads.c.is_run, order_by=order)
    in_turn = (
        sa.select(
            heads.c.id,
            heads.c.is_run,
            heads.c.room_of_all,
            among.label("among"),
            sa.func.row_number().over(order_by=order).label("number"),
        )
        .where(~_waits_for_end(heads), ~_waits_for_begin(heads))
        .subquery()
    )
    return (
        sa.select(in_turn.c.id, in_turn.c.number)
        .where(~in_turn.c.is_run | (in_turn.c.among <= in_turn.c.room_of_all))
        .order_by(in_turn.c.number)
        .limit(sa.bindparam("limit", type_=sa.Integer))
        .cte("chosen")
    )


def _waits_for_end(heads: sa.CTE) -> sa.ColumnElement[bool]:
    """Exempt rows that have a place: the running work includes them."""
    too_many = sa.func.coalesce(heads.c.turn > heads.c.until_end, sa.false())
    return ~heads.c.has_place & too_many


def _waits_for_begin(heads: sa.CTE) -> sa.ColumnElement[bool]:
    return sa.func.coalesce(heads.c.turn > heads.c.until_begin, sa.false())


def _reasons_to_wait(heads: sa.CTE, chosen: sa.CTE) -> sa.Subquery:
    """One row: the reasons for which starts were left."""
    is_left = heads.c.id.not_in(sa.select(chosen.c.id))

    def some(condition: sa.ColumnElement[bool], name: str) -> sa.Label[bool]:
        return sa.func.coalesce(sa.func.bool_or(condition), sa.false()).label(name)

    return sa.select(
        some(is_left & heads.c.is_run & ~_waits_for_end(heads), "waits_for_begin"),
        some(is_left & _waits_for_end(heads), "waits_for_end"),
    ).subquery("reasons")


def _weighed_age() -> sa.ColumnElement[float]:
    """The age of a row in seconds, times its weight and one more."""
    waited = sa.func.greatest(sa.func.extract("epoch", sa.func.now() - outbox.c.created_at), 0)
    return waited * (sa.cast(WEIGHT, sa.Integer) + 1)


_CLAIM = PreparedStatement(_claim_statement(), _ClaimedRow)
PUT_BACK = PreparedStatement(
    sa.update(outbox)
    .where(outbox.c.id == sa.bindparam("row_id"))
    .values(claimed_until=sa.func.now() + sa.bindparam("backoff", type_=sa.Interval))
)
