"""Pauses, and the intents that join the outbox, or rest while one of their subjects is paused."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Unpack

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB, array
from sqlmodel import Field, SQLModel

from models.core.base import Id
from models.core.pauses.rules import CHUNK, PauseCause, PauseSubject
from runtime.database import UnitOfWork, Work
from runtime.postgresql.schema import BELONGS_TO, Timestamp, one_of, partial_index, table_of
from runtime.postgresql.statements import PreparedStatement
from runtime.temporal import outbox
from runtime.temporal.outbox import outbox as outbox_table
from runtime.temporal.workflow_kinds import RESTARTS_IN_MEMO, WorkflowKind

_SUBJECT = ("workspace_id", "subject_id")


class Pause(SQLModel, table=True):
    """A pause of an automation or a workspace, until nothing rests under it.

    From `resumed_at` on it lets go of what rests, at `rate` starts a minute or at once; new work
    stands behind that. At `due_at` a worker has something to do about it.
    """

    __tablename__ = "pause"
    __table_args__ = (
        sa.UniqueConstraint("subject_id", "cause"),
        one_of("subject_kind", PauseSubject),
        one_of("cause", PauseCause),
        partial_index("ix_pause_due_at", "due_at", where="due_at IS NOT NULL"),
        sa.Index("ix_pause_workspace_id", "workspace_id"),
        {"info": {BELONGS_TO: {"automation": _SUBJECT, "workspace": _SUBJECT}}},
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    subject_kind: str
    subject_id: Id
    cause: str
    reason: str
    paused_by_user_id: Id | None = None
    paused_at: datetime = Field(sa_type=Timestamp)
    resumed_at: datetime | None = Field(default=None, sa_type=Timestamp)
    rate: int | None = None
    due_at: datetime | None = Field(default=None, sa_type=Timestamp)


class RestingIntent(SQLModel, table=True):
    """An intent that rests under a pause of one of its `subject_ids`, and then joins the outbox.

    No relay and no sweep reads this table, so that what rests costs nothing.
    """

    __tablename__ = "resting_intent"
    __table_args__ = (
        sa.ForeignKeyConstraint(["pause_id"], ["pause.id"], ondelete="CASCADE"),
        sa.Index(
            "ix_resting_intent_pause_id_accepted_at",
            "pause_id",
            "accepted_at",
            "work_id",
            "intent",
        ),
        sa.Index("ix_resting_intent_workspace_id", "workspace_id"),
        {"info": {BELONGS_TO: {"automation_run": ("workspace_id", "work_id")}}},
    )

    work_id: Id = Field(primary_key=True)
    intent: str = Field(primary_key=True)
    pause_id: Id
    workspace_id: Id
    workflow_kind: str
    request: dict[str, Any] = Field(sa_type=JSONB)
    subject_ids: list[Id] = Field(sa_type=sa.ARRAY(sa.Uuid))
    accepted_at: datetime = Field(sa_type=Timestamp)


pause = table_of(Pause)
resting_intent = table_of(RestingIntent)


_resting = resting_intent.c
_OWN = {
    "pause_id": pause.c.id,
    "work_id": sa.bindparam("subject_id", type_=sa.Uuid),
    "intent": sa.bindparam("intent", type_=_resting.intent.type),
    "workspace_id": sa.bindparam("workspace_id", type_=sa.Uuid),
    "workflow_kind": sa.bindparam("workflow_kind", type_=_resting.workflow_kind.type),
    "request": sa.bindparam("request", type_=_resting.request.type),
    "subject_ids": sa.bindparam("pausable_ids", type_=sa.ARRAY(sa.Uuid)),
    "accepted_at": sa.bindparam("accepted_at", type_=Timestamp),
}


def append_or_rest(decided: sa.CTE, *, joins: bool = True) -> sa.Select[Any]:
    """For statements that decide at once: an intent for the row of `decided`, by a pause at rest.

    Its parameters are `intent_values`, `pausable_ids` and `accepted_at`. Its row has the `id` of
    that row, and `pause_id` and `subject_kind` of the pause. Without `joins` the intent is only
    needed if it rests.
    """
    # All are locked, and not the first alone: that one may be gone when the lock is there.
    locked = (
        sa.select(pause.c.id, pause.c.subject_kind, pause.c.cause)
        .where(
            pause.c.workspace_id == sa.bindparam("workspace_id", type_=sa.Uuid),
            pause.c.subject_id == sa.bindparam("pausable_ids", type_=sa.ARRAY(sa.Uuid)).any_(),
        )
        .with_for_update(read=True, key_share=True)
        .cte("locked")
    )
    order = (
        locked.c.subject_kind == PauseSubject.WORKSPACE.value,
        locked.c.cause == PauseCause.CIRCUIT_BREAKER.value,
    )
    holder = sa.select(locked.c.id, locked.c.subject_kind).order_by(*order).limit(1).cte("holder")
    own = {**_OWN, "pause_id": holder.c.id}
    rests = (
        sa.insert(resting_intent)
        .from_select(list(own), sa.select(*own.values()).select_from(decided.join(holder, _TRUE)))
        .cte("rests")
    )
    answer = sa.select(
        decided.c.id, holder.c.id.label("pause_id"), holder.c.subject_kind
    ).select_from(decided.outerjoin(holder, _TRUE))
    if not joins:
        return answer.add_cte(rests)
    free = sa.select(decided.c.id).where(~sa.exists(sa.select(holder.c.id))).cte("free")
    return answer.add_cte(rests, outbox.append_for_each(free).cte("joined"))


_TRUE = sa.literal(True)
_ONE = sa.select(sa.literal(None, sa.Uuid).label("id")).cte("one")
_APPEND = PreparedStatement(append_or_rest(_ONE))


def pausable(work: Work, ids: Sequence[Id], accepted_at: datetime | None) -> dict[str, Any]:
    """The parameters of `append_or_rest` beside `intent_values`."""
    return {"pausable_ids": list(ids), "accepted_at": accepted_at or work.now}


async def append_intent(
    work: UnitOfWork,
    pausable_ids: Sequence[Id],
    accepted_at: datetime | None = None,
    **intent: Unpack[outbox.IntentArguments],
) -> bool:
    """Record an intent about work on which these have a pause; False when it rests."""
    values = outbox.intent_values(work, **intent)
    row = await _APPEND.first(work, {**values, **pausable(work, pausable_ids, accepted_at)})
    assert row is not None, "a row for one intent"
    return row.pause_id is None


async def withdraw_intents(work: UnitOfWork, work_ids: Collection[Id]) -> frozenset[Id]:
    """Delete what rests of closed work; returns those whose start rested, which never began."""
    rows = await work.rows(
        sa.delete(resting_intent)
        .where(_resting.work_id.in_(sorted(work_ids)))
        .returning(
            _resting.work_id,
            _resting.intent,
            outbox.may_have_begun(_resting.request).label("may_have_begun"),
        )
    )
    starts = (row for row in rows if row.intent == outbox.Intent.START)
    return frozenset(row.work_id for row in starts if not row.may_have_begun)


def is_resting(work_id: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
    """The condition that something rests under a pause."""
    return sa.exists().where(_resting.work_id == work_id)


GATHERED = (WorkflowKind.AUTOMATION_RUN,)
"""Workflow kinds whose work a pause of an automation or a workspace brings to rest."""

_outbox_request = outbox_table.c.request


async def gather_starts(work: UnitOfWork, holder: Pause) -> int:
    """Bring some starts to rest under a pause, the oldest first; their number.

    A start that a relay has claimed may have begun, and a run that begins again continues to its
    end.
    """
    unclaimed = _unclaimed(holder).limit(CHUNK).with_for_update(skip_locked=True)
    claimed = (
        sa.delete(outbox_table)
        .where(outbox_table.c.id.in_(unclaimed))
        .returning(*outbox_table.c)
        .cte("claimed")
    )
    own = {
        "work_id": claimed.c.subject_id,
        "intent": claimed.c.intent,
        "pause_id": sa.literal(holder.id, sa.Uuid),
        "workspace_id": claimed.c.workspace_id,
        "workflow_kind": claimed.c.workflow_kind,
        "request": claimed.c.request,
        "subject_ids": array(
            [sa.cast(claimed.c.request["resourceId"].astext, sa.Uuid), claimed.c.workspace_id]
        ),
        "accepted_at": claimed.c.created_at,
    }
    resting = (
        sa.insert(resting_intent)
        .from_select(list(own), sa.select(*own.values()))
        .returning(resting_intent.c.work_id)
    )
    rows = await work.rows(sa.select(sa.func.count()).select_from(resting.cte("resting")))
    number: int = rows[0][0]
    return number


def _unclaimed(holder: Pause) -> sa.Select[tuple[int]]:
    resource = _outbox_request["resourceId"].astext
    return (
        sa.select(outbox_table.c.id)
        .where(
            outbox_table.c.workspace_id == holder.workspace_id,
            outbox_table.c.intent == outbox.Intent.START.value,
            outbox_table.c.workflow_kind.in_([workflow_kind.value for workflow_kind in GATHERED]),
            outbox_table.c.attempts == 0,
            ~_outbox_request.has_key(RESTARTS_IN_MEMO),
            _outbox_request["source"].astext.is_distinct_from("test"),
            sa.or_(
                sa.literal(holder.subject_kind == PauseSubject.WORKSPACE),
                resource == str(holder.subject_id),
            ),
        )
        .order_by(outbox_table.c.id)
    )
