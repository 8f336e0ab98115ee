"""The effects of the answers of an endpoint: it is well, fails, or is given up (ADR 0057)."""

from sqlalchemy import func, update

from models.core.access.rules import MANAGERS
from models.core.base import Id
from models.messages.deliveries.commands import give_up_waiting
from models.messages.deliveries.rules import DeliveryChannel
from models.messages.notification_preferences.kinds import NotificationKind
from models.messages.notifications.commands import Notice, notify
from models.messages.webhook_endpoints.rules import DISABLED, DisabledReason, is_given_up
from models.messages.webhook_endpoints.tables import webhook_endpoint
from models.people.members.queries import members_with
from runtime.database import UnitOfWork

_endpoint = webhook_endpoint.c

_WHY = {
    DisabledReason.GONE: "It answered 410: it wants nothing more.",
    DisabledReason.FAILING: "Nothing could be delivered to it for three days.",
}


async def succeeded(work: UnitOfWork, endpoint_id: Id) -> None:
    """The endpoint has taken an event."""
    failing = _endpoint.id == endpoint_id, _endpoint.failing_since.is_not(None)
    await work.execute(update(webhook_endpoint).where(*failing).values(failing_since=None))


async def failed(work: UnitOfWork, workspace_id: Id, endpoint_id: Id) -> None:
    """The endpoint has not taken an event; after days of that it is disabled."""
    since = await work.scalar(
        update(webhook_endpoint)
        .where(_endpoint.id == endpoint_id, _endpoint.enabled)
        .values(failing_since=func.coalesce(_endpoint.failing_since, work.now))
        .returning(_endpoint.failing_since)
    )
    if is_given_up(since, work.now):
        await disable(work, workspace_id, endpoint_id, DisabledReason.FAILING)


async def disable(
    work: UnitOfWork, workspace_id: Id, endpoint_id: Id, reason: DisabledReason
) -> None:
    """Disable an endpoint and tell owners and administrators, once; what waits for it ends."""
    enabled = _endpoint.id == endpoint_id, _endpoint.enabled
    url = await work.scalar(
        update(webhook_endpoint)
        .where(*enabled)
        .values(enabled=False, disabled_at=work.now, disabled_reason=reason.value)
        .returning(_endpoint.url)
    )
    if url is None:
        return
    await give_up_waiting(work, workspace_id, DeliveryChannel.WEBHOOK, endpoint_id, DISABLED)
    notice = Notice(
        kind=NotificationKind.SYSTEM,
        title="A webhook endpoint was disabled",
        body=_WHY[reason],
        data={"webhookEndpointId": str(endpoint_id), "reason": reason.value},
        key=f"webhook-endpoint|{endpoint_id}|{work.now.isoformat()}",
    )
    managers = [
        user_id
        for role in sorted(MANAGERS)
        for user_id in await members_with(work, workspace_id, role)
    ]
    await notify(work, workspace_id, managers, notice)
