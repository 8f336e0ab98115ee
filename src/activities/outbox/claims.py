"""Which rows of the outbox are next: in turn between workspaces, in order inside each."""

from datetime import timedelta

from sqlalchemy import (
    ARRAY,
    CTE,
    BigInteger,
    Integer,
    Interval,
    Subquery,
    Text,
    UpdateBase,
    Uuid,
    bindparam,
    column,
    delete,
    func,
    select,
    true,
    update,
    values,
)

from models.automation.automation_runs.rules import RunStatus
from models.automation.automation_runs.tables import automation_run
from runtime.outbox import URGENCY, Intent, outbox
from runtime.prepared_statement import PreparedStatement

CLAIM = timedelta(seconds=10)
"""How long a claim holds if its relay never comes back."""


def _claim_statement() -> UpdateBase:
    """Delete what was delivered; claim what is next."""
    chosen = _next()
    next_rows = (
        select(outbox.c.id)
        .join(chosen, chosen.c.id == outbox.c.id)
        .with_for_update(of=outbox, skip_locked=True)
    )
    delivered = delete(outbox).where(
        outbox.c.id == func.any(bindparam("delivered", type_=ARRAY(BigInteger)))
    )
    return (
        update(outbox)
        .where(outbox.c.id.in_(next_rows))
        .values(claimed_until=func.now() + CLAIM, attempts=outbox.c.attempts + 1)
        .returning(*outbox.c)
        .add_cte(delivered.cte("delivered"))
    )


def _next() -> Subquery:
    """The rows that are next, one per workspace in turn.

    Starts go last, and no workspace starts more than the running cap leaves room for, or when
    enough of its runs are about to begin. Inside a workspace what a person waits for goes first,
    and then what was asked for first.
    """
    first = _first_of_each()
    parts = (first.c.workspace_id, first.c.intent)
    turn = func.row_number().over(partition_by=parts, order_by=(first.c.urgency, first.c.id))
    in_turn = select(*parts, first.c.id, first.c.room, turn.label("turn")).subquery()
    is_start = in_turn.c.intent == Intent.START
    starting = func.array_positions(
        bindparam("starting", type_=ARRAY(Uuid)), in_turn.c.workspace_id
    )
    of_one = in_turn.c.turn + func.cardinality(starting)
    most = func.least(bindparam("of_one", type_=Integer), in_turn.c.room)
    place = func.row_number().over(
        partition_by=in_turn.c.intent, order_by=(in_turn.c.turn, in_turn.c.id)
    )
    in_line = (
        select(in_turn.c.id, in_turn.c.intent, place.label("place"))
        .where(~is_start | (of_one <= most))
        .subquery()
    )
    return (
        select(in_line.c.id)
        .where(
            (in_line.c.intent != Intent.START)
            | (in_line.c.place <= bindparam("starts", type_=Integer))
        )
        .order_by(in_line.c.intent, in_line.c.place)
        .limit(bindparam("limit", type_=Integer))
        .subquery()
    )


def _first_of_each() -> Subquery:
    """The first rows of every intent of every workspace, and how many runs more it may have
    running: a look at each line's head, however long the line is."""
    running = (
        select(automation_run.c.workspace_id, func.count().label("number"))
        .where(automation_run.c.status == RunStatus.RUNNING)
        .group_by(automation_run.c.workspace_id)
        .subquery("running")
    )
    room = bindparam("cap", type_=Integer) - func.coalesce(running.c.number, 0)
    intents = values(column("intent", Text), name="intents").data([(one.value,) for one in Intent])
    spaces = _workspaces()
    line = (
        select(outbox.c.id, outbox.c.workspace_id, outbox.c.intent, URGENCY.label("urgency"))
        .where(
            outbox.c.workspace_id == spaces.c.workspace_id,
            outbox.c.intent == intents.c.intent,
            (outbox.c.claimed_until.is_(None)) | (outbox.c.claimed_until < func.now()),
        )
        .order_by(URGENCY, outbox.c.id)
        .limit(bindparam("limit", type_=Integer))
        .correlate(spaces, intents)
        .lateral("line")
    )
    every = (
        spaces.outerjoin(running, running.c.workspace_id == spaces.c.workspace_id)
        .join(intents, true())
        .join(line, true())
    )
    return select(*line.c, room.label("room")).select_from(every).subquery("first")


def _workspaces() -> CTE:
    """The workspaces that the outbox has rows of, each found by one step along the index."""
    first = select(outbox.c.workspace_id).order_by(outbox.c.workspace_id).limit(1)
    found = select(first.scalar_subquery().label("workspace_id")).cte("spaces", recursive=True)
    beyond = (
        select(outbox.c.workspace_id)
        .where(outbox.c.workspace_id > found.c.workspace_id)
        .order_by(outbox.c.workspace_id)
        .limit(1)
        .correlate(found)
    )
    return found.union_all(
        select(beyond.scalar_subquery()).where(found.c.workspace_id.is_not(None))
    )


CLAIM_NEXT = PreparedStatement(_claim_statement())
"""Parameters: `limit` and `starts` of all, `of_one` workspace; `cap`; the workspaces of `starting`
runs; `delivered` rows."""
NOT_BEGUN = PreparedStatement(
    select(automation_run.c.id).where(
        automation_run.c.id == func.any(bindparam("run_ids", type_=ARRAY(Uuid))),
        automation_run.c.status == RunStatus.QUEUED.value,
    )
)
PUT_BACK = PreparedStatement(
    update(outbox)
    .where(outbox.c.id == bindparam("row_id"))
    .values(claimed_until=func.now() + bindparam("backoff", type_=Interval))
)
