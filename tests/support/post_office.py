"""A real SMTP server on loopback; a recipient's address says how it is treated."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any

from aiosmtpd.smtp import SMTP

from runtime.configuration.sections import MailServer

SENDER = "platform@sender.test"


@dataclass(frozen=True, slots=True)
class Delivered:
    """One mail the server took."""

    to: list[str]
    content: bytes

    @property
    def message(self) -> EmailMessage:
        message = message_from_bytes(self.content, policy=default)
        assert isinstance(message, EmailMessage)
        return message


@dataclass
class PostOffice:
    """`refused-…` is answered 550, `later-…` 451 once, `never-…` 451 always.

    `spam-…` is answered 554 after the content, `lost-…` not at all once, `silent-…` never.
    """

    port: int = 0
    mails: list[Delivered] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)

    @property
    def server(self) -> MailServer:
        return MailServer.parse(f"smtp://127.0.0.1:{self.port}?starttls=off", f"Us <{SENDER}>")

    def to(self, address: str) -> list[Delivered]:
        """The mails this recipient got."""
        return [mail for mail in self.mails if address in mail.to]

    async def handle_RCPT(  # noqa: N802  # the name aiosmtpd calls
        self, _server: Any, _session: Any, envelope: Any, address: str, _options: Any
    ) -> str:
        self.seen[address] += 1
        kind = address.partition("-")[0]
        if kind == "refused":
            return "550 5.1.1 No such user"
        if kind == "never" or (kind == "later" and self.seen[address] == 1):
            return "451 4.7.1 Come back later"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(  # noqa: N802  # the name aiosmtpd calls
        self, server: Any, _session: Any, envelope: Any
    ) -> str:
        kind = envelope.rcpt_tos[0].partition("-")[0]
        if kind == "spam":
            return "554 5.7.1 We do not want this"
        if kind == "silent":
            await asyncio.sleep(3_600)
        self.mails.append(Delivered(list(envelope.rcpt_tos), envelope.content))
        if kind == "lost" and self.seen[envelope.rcpt_tos[0]] == 1:
            server.transport.abort()
        return "250 OK"


@asynccontextmanager
async def open_post_office() -> AsyncIterator[PostOffice]:
    """The server, until the block ends."""
    logging.getLogger("mail.log").setLevel(logging.CRITICAL)
    office = PostOffice()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: SMTP(office, hostname="post.test", loop=loop), "127.0.0.1", 0
    )
    office.port = server.sockets[0].getsockname()[1]
    yield office
    server.close()
