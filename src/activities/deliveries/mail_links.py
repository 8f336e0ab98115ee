"""Links of mails to the console: the page of what a mail is about, and the one to decide on."""

from dataclasses import dataclass

from models.automation.waits.decision_links import decision_path, link_to
from models.automation.waits.resume_urls import Address
from models.core.page_addresses import absolute
from models.messages.notification_preferences.kinds import NotificationKind
from models.messages.notifications.pages import page_of
from models.messages.notifications.rows import NotificationRow
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork


@dataclass(frozen=True, slots=True)
class MailLinks:
    """Makes links; without the public URL there are none, for a path leads nowhere from a mail."""

    keys: KeyRing
    public_url: str | None

    async def text(self, work: UnitOfWork, notification: NotificationRow) -> str:
        """The end of a mail: empty when the notification is about no page."""
        path = page_of(notification)
        if path is None or self.public_url is None:
            return ""
        decision = await self._decision(work, notification)
        return f"{decision}\n\nLook at it in the console:\n{absolute(self.public_url, path)}\n"

    async def _decision(self, work: UnitOfWork, notification: NotificationRow) -> str:
        if notification.kind != NotificationKind.APPROVAL_REQUEST or notification.run_id is None:
            return ""
        node_id, scope_key = notification.data["nodeId"], notification.data["scopeKey"]
        link = await link_to(
            work,
            notification.workspace_id,
            Address(notification.run_id, node_id, scope_key),
            notification.user_id,
            notification.created_at,
        )
        path = decision_path(self.keys, link)
        return (
            "\n\nApprove or reject it here, without signing in:\n"
            f"{absolute(self.public_url, path)}\n"
            "This link is for you alone. It works once, until"
            f" {link.expires_at:%d %B %Y, %H:%M} UTC."
        )
