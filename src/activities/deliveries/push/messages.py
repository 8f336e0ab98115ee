"""The pushes, and the arguments and answers of an adapter."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from models.core.base import Id
from models.messages.deliveries.rules import Answer, DeliveryStatus
from models.messages.notifications.rows import NotificationRow
from models.messages.push_devices.rules import PushProvider

TITLE_BYTES, BODY_BYTES = 400, 1_600
"""The most that is shown: every provider takes some 4 KB, of which JSON may use several for one."""
LIFETIME_SECONDS = 24 * 3_600
"""The time a provider keeps a push for a device that is off."""

DEAD_TOKEN = "dead_token"  # noqa: S105  # a code
"""The code of an answer that says the token reaches nobody any more."""


@dataclass(frozen=True, slots=True)
class Push:
    """One push to one device; `id` is the same at every attempt."""

    id: Id
    provider: PushProvider
    token: str = field(repr=False)
    title: str
    body: str
    data: Mapping[str, str]


class Pusher(Protocol):
    """Carries pushes to the devices of one provider."""

    async def push(self, push: Push) -> Answer:
        """Hand a push to the provider. Raises OutboundError when there is no answer."""


def shown(notification: NotificationRow) -> tuple[str, str, dict[str, str]]:
    """The title, the body and the data of a notification as devices get them."""
    ids = {
        "notificationId": notification.id,
        "workspaceId": notification.workspace_id,
        "itemId": notification.item_id,
        "recordId": notification.record_id,
        "runId": notification.run_id,
    }
    data = {name: str(value) for name, value in ids.items() if value is not None}
    title, body = _cut(notification.title, TITLE_BYTES), _cut(notification.body, BODY_BYTES)
    return title, body, {"kind": notification.kind, **data}


def delivered(status: int) -> Answer:
    """The provider took it."""
    return Answer(end=DeliveryStatus.DELIVERED, status=status)


def dead(status: int | None, reason: str) -> Answer:
    """The token reaches nobody any more."""
    return Answer(end=DeliveryStatus.UNDELIVERABLE, status=status, code=DEAD_TOKEN, message=reason)


def again(status: int, code: str, retry_after: float | None = None) -> Answer:
    """The provider does not take it now."""
    message = f"The provider answered {status}."
    return Answer(end=None, status=status, code=code, message=message, retry_after=retry_after)


def refused(status: int, code: str) -> Answer:
    """The provider will never take it as it is."""
    message = f"The provider answered {status} ({code})."
    return Answer(end=DeliveryStatus.FAILED, status=status, code=code, message=message)


def _cut(text: str, most: int) -> str:
    encoded = text.encode()
    if len(encoded) <= most:
        return text
    return encoded[: most - 3].decode(errors="ignore") + "…"
