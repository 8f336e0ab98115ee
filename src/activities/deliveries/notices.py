"""The notification that a delivery carries, as long as its user has not seen it elsewhere."""

from models.core.base import Id
from models.messages.deliveries.rules import Answer, DeliveryStatus
from models.messages.notifications.queries import find_notification
from models.messages.notifications.rows import NotificationRow
from models.people.members.queries import role_of
from runtime.database import UnitOfWork

UNWANTED = Answer(
    end=DeliveryStatus.UNDELIVERABLE,
    code="unwanted",
    message="The notification was read before it was sent, or its user left the workspace.",
)


async def wanted_notification(work: UnitOfWork, notification_id: Id) -> NotificationRow | None:
    """The notification, unless it is read by now or its user is no member any more."""
    found = await find_notification(work, notification_id)
    if found is None or found.read_at is not None:
        return None
    role = await role_of(work, found.workspace_id, found.user_id)
    return None if role is None else found
