"""Accepting deliveries, and the guarded writes of those who attempt them (promise I3)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from sqlalchemy.dialects.postgresql import insert as upsert

from models.core.base import Id, JsonObject
from models.core.lifecycle import commands as lifecycle
from models.messages.deliveries.rules import (
    Answer,
    DeliveryChannel,
    DeliveryStatus,
    next_pause,
)
from models.messages.deliveries.tables import DELIVERIES, Delivery, delivery
from runtime import outbox
from runtime.database import UnitOfWork
from runtime.derived_ids import derived_id
from runtime.families import Family

PRIORITY = 4
"""Behind what people and triggers wait for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDelivery:
    """What goes to whom; the same once more is the same delivery, unless `key` differs."""

    workspace_id: Id
    channel: DeliveryChannel
    subject_id: Id
    target_id: Id
    input: JsonObject = field(default_factory=dict)
    key: str = ""

    @property
    def id(self) -> Id:
        return derived_id("delivery", self.channel, self.subject_id, self.target_id, self.key)


async def accept_deliveries(work: UnitOfWork, wanted: Sequence[NewDelivery]) -> None:
    """Record deliveries and their starts; those that were accepted before stay as they are."""
    if not wanted:
        return
    rows = [
        {
            "id": one.id,
            "workspace_id": one.workspace_id,
            "channel": one.channel.value,
            "subject_id": one.subject_id,
            "target_id": one.target_id,
            "input": one.input,
            "status": DeliveryStatus.PENDING.value,
            "attempts": 0,
            "created_at": work.now,
        }
        for one in wanted
    ]
    await work.execute(upsert(delivery).on_conflict_do_nothing(index_elements=["id"]), rows)
    await outbox.append_all(work, [_start(one) for one in wanted])


def _start(one: NewDelivery) -> outbox.IntentArguments:
    return {
        "intent": outbox.Intent.START,
        "family": Family.DELIVERY,
        "workspace_id": one.workspace_id,
        "subject_id": one.id,
        "request": request_of(one.channel, one.subject_id),
    }


def request_of(channel: DeliveryChannel, subject_id: Id) -> outbox.StartRequest:
    """What operators see of a delivery."""
    summary = f"Delivery by {channel.value}"
    return {"summary": summary, "resourceId": str(subject_id), "priority": PRIORITY}


async def hold_delivery(work: UnitOfWork, delivery_id: Id) -> Delivery | None:
    """A delivery, locked; None when it is closed."""
    return await lifecycle.hold(work, DELIVERIES, delivery_id, of=Delivery)


async def begin_attempt(work: UnitOfWork, held: Delivery) -> int:
    """Count an attempt of a held delivery; its number."""
    number = held.attempts + 1
    values = {"attempts": number, "next_attempt_at": None}
    await lifecycle.record_progress(work, DELIVERIES, held.id, **values)
    return number


async def end_attempt(
    work: UnitOfWork, held: Delivery, answer: Answer
) -> tuple[DeliveryStatus, float | None]:
    """Write what the latest attempt came to; the status, and the seconds to the next attempt."""
    facts = {
        "answer_status": answer.status,
        "error": answer.message,
        "error_code": answer.code,
    }
    pause = next_pause(DeliveryChannel(held.channel), held.attempts, answer)
    if pause is not None:
        moment = work.now_after(pause)
        await lifecycle.record_progress(work, DELIVERIES, held.id, next_attempt_at=moment, **facts)
        return DeliveryStatus.PENDING, pause
    end = answer.end or DeliveryStatus.FAILED
    await lifecycle.finish(work, DELIVERIES, [held.id], end, next_attempt_at=None, **facts)
    return end, None


async def cancel_deliveries(
    work: UnitOfWork, workspace_id: Id, delivery_ids: Collection[Id]
) -> list[Id]:
    """Cancel the open ones among these deliveries; their ids. What is being sent may arrive."""
    cancelled = await lifecycle.finish(work, DELIVERIES, delivery_ids, DeliveryStatus.CANCELLED)
    await lifecycle.cancel_executions(work, Family.DELIVERY, workspace_id, cancelled)
    return cancelled


async def close_delivery(
    work: UnitOfWork, delivery_id: Id, status: DeliveryStatus, error: str | None = None
) -> bool:
    """End an open delivery for ever; False when it was closed before."""
    values = {} if error is None else {"error": error, "error_code": "interrupted"}
    return bool(
        await lifecycle.finish(
            work, DELIVERIES, [delivery_id], status, next_attempt_at=None, **values
        )
    )
