"""Deliveries: their table, and how they are accepted, tried and ended."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

import sqlalchemy as sa
from pydantic_core import to_json
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlmodel import Field, SQLModel

from models.core.base import Id, JsonObject
from models.core.lifecycle import commands as lifecycle
from models.messages.deliveries import rules
from runtime.database import UnitOfWork
from runtime.derived_ids import derived_id
from runtime.postgresql.schema import Timestamp, listed, one_of, table_of
from runtime.postgresql.statements import PreparedStatement
from runtime.temporal import outbox
from runtime.temporal.workflow_kinds import WorkflowKind

_OPEN = f"status IN ({listed(rules.OPEN_DELIVERY)})"
_LINE = ("workspace_id", "channel", "target_id")


class Delivery(SQLModel, table=True):
    """One thing on its way to one receiver.

    `input` is what the channel needs beside the two. `answer_status`, `error` and `error_code` are
    of the latest attempt; `next_attempt_at` is null while one is made.

    One that is not `executing` waits as a row alone, in a line with the others for its target, the
    oldest first. `executions` counts the executions that were started for it.
    """

    __tablename__ = "delivery"
    __table_args__ = (
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        one_of("channel", rules.DeliveryChannel),
        one_of("status", rules.DeliveryStatus),
        sa.Index("ix_delivery_target_id", "workspace_id", "target_id", "created_at", "id"),
        sa.Index(
            "ix_delivery_ended",
            *("workspace_id", "target_id", "status", "created_at", "id"),
            postgresql_where=sa.text(f"status NOT IN ({listed(rules.OPEN_DELIVERY)})"),
        ),
        sa.Index("ix_delivery_completed_at", "completed_at"),
        sa.Index("ix_delivery_created_at", "workspace_id", "channel", "created_at"),
        sa.Index("ix_delivery_open_target_id", "target_id", postgresql_where=sa.text(_OPEN)),
        sa.Index("ix_delivery_open", "id", postgresql_where=sa.text(_OPEN)),
        sa.Index(
            "ix_delivery_waiting",
            *_LINE,
            "created_at",
            "id",
            postgresql_where=sa.text(f"{_OPEN} AND NOT executing"),
        ),
        sa.Index(
            "ix_delivery_executing", *_LINE, postgresql_where=sa.text(f"{_OPEN} AND executing")
        ),
        sa.Index(
            "ix_delivery_expires_at",
            "expires_at",
            postgresql_where=sa.text(f"{_OPEN} AND NOT executing"),
        ),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    channel: str
    subject_id: Id
    target_id: Id
    input: dict[str, Any] = Field(sa_type=JSONB)
    status: str
    attempts: int
    next_attempt_at: datetime | None = Field(default=None, sa_type=Timestamp)
    answer_status: int | None = None
    error: str | None = None
    error_code: str | None = None
    executing: bool = False
    executions: int = 0
    expires_at: datetime = Field(sa_type=Timestamp)
    created_at: datetime = Field(sa_type=Timestamp)
    completed_at: datetime | None = Field(default=None, sa_type=Timestamp)


class DeliveryLine(SQLModel, table=True):
    """The state of the receiver of a line, from its first answer on.

    `failures` are those in a row. `opened` and `retry_at` belong to its circuit, which is closed
    without them; `since` is when that last changed.
    """

    __tablename__ = "delivery_line"
    __table_args__ = (
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        one_of("channel", rules.DeliveryChannel),
    )

    workspace_id: Id = Field(primary_key=True)
    channel: str = Field(primary_key=True)
    target_id: Id = Field(primary_key=True)
    failures: int
    opened: int
    retry_at: datetime | None = Field(default=None, sa_type=Timestamp)
    since: datetime | None = Field(default=None, sa_type=Timestamp)
    succeeded_at: datetime | None = Field(default=None, sa_type=Timestamp)


delivery = table_of(Delivery)
delivery_line = table_of(DeliveryLine)

# Written out, for PostgreSQL must know them to be the conditions of the indexes.
_PENDING = delivery.c.status == sa.literal_column(listed(rules.OPEN_DELIVERY))
WAITING = _PENDING & ~delivery.c.executing
EXECUTING = _PENDING & delivery.c.executing

DELIVERIES = lifecycle.WorkTable(
    delivery, rules.DELIVERY_LIFECYCLE, workflow_kind=WorkflowKind.DELIVERY
)


class DeliveryRow(Protocol):
    """A delivery of `subject_id` to `target_id`; `input` is what the channel needs beside them."""

    id: Id
    workspace_id: Id
    channel: str
    subject_id: Id
    target_id: Id
    input: dict[str, Any]
    status: str
    attempts: int
    next_attempt_at: datetime | None
    answer_status: int | None
    error: str | None
    error_code: str | None
    executing: bool
    executions: int
    expires_at: datetime
    created_at: datetime
    completed_at: datetime | None


DELIVERY = delivery.c
"""The columns of deliveries in `deliveries_by`."""


def deliveries_by(
    channel: rules.DeliveryChannel, workspace_id: Id, *columns: sa.ColumnElement[Any]
) -> sa.Select[Any]:
    """These columns of the deliveries of a workspace by a channel, closed ones too."""
    return sa.select(*columns).where(
        delivery.c.workspace_id == workspace_id, delivery.c.channel == channel
    )


def has_room(
    workspace_id: sa.ColumnElement[Any],
    channel: rules.DeliveryChannel,
    target_id: sa.ColumnElement[Any],
    *,
    most: int,
    most_failing: int,
) -> sa.ColumnElement[bool]:
    """True while fewer deliveries than `most` are open to the target that columns name.

    While its circuit is not closed, `most_failing` counts instead.
    """
    failing = (
        sa.exists(delivery_line.c.target_id)
        .where(
            delivery_line.c.workspace_id == workspace_id,
            delivery_line.c.channel == channel,
            delivery_line.c.target_id == target_id,
            delivery_line.c.retry_at.is_not(None),
        )
        .correlate_except(delivery_line)
    )
    limit = sa.case((failing, most_failing), else_=most)
    open_ids = (
        sa.select(delivery.c.id)
        .where(delivery.c.target_id == target_id, delivery.c.status.in_(rules.OPEN_DELIVERY))
        .limit(limit)
        .correlate_except(delivery)
        .subquery()
    )
    return sa.select(sa.func.count()).select_from(open_ids).scalar_subquery() < limit


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDelivery:
    """A thing to send and its target. The same twice is one delivery, unless `key` differs."""

    workspace_id: Id
    channel: rules.DeliveryChannel
    subject_id: Id
    target_id: Id
    input: JsonObject = field(default_factory=dict)
    key: str = ""

    @property
    def id(self) -> Id:
        return derived_id("delivery", self.channel, self.subject_id, self.target_id, self.key)


_GIVEN = (
    "id",
    "workspace_id",
    "channel",
    "subject_id",
    "target_id",
    "input",
    "expires_at",
    "created_at",
)
_FIRST = {
    "status": rules.DeliveryStatus.PENDING.value,
    "attempts": 0,
    "executing": False,
    "executions": 0,
}
_NEW = (
    sa.func.jsonb_to_recordset(sa.bindparam("rows", type_=sa.Text).cast(JSONB))
    .table_valued(*(sa.column(name, delivery.c[name].type) for name in _GIVEN))
    .render_derived(name="new", with_types=True)
)
_ACCEPT = PreparedStatement(
    upsert(delivery)
    .from_select(
        [*_GIVEN, *_FIRST],
        sa.select(
            *_NEW.c, *(sa.literal(value, delivery.c[name].type) for name, value in _FIRST.items())
        ),
    )
    .on_conflict_do_nothing(index_elements=["id"])
)
"""One statement for all: built row by row, they would stop the loop of a worker."""


async def accept_deliveries(work: UnitOfWork, deliveries: Sequence[NewDelivery]) -> None:
    """Record deliveries, in this order; deliveries that were accepted before stay as they are."""
    if not deliveries:
        return
    expires_at = {
        channel: work.now_after(rules.kept_for(channel))
        for channel in {one.channel for one in deliveries}
    }
    rows = [
        {
            "id": new_delivery.id,
            "workspace_id": new_delivery.workspace_id,
            "channel": new_delivery.channel,
            "subject_id": new_delivery.subject_id,
            "target_id": new_delivery.target_id,
            "input": new_delivery.input,
            "expires_at": expires_at[new_delivery.channel],
            "created_at": work.next_moment(),
        }
        for new_delivery in deliveries
    ]
    await _ACCEPT.execute(work, {"rows": to_json(rows).decode()})
    work.notify_workers = True


def request_of(
    channel: rules.DeliveryChannel, subject_id: Id, execution: int
) -> outbox.StartRequest:
    """The request that starts an execution: its summary for operators, and its number."""
    return {
        "summary": f"Delivery by {channel.value}",
        "resourceId": str(subject_id),
        "execution": str(execution),
    }


async def hold_delivery(work: UnitOfWork, delivery_id: Id) -> DeliveryRow | None:
    """A delivery, locked; None when it is closed."""
    return await lifecycle.hold(work, DELIVERIES, delivery_id, of=DeliveryRow)


def is_attempted_by(row: DeliveryRow, execution: int) -> bool:
    """Tell whether the execution of this number is the one that attempts an open delivery."""
    return row.executing and row.executions == execution


async def begin_attempt(work: UnitOfWork, row: DeliveryRow) -> int:
    """Count an attempt of a held delivery; its number."""
    number = row.attempts + 1
    values = {"attempts": number, "next_attempt_at": None}
    await lifecycle.record_progress(work, DELIVERIES, row.id, **values)
    return number


async def end_attempt(
    work: UnitOfWork, row: DeliveryRow, answer: rules.Answer
) -> rules.DeliveryStatus:
    """Write what the latest attempt came to; the status. Deliveries that wait behind it may
    continue.
    """
    work.notify_workers = True
    facts: JsonObject = {
        "answer_status": answer.status,
        "error": answer.message,
        "error_code": answer.code,
    }
    pause = rules.next_pause(rules.DeliveryChannel(row.channel), row.attempts, answer)
    if pause is not None:
        moment = work.now_after(pause)
        facts |= {"next_attempt_at": moment, "executing": False}
        await lifecycle.record_progress(work, DELIVERIES, row.id, **facts)
        return rules.DeliveryStatus.PENDING
    end = answer.end or rules.DeliveryStatus.FAILED
    facts |= {"next_attempt_at": None, "executing": False}
    await lifecycle.finish(work, DELIVERIES, [row.id], end, **facts)
    return end


async def cancel_deliveries(
    work: UnitOfWork, workspace_id: Id, delivery_ids: Collection[Id]
) -> list[Id]:
    """Cancel the open ones among these deliveries; their ids. What is being sent may arrive."""
    own = sa.select(delivery.c.id, delivery.c.executions).where(
        delivery.c.id.in_(delivery_ids), delivery.c.executing
    )
    executing = await work.rows(own.order_by(delivery.c.id).with_for_update())
    end = rules.DeliveryStatus.CANCELLED
    cancelled = await lifecycle.finish(work, DELIVERIES, delivery_ids, end, executing=False)
    withdrawn = await outbox.withdraw_starts(work, cancelled)
    intents: list[outbox.IntentArguments] = [
        {
            "intent": outbox.Intent.CANCEL,
            "workflow_kind": WorkflowKind.DELIVERY,
            "workspace_id": workspace_id,
            "subject_id": row.id,
            "request": {"execution": str(row.executions)},
        }
        for row in executing
        if row.id not in withdrawn
    ]
    await outbox.append_all(work, intents)
    return cancelled


async def cancel_all_to(work: UnitOfWork, workspace_id: Id, target_id: Id) -> None:
    """Cancel every open delivery to a target."""
    pending = sa.select(delivery.c.id).where(
        delivery.c.workspace_id == workspace_id,
        delivery.c.target_id == target_id,
        delivery.c.status == rules.DeliveryStatus.PENDING,
    )
    rows = await work.rows(pending.order_by(delivery.c.id))
    await cancel_deliveries(work, workspace_id, [row.id for row in rows])


async def give_up_waiting(
    work: UnitOfWork,
    workspace_id: Id,
    channel: rules.DeliveryChannel,
    target_id: Id,
    answer: rules.Answer,
) -> None:
    """End what waits for a target, with this answer. What is being sent ends by itself."""
    waiting = sa.select(delivery.c.id).where(
        WAITING,
        delivery.c.workspace_id == workspace_id,
        delivery.c.channel == channel,
        delivery.c.target_id == target_id,
    )
    ids = [row.id for row in await work.rows(waiting.with_for_update(skip_locked=True))]
    await end_unsent(work, ids, answer)


async def end_unsent(work: UnitOfWork, delivery_ids: Collection[Id], answer: rules.Answer) -> int:
    """End the deliveries among these that are open, with this answer; gives their number."""
    assert answer.end is not None
    facts = {"error": answer.message, "error_code": answer.code, "next_attempt_at": None}
    return len(await lifecycle.finish(work, DELIVERIES, delivery_ids, answer.end, **facts))


async def close_delivery(
    work: UnitOfWork, delivery_id: Id, status: rules.DeliveryStatus, error: str | None = None
) -> bool:
    """End an open delivery for ever; False when it was closed before."""
    values: JsonObject = {"next_attempt_at": None, "executing": False}
    if error is not None:
        values |= {"error": error, "error_code": "interrupted"}
    work.notify_workers = True
    return bool(await lifecycle.finish(work, DELIVERIES, [delivery_id], status, **values))


async def close_execution(
    work: UnitOfWork,
    delivery_id: Id,
    execution: int,
    status: rules.DeliveryStatus,
    error: str | None = None,
) -> bool:
    """End the delivery that an execution attempts; False when it does so no more."""
    held = await hold_delivery(work, delivery_id)
    if held is None or not is_attempted_by(held, execution):
        return False
    return await close_delivery(work, delivery_id, status, error)
