"""One attempt of a delivery: read the message, send it, write the answer (ADR 0055)."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import structlog
from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.database_errors import awaiting_database
from activities.deliveries.channels import Channel, Parcel
from activities.endings import CLOSED
from activities.heartbeats import heartbeats
from models.core.base import Id
from models.core.lifecycle.rules import REPORTED_FAILURES
from models.messages.deliveries.commands import (
    begin_attempt,
    close_execution,
    end_attempt,
    hold_delivery,
    is_attempted_by,
)
from models.messages.deliveries.lines import record_answer
from models.messages.deliveries.rules import Answer, DeliveryChannel, DeliveryStatus
from runtime.database import Database
from runtime.outbound.errors import OutboundError
from runtime.temporal.executions import execution_of

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class AttemptReply:
    """The status of a delivery. `seconds` is only in histories from before deliveries had lines:
    their executions waited for the next attempt themselves."""

    status: str
    seconds: float | None = None


class DeliveryActivities:
    """The requests of an execution to its delivery."""

    def __init__(
        self, database: Database, channels: Mapping[DeliveryChannel, Channel[Any]]
    ) -> None:
        self._database = database
        self._channels = channels

    @activity.defn(name="deliver")
    async def deliver(self, delivery_id: str, restarts: int = 0) -> str:
        """Attempt a delivery as an execution by itself (ADR 0116), which ends as its row does.

        `restarts` are for the reconciler.
        """
        del restarts
        try:
            reply = await self.attempt_delivery(delivery_id)
        except asyncio.CancelledError:
            details = activity.cancellation_details()
            if details is not None and details.cancel_requested:
                # After a cancel of ours the row is closed already, and this changes nothing.
                await asyncio.shield(self.close_cancelled_delivery(delivery_id))
            raise
        if reply.status in REPORTED_FAILURES:
            raise ApplicationError("The delivery failed.", type=reply.status, non_retryable=True)
        return reply.status

    @activity.defn(name="attempt_delivery")
    async def attempt_delivery(self, delivery_id: str) -> AttemptReply:
        """Attempt a delivery, unless this execution did so before.

        Repeated after a loss of its worker, it may send once more: receivers know a repetition by
        its id. It is called by the workflows of deliveries that began before they had none.
        """
        async with heartbeats():
            return await self._attempt(Id(delivery_id))

    async def _attempt(self, delivery_id: Id) -> AttemptReply:
        async with self._database.transaction() as work:
            delivery = await hold_delivery(work, delivery_id)
            if delivery is None:
                return AttemptReply(CLOSED)
            if not is_attempted_by(delivery, _execution()):
                return AttemptReply(delivery.status)
            channel = self._channels[DeliveryChannel(delivery.channel)]
            await begin_attempt(work, delivery)
            # In the transaction of the begin, so that the message is that of the counted attempt.
            parcel = await channel.pack(work, delivery)
        # Between the transactions: a slow receiver must not hold a lock.
        answer = parcel if isinstance(parcel, Answer) else await _sent(channel, parcel)
        # A retry of the activity would send once more, only because the database was away.
        return await awaiting_database(lambda: self._end(delivery_id, channel, answer))

    async def _end(self, delivery_id: Id, channel: Channel[Any], answer: Answer) -> AttemptReply:
        async with self._database.transaction() as work:
            delivery = await hold_delivery(work, delivery_id)
            if delivery is None:
                return AttemptReply(CLOSED)
            if not is_attempted_by(delivery, _execution()):
                return AttemptReply(delivery.status)
            status = await end_attempt(work, delivery, answer)
            await channel.settle(work, delivery, answer)
            # The line is locked last: another attempt that ends in it waits for this transaction.
            await record_answer(work, delivery, answer)
        return AttemptReply(status.value)

    @activity.defn(name="close_cancelled_delivery")
    async def close_cancelled_delivery(self, delivery_id: str) -> bool:
        """Close a delivery whose execution was cancelled; False when it was closed before."""
        async with self._database.transaction() as work:
            end = DeliveryStatus.CANCELLED
            return await close_execution(work, Id(delivery_id), _execution(), end)


def _execution() -> int:
    """The number at the end of the id of the execution: `delivery/<row id>/<number>`.

    0 for one from before deliveries had lines: it attempts nothing any more.
    """
    _, _, rest = execution_of(activity.info()).partition("/")
    return int(rest.partition("/")[2] or 0)


async def _sent(channel: Channel[Parcel], parcel: Parcel) -> Answer:
    try:
        return await channel.send(parcel)
    except OutboundError as error:
        end = None if error.retryable else DeliveryStatus.FAILED
        return Answer(end=end, code=error.code, message=error.message)
    except Exception:
        # Ours to mend; a delivery must not be attempted without end because of it.
        log.exception("a delivery could not be sent", channel=type(channel).__name__)
        return Answer(end=None, code="internal_error", message="The delivery could not be sent.")
