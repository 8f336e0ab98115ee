"""Notifications by push, each to one device of its user; dead tokens revoke their device."""

from collections.abc import Mapping

from typing_extensions import override

from activities.deliveries.channels import Channel
from activities.deliveries.notices import UNWANTED, wanted_notification
from activities.deliveries.push.messages import DEAD_TOKEN, Push, Pusher, shown
from models.messages.deliveries.rows import DeliveryRow
from models.messages.deliveries.rules import Answer, DeliveryStatus
from models.messages.push_devices.commands import forget_device
from models.messages.push_devices.queries import find_device, token_of
from models.messages.push_devices.rules import PushProvider
from runtime.crypto import KeyRing, UnreadableError
from runtime.database import UnitOfWork

REVOKED = Answer(
    end=DeliveryStatus.UNDELIVERABLE, code="device_revoked", message="The device is not registered."
)
NOT_CONFIGURED = Answer(
    end=DeliveryStatus.UNDELIVERABLE,
    code="push_not_configured",
    message="The provider of the device is not configured.",
)
UNREADABLE = Answer(
    end=DeliveryStatus.UNDELIVERABLE,
    code="unreadable_token",
    message="The token was stored under a secret that is not configured.",
)


class PushChannel(Channel[Push]):
    """Deliveries of notifications (`subject_id`) to devices (`target_id`)."""

    def __init__(self, keys: KeyRing, pushers: Mapping[PushProvider, Pusher]) -> None:
        self._keys = keys
        self._pushers = pushers

    @override
    async def pack(self, work: UnitOfWork, delivery: DeliveryRow) -> Push | Answer:
        device = await find_device(work, delivery.target_id)
        if device is None:
            return REVOKED
        provider = PushProvider(device.provider)
        if provider not in self._pushers:
            return NOT_CONFIGURED
        notification = await wanted_notification(work, delivery.subject_id)
        if notification is None or notification.user_id != device.user_id:
            return UNWANTED
        try:
            token = token_of(self._keys, device)
        except UnreadableError:
            return UNREADABLE
        title, body, data = shown(notification)
        return Push(delivery.id, provider, token, title, body, data)

    @override
    async def send(self, parcel: Push) -> Answer:
        return await self._pushers[parcel.provider].push(parcel)

    @override
    async def settle(self, work: UnitOfWork, delivery: DeliveryRow, answer: Answer) -> None:
        if answer.code == DEAD_TOKEN:
            await forget_device(work, delivery.target_id)
