"""Notifications by mail: plain text to the address that the identity provider vouches for."""

from typing_extensions import override

from activities.deliveries.channels import Channel
from activities.deliveries.mail_links import MailLinks
from activities.deliveries.notices import UNWANTED, wanted_notification
from models.messages.deliveries.rows import DeliveryRow
from models.messages.deliveries.rules import Answer, DeliveryStatus
from models.people.users.queries import find_user
from runtime.database import UnitOfWork
from runtime.outbound.mail import Mail, MailClient, MailRefusedError

NOT_CONFIGURED = Answer(
    end=DeliveryStatus.UNDELIVERABLE,
    code="email_not_configured",
    message="No mail server is configured.",
)
NO_ADDRESS = Answer(
    end=DeliveryStatus.UNDELIVERABLE, code="no_address", message="The user has no e-mail address."
)


class MailChannel(Channel[Mail]):
    """Deliveries of notifications (`subject_id`) to users (`target_id`)."""

    def __init__(self, client: MailClient | None, links: MailLinks) -> None:
        self._client = client
        self._links = links

    @override
    async def pack(self, work: UnitOfWork, delivery: DeliveryRow) -> Mail | Answer:
        if self._client is None:
            return NOT_CONFIGURED
        notification = await wanted_notification(work, delivery.subject_id)
        if notification is None:
            return UNWANTED
        user = await find_user(work, delivery.target_id)
        if user is None or user.email is None:
            return NO_ADDRESS
        domain = self._client.server.sender.rpartition("@")[2]
        return Mail(
            to=[user.email],
            subject=notification.title,
            body=(notification.body or notification.title)
            + await self._links.text(work, notification),
            message_id=f"<{delivery.id}@{domain}>",
        )

    @override
    async def send(self, parcel: Mail) -> Answer:
        assert self._client is not None
        try:
            await self._client.send(parcel)
        except MailRefusedError as refusal:
            end = None if 400 <= refusal.reply < 500 else DeliveryStatus.FAILED
            # Its message names the address, which is not for operators.
            message = f"The mail server answered {refusal.reply}."
            return Answer(end=end, status=refusal.reply, code=refusal.code, message=message)
        return Answer(end=DeliveryStatus.DELIVERED)
