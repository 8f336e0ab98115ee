"""One attempt of a delivery: read the message, send it, write the answer (ADR 0055).

Channels are registered by their names: webhooks, mails and pushes.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import structlog
from temporalio import activity
from temporalio.exceptions import ApplicationError
from typing_extensions import override

from activities.database_errors import awaiting_database
from activities.deliveries.push import DEAD_TOKEN, Push, Pusher, push_content
from activities.endings import CLOSED
from activities.heartbeats import heartbeats
from activities.webhook_calls import Receiver, WebhookCall
from models.automation.waits.links import NodeAddress, decision_link_to, decision_path
from models.core.base import Id
from models.core.lifecycle.rules import REPORTED_FAILURES
from models.core.page_addresses import absolute, notification_preferences_page
from models.messages.deliveries import commands
from models.messages.deliveries.lines import record_answer
from models.messages.deliveries.rules import Answer, DeliveryChannel, DeliveryStatus
from models.messages.notification_preferences import NotificationKind
from models.messages.notifications.queries import NotificationRow, find_notification, page_of
from models.messages.push_devices import PushProvider, find_device, forget_device, token_of
from models.messages.webhook_endpoints import deliveries
from models.messages.webhook_endpoints.rules import DISABLED, GONE, DisabledReason
from models.messages.webhook_endpoints.store import existing_endpoint, secrets_of
from models.people.members import role_of
from models.people.users import find_user
from models.people.workspaces import name_of
from runtime.crypto import KeyRing, UnreadableError
from runtime.database import Database, UnitOfWork
from runtime.outbound.client import OutboundClient
from runtime.outbound.errors import OutboundError
from runtime.outbound.mail import Mail, MailClient, MailRefusedError
from runtime.temporal.executions import execution_of

Parcel = TypeVar("Parcel")


class Channel(ABC, Generic[Parcel]):
    """A channel: the way its deliveries are sent."""

    @abstractmethod
    async def pack(self, work: UnitOfWork, delivery: commands.DeliveryRow) -> Parcel | Answer:
        """The parcel to send, read inside the transaction that begins an attempt.

        An `Answer` instead ends the attempt without sending, for example because the target was
        deleted.
        """

    @abstractmethod
    async def send(self, parcel: Parcel) -> Answer:
        """Send it, outside of any transaction. Receivers may get the same parcel twice."""

    async def settle(
        self, work: UnitOfWork, delivery: commands.DeliveryRow, answer: Answer
    ) -> None:
        """Act on an answer, in the transaction that ends the attempt; mostly do nothing."""
        del work, delivery, answer


class WebhookChannel(Channel[WebhookCall]):
    """Deliveries of events (`subject_id`) to endpoints (`target_id`)."""

    def __init__(self, outbound: OutboundClient, keys: KeyRing) -> None:
        self._outbound = outbound
        self._keys = keys

    @override
    async def pack(self, work: UnitOfWork, delivery: commands.DeliveryRow) -> WebhookCall | Answer:
        endpoint = await existing_endpoint(work, delivery.workspace_id, delivery.target_id)
        if endpoint is None or not endpoint.enabled:
            return DISABLED
        receiver = Receiver(endpoint.url, secrets_of(self._keys, endpoint, work.now))
        return WebhookCall(receiver, str(delivery.subject_id), delivery.input)

    @override
    async def send(self, parcel: WebhookCall) -> Answer:
        response = await parcel.send(self._outbound)
        status = response.status
        if 200 <= status < 300:
            return Answer(end=DeliveryStatus.DELIVERED, status=status)
        message = f"The endpoint returned {status}."
        end = DeliveryStatus.UNDELIVERABLE if status == GONE else None
        return Answer(
            end=end,
            status=status,
            code=f"http_{status}",
            message=message,
            retry_after=response.retry_after,
        )

    @override
    async def settle(
        self, work: UnitOfWork, delivery: commands.DeliveryRow, answer: Answer
    ) -> None:
        if answer is DISABLED:
            return
        if answer.end is DeliveryStatus.DELIVERED:
            await deliveries.endpoint_succeeded(work, delivery.target_id)
        elif answer.status == GONE:
            reason = DisabledReason.GONE
            await deliveries.disable_endpoint(
                work, delivery.workspace_id, delivery.target_id, reason
            )
        else:
            await deliveries.endpoint_failed(work, delivery.workspace_id, delivery.target_id)


UNWANTED = Answer(
    end=DeliveryStatus.UNDELIVERABLE,
    code="unwanted",
    message="The notification was already read, or its user left the workspace.",
)


async def wanted_notification(work: UnitOfWork, notification_id: Id) -> NotificationRow | None:
    """The notification, unless it is read by now or its user is no member any more."""
    found = await find_notification(work, notification_id)
    if found is None or found.read_at is not None:
        return None
    role = await role_of(work, found.workspace_id, found.user_id)
    return None if role is None else found


@dataclass(frozen=True, slots=True)
class MailLinks:
    """Makes links; without the public URL there are none, for a path leads nowhere from a mail."""

    keys: KeyRing
    public_url: str | None

    async def text(self, work: UnitOfWork, notification: NotificationRow) -> str:
        """The end of a mail: the ways to decide, to the page, and to the preferences."""
        if self.public_url is None:
            return ""
        place = notification.workspace_id
        end = await self._decision(work, notification)
        if path := page_of(notification):
            end += f"\n\nOpen in the console:\n{absolute(self.public_url, path)}"
        preferences = absolute(self.public_url, notification_preferences_page(place))
        return f"{end}\n\n-- \n{await name_of(work, place)}\nEmail preferences: {preferences}\n"

    async def _decision(self, work: UnitOfWork, notification: NotificationRow) -> str:
        if notification.kind != NotificationKind.APPROVAL_REQUEST or notification.run_id is None:
            return ""
        node_id, scope_key = notification.data["nodeId"], notification.data["scopeKey"]
        link = await decision_link_to(
            work,
            notification.workspace_id,
            NodeAddress(notification.run_id, node_id, scope_key),
            notification.user_id,
            notification.created_at,
        )
        path = decision_path(self.keys, link)
        return (
            "\n\nApprove or reject without signing in:\n"
            f"{absolute(self.public_url, path)}\n"
            "This link is personal. It can be used once, until"
            f" {link.expires_at:%d %B %Y, %H:%M} UTC."
        )


MAIL_NOT_CONFIGURED = Answer(
    end=DeliveryStatus.UNDELIVERABLE,
    code="email_not_configured",
    message="No mail server is configured.",
)
NO_ADDRESS = Answer(
    end=DeliveryStatus.UNDELIVERABLE, code="no_address", message="The user has no email address."
)


class MailChannel(Channel[Mail]):
    """Deliveries of notifications (`subject_id`) to users (`target_id`)."""

    def __init__(self, client: MailClient | None, links: MailLinks) -> None:
        self._client = client
        self._links = links

    @override
    async def pack(self, work: UnitOfWork, delivery: commands.DeliveryRow) -> Mail | Answer:
        if self._client is None:
            return MAIL_NOT_CONFIGURED
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
            message = f"The mail server returned {refusal.reply}."
            return Answer(end=end, status=refusal.reply, code=refusal.code, message=message)
        return Answer(end=DeliveryStatus.DELIVERED)


REVOKED = Answer(
    end=DeliveryStatus.UNDELIVERABLE, code="device_revoked", message="The device is not registered."
)

PUSH_NOT_CONFIGURED = Answer(
    end=DeliveryStatus.UNDELIVERABLE,
    code="push_not_configured",
    message="The push provider is not configured.",
)

UNREADABLE_TOKEN = Answer(
    end=DeliveryStatus.UNDELIVERABLE,
    code="unreadable_token",
    message="The token was encrypted with a secret that is not configured.",
)


class PushChannel(Channel[Push]):
    """Deliveries of notifications (`subject_id`) to devices (`target_id`)."""

    def __init__(self, keys: KeyRing, pushers: Mapping[PushProvider, Pusher]) -> None:
        self._keys = keys
        self._pushers = pushers

    @override
    async def pack(self, work: UnitOfWork, delivery: commands.DeliveryRow) -> Push | Answer:
        device = await find_device(work, delivery.target_id)
        if device is None:
            return REVOKED
        provider = PushProvider(device.provider)
        if provider not in self._pushers:
            return PUSH_NOT_CONFIGURED
        notification = await wanted_notification(work, delivery.subject_id)
        if notification is None or notification.user_id != device.user_id:
            return UNWANTED
        try:
            token = token_of(self._keys, device)
        except UnreadableError:
            return UNREADABLE_TOKEN
        title, body, data = push_content(notification)
        return Push(delivery.id, provider, token, title, body, data)

    @override
    async def send(self, parcel: Push) -> Answer:
        return await self._pushers[parcel.provider].push(parcel)

    @override
    async def settle(
        self, work: UnitOfWork, delivery: commands.DeliveryRow, answer: Answer
    ) -> None:
        if answer.code == DEAD_TOKEN:
            await forget_device(work, delivery.target_id)


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
            delivery = await commands.hold_delivery(work, delivery_id)
            if delivery is None:
                return AttemptReply(CLOSED)
            if not commands.is_attempted_by(delivery, _execution()):
                return AttemptReply(delivery.status)
            channel = self._channels[DeliveryChannel(delivery.channel)]
            await commands.begin_attempt(work, delivery)
            # In the transaction of the begin, so that the message is that of the counted attempt.
            parcel = await channel.pack(work, delivery)
        # Between the transactions: a slow receiver must not hold a lock.
        answer = parcel if isinstance(parcel, Answer) else await _sent(channel, parcel)
        # A retry of the activity would send once more, only because the database was away.
        return await awaiting_database(lambda: self._end(delivery_id, channel, answer))

    async def _end(self, delivery_id: Id, channel: Channel[Any], answer: Answer) -> AttemptReply:
        async with self._database.transaction() as work:
            delivery = await commands.hold_delivery(work, delivery_id)
            if delivery is None:
                return AttemptReply(CLOSED)
            if not commands.is_attempted_by(delivery, _execution()):
                return AttemptReply(delivery.status)
            status = await commands.end_attempt(work, delivery, answer)
            await channel.settle(work, delivery, answer)
            # The line is locked last: another attempt that ends in it waits for this transaction.
            await record_answer(work, delivery, answer)
        return AttemptReply(status.value)

    @activity.defn(name="close_cancelled_delivery")
    async def close_cancelled_delivery(self, delivery_id: str) -> bool:
        """Close a delivery whose execution was cancelled; False when it was closed before."""
        async with self._database.transaction() as work:
            end = DeliveryStatus.CANCELLED
            return await commands.close_execution(work, Id(delivery_id), _execution(), end)


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
