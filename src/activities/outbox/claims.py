"""Which rows of the outbox are next: in turn between workspaces, by urgency and age inside each."""

import typing
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import (
    ARRAY,
    CTE,
    BigInteger,
    ColumnElement,
    Integer,
    Interval,
    Label,
    Select,
    Subquery,
    Uuid,
    bindparam,
    case,
    cast,
    delete,
    false,
    func,
    select,
    true,
    tuple_,
    update,
)

from models.automation.automation_runs.rules import RunStatus
from models.automation.automation_runs.tables import automation_run
from models.core.base import Id
from runtime.database import Work
from runtime.families import Family
from runtime.outbox import URGENCY, Intent, Outbox, outbox
from runtime.prepared_statement import PreparedStatement

CLAIM = timedelta(seconds=10)
"""How long a claim holds if its relay never comes back."""
AGE_FACTOR = 3
"""Inside a workspace a start goes before a less urgent one that has waited less than so many times
as long. So none waits more than so many times as long as one that is a step more urgent."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds one claim."""

    rows: int
    """Rows of all kinds."""
    starting: int
    """Runs that this relay has started and that have not begun."""
    starting_beside_others: int
    """How many of them may be of one workspace, when others start runs too."""
    running: int
    """Automation runs of one workspace that are running or have been started."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Rows that are this relay's to deliver, and why others were left."""

    rows: Sequence[Outbox]
    waits_for_begin: bool
    """A start was left because too many runs have not begun."""
    waits_for_end: bool
    """A start was left because too many runs of its workspace are running."""


class _ClaimedRow:
    """A row of the outbox, without an id when nothing was claimed, and two columns more."""

    id: int | None
    waits_for_begin: bool
    waits_for_end: bool


async def claim(
    work: Work,
    limits: Limits,
    not_begun: Sequence[Id],
    delivered: Sequence[int],
    *,
    alone: bool,
) -> Claim:
    """Delete what was delivered, and claim what is next.

    `not_begun` are runs this relay has started; those that began since do not count. `alone` says
    that one workspace only has started runs of late.
    """
    found = await _CLAIM.rows(
        work,
        {
            "limit": limits.rows,
            "starts": limits.starting,
            "of_one": limits.starting if alone else limits.starting_beside_others,
            "cap": limits.running,
            "not_begun": not_begun,
            "delivered": delivered,
        },
    )
    rows = typing.cast("Sequence[Outbox]", [row for row in found if row.id is not None])
    return Claim(rows, found[0].waits_for_begin, found[0].waits_for_end)


def _claim_statement() -> Select[Any]:
    """The columns of `_ClaimedRow`; at least one row."""
    lines = _lines()
    chosen = _chosen(lines)
    next_rows = (
        select(outbox.c.id)
        .where(outbox.c.id.in_(select(chosen.c.id)))
        .with_for_update(of=outbox, skip_locked=True)
    )
    delivered = delete(outbox).where(
        outbox.c.id == func.any(bindparam("delivered", type_=ARRAY(BigInteger)))
    )
    claimed = (
        update(outbox)
        .where(outbox.c.id.in_(next_rows))
        .values(claimed_until=func.now() + CLAIM, attempts=outbox.c.attempts + 1)
        .returning(*outbox.c)
        .cte("claimed")
    )
    left = _waiting_starts(lines, chosen)
    return (
        select(*claimed.c, *left.c)
        .select_from(left.outerjoin(claimed, true()))
        .add_cte(delivered.cte("delivered"))
    )


def _lines() -> CTE:
    """The first rows of every line, with their `turn` in it: automation runs have lines of their
    own, so that a workspace at its cap can begin everything else.

    `place` counts the runs of the workspace that would be starting with this one, `starting` those
    of all that are.
    """
    first = _first_of_each()
    parts = (first.c.workspace_id, first.c.intent)
    order = (first.c.age.desc(), first.c.urgency, first.c.id)
    turn = func.row_number().over(partition_by=(*parts, first.c.is_run), order_by=order)
    starting = (
        select(automation_run.c.workspace_id)
        .where(
            automation_run.c.id == func.any(bindparam("not_begun", type_=ARRAY(Uuid))),
            automation_run.c.status == RunStatus.QUEUED.value,
        )
        .cte("starting")
    )
    of_workspace = (
        select(func.count())
        .where(starting.c.workspace_id == first.c.workspace_id)
        .correlate(first)
        .scalar_subquery()
    )
    of_all = select(func.count()).select_from(starting).scalar_subquery()
    return select(
        *parts,
        first.c.id,
        first.c.room,
        turn.label("turn"),
        (turn + case((first.c.is_run, of_workspace), else_=0)).label("place"),
        of_all.label("starting"),
    ).cte("lines")


def _chosen(lines: CTE) -> CTE:
    """The rows that are next, one per workspace in turn; starts go last."""
    is_start = lines.c.intent == Intent.START
    most = func.least(bindparam("of_one", type_=Integer), lines.c.room)
    number = func.row_number().over(
        partition_by=lines.c.intent, order_by=(lines.c.turn, lines.c.id)
    )
    in_turn = (
        select(lines.c.id, lines.c.intent, (number + lines.c.starting).label("number"))
        .where(~is_start | (lines.c.place <= most))
        .subquery()
    )
    return (
        select(in_turn.c.id)
        .where(
            (in_turn.c.intent != Intent.START)
            | (in_turn.c.number <= bindparam("starts", type_=Integer))
        )
        .order_by(in_turn.c.intent, in_turn.c.number)
        .limit(bindparam("limit", type_=Integer))
        .cte("chosen")
    )


def _waiting_starts(lines: CTE, chosen: CTE) -> Subquery:
    """Whether starts were left, and what they wait for; one row."""
    capped = lines.c.place > lines.c.room
    left = (lines.c.intent == Intent.START) & lines.c.id.not_in(select(chosen.c.id))

    def some(condition: ColumnElement[bool], name: str) -> Label[bool]:
        return func.coalesce(func.bool_or(condition), false()).label(name)

    return select(
        some(left & ~capped, "waits_for_begin"), some(left & capped, "waits_for_end")
    ).subquery("left")


def _first_of_each() -> Subquery:
    """The first rows of every family of every urgency of every intent of every workspace, and how
    many more runs it may have running. It reads only the head of each line, however long it is."""
    running = (
        select(automation_run.c.workspace_id, func.count().label("number"))
        .where(automation_run.c.status == RunStatus.RUNNING)
        .group_by(automation_run.c.workspace_id)
        .subquery("running")
    )
    lines = _nonempty_lines()
    is_run = lines.c.family == Family.AUTOMATION_RUN
    counted = case((is_run, func.coalesce(running.c.number, 0)), else_=0)
    room = bindparam("cap", type_=Integer) - counted
    line = (
        select(
            *(outbox.c.id, outbox.c.workspace_id, outbox.c.intent),
            URGENCY.label("urgency"),
            _weighed_age().label("age"),
        )
        .where(
            outbox.c.workspace_id == lines.c.workspace_id,
            outbox.c.intent == lines.c.intent,
            lines.c.urgency == URGENCY,
            outbox.c.family == lines.c.family,
            (outbox.c.claimed_until.is_(None)) | (outbox.c.claimed_until < func.now()),
        )
        .order_by(outbox.c.id)
        .limit(bindparam("limit", type_=Integer))
        .correlate(lines)
        .lateral("line")
    )
    every = lines.outerjoin(running, running.c.workspace_id == lines.c.workspace_id).join(
        line, true()
    )
    columns = (*line.c, is_run.label("is_run"), room.label("room"))
    return select(*columns).select_from(every).subquery("first")


def _weighed_age() -> ColumnElement[float]:
    """How long a row has waited, in seconds, times AGE_FACTOR for each step of its urgency."""
    waited = func.greatest(func.extract("epoch", func.now() - outbox.c.created_at), 0)
    return waited * func.power(AGE_FACTOR, -cast(URGENCY, Integer))


def _nonempty_lines() -> CTE:
    """The workspaces, intents, urgencies and families that have rows, each found by one step along
    the index."""
    key = (outbox.c.workspace_id, outbox.c.intent, URGENCY.label("urgency"), outbox.c.family)
    order = (outbox.c.workspace_id, outbox.c.intent, URGENCY, outbox.c.family)
    first = select(*key).order_by(*order).limit(1).subquery()
    found = select(*first.c).cte("found", recursive=True)
    beyond = (
        select(*key)
        .where(tuple_(*order) > tuple_(*found.c))
        .order_by(*order)
        .limit(1)
        .correlate(found)
        .lateral("beyond")
    )
    return found.union_all(select(*beyond.c).select_from(found.join(beyond, true())))


_CLAIM = PreparedStatement(_claim_statement(), _ClaimedRow)
PUT_BACK = PreparedStatement(
    update(outbox)
    .where(outbox.c.id == bindparam("row_id"))
    .values(claimed_until=func.now() + bindparam("backoff", type_=Interval))
)
