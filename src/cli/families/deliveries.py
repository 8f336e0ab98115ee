"""Deliveries, as a family of work: each attempted one has an execution, and none waits forever."""

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from sqlalchemy import Select, select
from typing_extensions import override

from activities.deliveries.attempts import DeliveryActivities
from activities.deliveries.channels import (
    Channel,
    MailChannel,
    MailLinks,
    PushChannel,
    WebhookChannel,
)
from activities.maintenance.families import (
    AbnormalEnd,
    Activities,
    EndKind,
    Execution,
    Extra,
    SweepContext,
    WorkFamily,
    WorkRow,
    next_restart,
)
from activities.parts import Parts
from models.core.base import Id
from models.core.lifecycle import commands as lifecycle
from models.messages.deliveries.commands import close_execution, request_of
from models.messages.deliveries.rules import DeliveryChannel, DeliveryStatus
from models.messages.deliveries.starts import expire_deliveries
from models.messages.deliveries.tables import DELIVERIES, delivery
from runtime.database import UnitOfWork
from runtime.temporal.families import Family, Queue
from workflows.deliveries import Delivery


class DeliveryRow(WorkRow, Protocol):
    """A delivery, without what it carries."""

    channel: str
    subject_id: Id
    executions: int


class Deliveries(WorkFamily[DeliveryRow]):
    """Deliveries of every channel."""

    name, kind, row = "deliveries", DELIVERIES, DeliveryRow
    workflows: ClassVar = {Family.DELIVERY: Delivery}

    @override
    def activities(self, parts: Parts) -> Activities:
        attempts = DeliveryActivities(parts.database, _channels(parts))
        return {
            Queue.AUTOMATION: [attempts.close_cancelled_delivery],
            Queue.IO: [attempts.attempt_delivery],
        }

    @override
    def rows(self) -> Select[Any]:
        columns = delivery.c
        of_row = (columns.id, columns.workspace_id, columns.status)
        return select(*of_row, columns.channel, columns.subject_id, columns.executions).where(
            columns.executing
        )

    @override
    def workflow_id(self, row: DeliveryRow) -> str:
        return Family.DELIVERY.workflow_id(row.id, str(row.executions))

    @override
    async def restart(self, work: UnitOfWork, row: DeliveryRow, latest: Execution | None) -> None:
        request = request_of(DeliveryChannel(row.channel), row.subject_id, row.executions)
        restarts = next_restart(latest)
        await lifecycle.start(work, Family.DELIVERY, row.workspace_id, row.id, request, restarts)

    @override
    async def close(self, context: SweepContext, row: DeliveryRow, end: AbnormalEnd) -> bool:
        cancelled = end.kind is EndKind.CANCELLED
        status = DeliveryStatus.CANCELLED if cancelled else DeliveryStatus.FAILED
        async with context.database.transaction() as work:
            return await close_execution(work, row.id, row.executions, status, end.reason)

    @override
    def extras(self, context: SweepContext) -> Mapping[str, Extra]:
        return {"deliveries_expired": lambda: _expire(context)}


def _channels(parts: Parts) -> Mapping[DeliveryChannel, Channel[Any]]:
    """The channels by which deliveries leave; a channel adds its registration here."""
    return {
        DeliveryChannel.MAIL: MailChannel(parts.mail, MailLinks(parts.keys, parts.public_url)),
        DeliveryChannel.WEBHOOK: WebhookChannel(parts.outbound, parts.keys),
        DeliveryChannel.PUSH: PushChannel(parts.keys, parts.pushers),
    }


async def _expire(context: SweepContext) -> int:
    expired = 0
    while True:
        async with context.database.transaction() as work:
            ended = await expire_deliveries(work)
        if not ended:
            return expired
        expired += ended
