"""The outbox: requests to Temporal, each written in the transaction that decided it.

A row that exists has not been delivered yet; delivering deletes it. Delivery is at least once,
and every intent is idempotent by workflow id.
"""

import uuid
from collections.abc import Collection, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, NotRequired, TypedDict, Unpack

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from runtime.database import UnitOfWork, Work
from runtime.observability.tracing import TRACEPARENT, traceparent
from runtime.postgresql.schema import Timestamp, table_of
from runtime.postgresql.statements import PreparedStatement
from runtime.temporal.workflow_kinds import WorkflowKind


class Intent(StrEnum):
    START = "start"
    CANCEL = "cancel"
    SIGNAL = "signal"
    SCHEDULE = "schedule"
    """Make the schedule of the subject what our rows say it is."""


class StartRequest(TypedDict):
    """The request to start an execution, beside its id; operators see all of it."""

    summary: str
    resourceId: str
    source: NotRequired[str]
    weight: NotRequired[int]
    """Beside the other starts in its line its age counts `weight + 1` times: see `AWAITED`."""
    attributes: NotRequired[dict[str, str]]
    """Short texts by which people know it, for the memo of the execution."""
    traceparent: NotRequired[str]
    """Its cause, for traces."""
    restarts: NotRequired[int]
    """For work that begins again from its row: the number of executions that ended without closing
    it, plus this one."""
    child: NotRequired[bool]
    """The row only has a turn in its line: its caller starts the execution then, as its child."""
    execution: NotRequired[str]
    """For work that continues after it had ended: the suffix of the id of the execution."""
    signal: NotRequired[str]
    """A signal to the execution, for work that a workflow may have started as its child already."""


class CancelRequest(TypedDict):
    """The request to cancel an execution, as far as it says more than its id."""

    execution: str
    """As in `StartRequest`."""


class SignalRequest(TypedDict):
    workflowId: str
    signal: str
    arguments: list[Any]


class IntentArguments(TypedDict):
    """The arguments of `append`; most say more in a `request`."""

    intent: Intent
    workflow_kind: WorkflowKind
    workspace_id: uuid.UUID
    subject_id: uuid.UUID
    request: NotRequired[StartRequest | SignalRequest | CancelRequest]


MOST_WAITING_STARTS = 500
"""Starts that a workspace has in line, up to which something in bulk adds some."""
AWAITED = 2
"""The weight of a start that a person waits for. Any other has 1, so none waits more than half as
long again as another of its workflow kind in its workspace."""
ANEW = 3
"""The weight of work that begins again. It holds its place among the running work already."""

_WEIGHT = "coalesce(request ->> 'weight', '1')"


class Outbox(SQLModel, table=True):
    """One undelivered intent; while `claimed_until` lies ahead, a relay is on it or backs off."""

    __tablename__ = "outbox"
    __table_args__ = (
        sa.Index(
            "ix_outbox_line", "workspace_id", "intent", "workflow_kind", sa.text(_WEIGHT), "id"
        ),
        sa.Index("ix_outbox_subject_id", "subject_id"),
    )

    id: int = Field(
        sa_type=sa.BigInteger, sa_column_args=[sa.Identity(always=True)], primary_key=True
    )
    workspace_id: uuid.UUID
    intent: str
    workflow_kind: str
    subject_id: uuid.UUID
    request: dict[str, Any] = Field(sa_type=JSONB)
    created_at: datetime = Field(sa_type=Timestamp)
    claimed_until: datetime | None = Field(default=None, sa_type=Timestamp)
    attempts: int = 0


outbox = table_of(Outbox)

WEIGHT: sa.ColumnElement[str] = sa.literal_column(f"({_WEIGHT})", sa.Text)
"""The weight of a row, a digit."""

_VALUES: dict[str, Any] = {
    "workspace_id": sa.bindparam("workspace_id", type_=outbox.c.workspace_id.type),
    "intent": sa.bindparam("intent", type_=outbox.c.intent.type),
    "workflow_kind": sa.bindparam("workflow_kind", type_=outbox.c.workflow_kind.type),
    "subject_id": sa.bindparam("subject_id", type_=outbox.c.subject_id.type),
    "request": sa.bindparam("request", type_=JSONB),
    "created_at": sa.bindparam("now", type_=Timestamp),
    "attempts": sa.literal(0),
}


def append_for_each(decided: sa.CTE) -> sa.Insert:
    """For statements that decide and record an intent at once: one row per row of `decided`.

    Its parameters are `intent_values`.
    """
    return sa.insert(outbox).from_select(
        list(_VALUES), sa.select(*_VALUES.values()).select_from(decided)
    )


_APPEND = PreparedStatement(sa.insert(outbox).values(**_VALUES))


def intent_values(work: Work, **intent: Unpack[IntentArguments]) -> dict[str, Any]:
    """The parameters of a statement that records an intent; its commit notifies the workers."""
    work.notify_workers = True
    values: dict[str, Any] = {"request": {}, **intent, "now": work.now}
    cause = traceparent()
    if cause is not None and intent["intent"] is Intent.START:
        values["request"] = {**values["request"], TRACEPARENT: cause}
    return values


async def append(work: UnitOfWork, **intent: Unpack[IntentArguments]) -> None:
    """Record an intent (see `intent_values`) that reaches Temporal exactly if this commits."""
    await _APPEND.execute(work, intent_values(work, **intent))


async def append_all(work: UnitOfWork, intents: Sequence[IntentArguments]) -> None:
    """Record several intents, each given as the arguments of `append`."""
    if intents:
        values = [intent_values(work, **intent) for intent in intents]
        await work.execute(sa.insert(outbox).values(**_VALUES), values)


def may_have_begun(request: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
    """The condition that a start carries a signal, for an execution that may be there already."""
    condition: sa.ColumnElement[bool] = request["signal"].astext.is_not(None)
    return condition


async def withdraw_starts(
    work: UnitOfWork, subject_ids: Collection[uuid.UUID]
) -> frozenset[uuid.UUID]:
    """Delete the starts that no relay has claimed; returns their subjects, which never began.

    A start with a signal is not among them: a workflow may have started its subject as a child.
    """
    unclaimed = (
        sa.select(outbox.c.id)
        .where(
            outbox.c.subject_id.in_(sorted(subject_ids)),
            outbox.c.intent == Intent.START,
            outbox.c.claimed_until.is_(None),
        )
        # A row that a relay claims at this moment counts as claimed.
        .with_for_update(skip_locked=True)
    )
    taken_back = (
        sa.delete(outbox)
        .where(outbox.c.id.in_(unclaimed))
        .returning(outbox.c.subject_id, may_have_begun(outbox.c.request).label("may_have_begun"))
    )
    rows = await work.rows(taken_back)
    return frozenset(row.subject_id for row in rows if not row.may_have_begun)


async def waits_in_line(work: UnitOfWork, subject_id: uuid.UUID) -> bool:
    """True while no relay has claimed the start of a subject."""
    unclaimed = sa.select(outbox.c.id).where(
        outbox.c.subject_id == subject_id,
        outbox.c.intent == Intent.START,
        outbox.c.claimed_until.is_(None),
    )
    return await work.first(unclaimed) is not None


async def waiting_starts(
    work: UnitOfWork, workspace_id: uuid.UUID, workflow_kind: WorkflowKind, most: int
) -> int:
    """The starts of a workflow kind that a workspace has in the outbox, counted up to `most`."""
    some = (
        sa.select(outbox.c.id)
        .where(
            outbox.c.workspace_id == workspace_id,
            outbox.c.intent == Intent.START,
            outbox.c.workflow_kind == workflow_kind,
        )
        .limit(most)
        .subquery()
    )
    count: int = await work.scalar(sa.select(sa.func.count()).select_from(some))
    return count
