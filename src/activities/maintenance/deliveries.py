"""Deliveries for the reconciler: what is attempted has an execution, and nothing waits for ever."""

from collections.abc import Mapping
from typing import Any, Protocol

from sqlalchemy import Select, select
from typing_extensions import override

from activities.maintenance.executions import Execution
from activities.maintenance.families import (
    AbnormalEnd,
    EndKind,
    Extra,
    SweepContext,
    WorkFamily,
    WorkRow,
    next_restart,
)
from models.core.base import Id
from models.core.lifecycle import commands as lifecycle
from models.messages.deliveries.commands import close_execution, request_of
from models.messages.deliveries.rules import DeliveryChannel, DeliveryStatus
from models.messages.deliveries.starts import expire_deliveries
from models.messages.deliveries.tables import DELIVERIES, delivery
from runtime.database import UnitOfWork
from runtime.families import Family


class DeliveryRow(WorkRow, Protocol):
    """A delivery, without what it carries."""

    channel: str
    subject_id: Id
    executions: int


class Deliveries(WorkFamily[DeliveryRow]):
    """Deliveries of every channel."""

    def __init__(self) -> None:
        super().__init__("deliveries", DELIVERIES, DeliveryRow, Family.DELIVERY)

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
    async def restart(self, work: UnitOfWork, row: DeliveryRow, found: Execution | None) -> None:
        request = request_of(DeliveryChannel(row.channel), row.subject_id, row.executions)
        restarts = next_restart(found)
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


async def _expire(context: SweepContext) -> int:
    expired = 0
    while True:
        async with context.database.transaction() as work:
            ended = await expire_deliveries(work)
        if not ended:
            return expired
        expired += ended
