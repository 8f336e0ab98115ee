"""The lines of the outbox, one for each intent of each family of each workspace, and their room."""

from sqlalchemy import (
    ARRAY,
    CTE,
    Integer,
    TableValuedAlias,
    Text,
    Uuid,
    bindparam,
    case,
    func,
    select,
)

from activities.outbox.under_way import under_way
from models.automation.automation_runs.rules import RunStatus
from models.automation.automation_runs.tables import automation_run
from runtime.families import Family
from runtime.outbox import WEIGHT, Intent, outbox
from runtime.skip_scan import distinct

LINE = (outbox.c.workspace_id, outbox.c.intent, outbox.c.family)
"""The key of a line, in the order of the index."""


def lines() -> CTE:
    """The lines that have rows, one for each weight, and how many starts each has room for.

    `until_end` may begin before one that is under way ends, `until_begin` before one begins that
    this relay has started; null for what has no bound.
    """
    line = distinct("found", (*LINE, WEIGHT.label("weight")))
    starts, caps = _started(), _caps()
    busy = under_way().subquery("busy")
    of_workspace = (
        select(func.count())
        .where(starts.c.workspace_id == line.c.workspace_id)
        .correlate(line)
        .scalar_subquery()
    )
    of_all = select(func.count()).select_from(starts).scalar_subquery()
    is_start = line.c.intent == Intent.START
    is_run = is_start & (line.c.family == Family.AUTOMATION_RUN)
    not_begun = case((is_run, of_workspace), else_=0)
    until_end = caps.c.cap - func.coalesce(busy.c.number, 0) - not_begun
    room_of_all = bindparam("starts", type_=Integer) - of_all
    until_begin = func.least(bindparam("of_one", type_=Integer) - of_workspace, room_of_all)
    of_line = (busy.c.workspace_id == line.c.workspace_id) & (busy.c.family == line.c.family)
    return (
        select(
            *line.c,
            is_run.label("is_run"),
            case((is_start, until_end)).label("until_end"),
            case((is_run, until_begin)).label("until_begin"),
            room_of_all.label("room_of_all"),
        )
        .select_from(line)
        .outerjoin(busy, of_line)
        .outerjoin(caps, caps.c.family == line.c.family)
        .cte("lines")
    )


def _started() -> CTE:
    """The workspaces of the runs that this relay has started and that have not begun."""
    waited_for = automation_run.c.id == func.any(bindparam("not_begun", type_=ARRAY(Uuid)))
    return (
        select(automation_run.c.workspace_id)
        .where(waited_for, automation_run.c.status == RunStatus.QUEUED.value)
        .cte("started")
    )


def _caps() -> TableValuedAlias:
    families, caps = (
        bindparam("families", type_=ARRAY(Text)),
        bindparam("caps", type_=ARRAY(Integer)),
    )
    return func.unnest(families, caps).table_valued("family", "cap").render_derived("caps")
