"""The client of every mail that leaves the platform: SMTP to the operator's server."""

import asyncio
import socket
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP as SMTP_POLICY
from email.utils import format_datetime
from typing import ClassVar

import aiosmtplib

from runtime.clock import utc_now
from runtime.configuration.sections import MailServer
from runtime.outbound.client import Resolver, SystemResolver, permitted_addresses
from runtime.outbound.errors import ConnectionFailedError, OutboundError, OutboundTimeoutError
from runtime.outbound_policy import OutboundPolicy

SECONDS = 60.0
"""Of one whole delivery, the connection included."""
QUIT_SECONDS = 2.0


class MailRefusedError(OutboundError):
    """The server said no: 4xx may be repeated, 5xx is final (RFC 5321, 4.2.1)."""

    code: ClassVar[str] = "mail_refused"

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.reply = status


class InvalidMailError(OutboundError):
    """The mail cannot be handed to this server as it is."""

    code = "invalid_mail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """One mail of plain text; the same `message_id` says that it is the same mail again.

    With `whole` no recipient gets it while the server puts off one of them, so that a repetition
    reaches none twice.
    """

    to: Sequence[str]
    subject: str
    body: str
    message_id: str
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Refusal:
    address: str
    status: int


@dataclass(frozen=True, slots=True)
class Receipt:
    """The recipients that the server took, and the ones it refused."""

    accepted: Sequence[str]
    refused: Sequence[Refusal]


class MailClient:
    """Hands mails to one server, each over a connection of its own. Safe to share by tasks."""

    def __init__(
        self,
        server: MailServer,
        policy: OutboundPolicy,
        *,
        resolver: Resolver | None = None,
        tls: ssl.SSLContext | None = None,
        seconds: float = SECONDS,
    ) -> None:
        self.server = server
        self._policy = policy
        self._resolver = resolver or SystemResolver()
        self._tls = tls or ssl.create_default_context()
        self._seconds = seconds

    async def send(self, mail: Mail) -> Receipt:
        """Hand a mail over. Raises the subclasses of OutboundError; they hold no secret."""
        smtp = self._client()
        try:
            with _translated_errors(self.server.host):
                content = _content(mail, self.server)
                async with asyncio.timeout(self._seconds):
                    await smtp.connect(sock=await self._connection())
                    await self._introduce(smtp)
                    receipt = await self._hand_over(smtp, mail, content)
            # The server has taken the mail: an error of the goodbye must not send it again.
            with suppress(aiosmtplib.SMTPException, OSError):
                await smtp.quit(timeout=QUIT_SECONDS)
            return receipt
        finally:
            smtp.close()

    async def probe(self) -> None:
        """Connect and log in, and send nothing. Raises as `send` does."""
        smtp = self._client()
        try:
            with _translated_errors(self.server.host):
                async with asyncio.timeout(self._seconds):
                    await smtp.connect(sock=await self._connection())
                    await self._introduce(smtp)
            with suppress(aiosmtplib.SMTPException, OSError):
                await smtp.quit(timeout=QUIT_SECONDS)
        finally:
            smtp.close()

    def _client(self) -> aiosmtplib.SMTP:
        server = self.server
        return aiosmtplib.SMTP(
            hostname=server.host,
            local_hostname=server.sender.rpartition("@")[2],
            use_tls=server.tls,
            # By default aiosmtplib upgrades by itself; `_introduce` decides it by the settings.
            start_tls=False,
            tls_context=self._tls,
            timeout=self._seconds,
        )

    async def _introduce(self, smtp: aiosmtplib.SMTP) -> None:
        """Agree on TLS, then log in."""
        server = self.server
        await smtp.ehlo()
        offered = smtp.supports_extension("starttls")
        if server.starttls and not offered:
            raise InvalidMailError("The mail server does not support STARTTLS, which is required.")
        if server.starttls is not False and offered:
            await smtp.starttls()
        if server.username is not None:
            await smtp.login(server.username, server.password or "")

    async def _hand_over(self, smtp: aiosmtplib.SMTP, mail: Mail, content: bytes) -> Receipt:
        await smtp.mail(self.server.sender)
        accepted: list[str] = []
        refused: list[Refusal] = []
        for address in mail.to:
            try:
                await smtp.rcpt(address)
                accepted.append(address)
            except aiosmtplib.SMTPRecipientRefused as refusal:
                refused.append(Refusal(address, refusal.code))
        put_off = [refusal for refusal in refused if refusal.status < 500]
        if not accepted or (mail.whole and put_off):
            raise _refused_by_all(put_off or refused)
        await smtp.data(content)
        return Receipt(accepted, refused)

    async def _connection(self) -> socket.socket:
        """A connection to the first address that answers; all of them must be permitted."""
        server, loop = self.server, asyncio.get_running_loop()
        addresses = await permitted_addresses(
            self._resolver, self._policy, server.host, server.port
        )
        for address in addresses:
            family = socket.AF_INET if address.version == 4 else socket.AF_INET6
            connection = socket.socket(family, socket.SOCK_STREAM)
            connection.setblocking(False)
            try:
                async with asyncio.timeout(self._policy.connect_seconds):
                    await loop.sock_connect(connection, (str(address), server.port))
            except OSError:  # of which a time-out is one
                connection.close()
            except BaseException:
                connection.close()
                raise
            else:
                return connection
        raise ConnectionFailedError(server.host)


@contextmanager
def _translated_errors(host: str) -> Iterator[None]:
    """Our error for one of aiosmtplib's; its text is left out, because it may quote the mail."""
    try:
        yield
    except TimeoutError:
        raise OutboundTimeoutError(host) from None
    except aiosmtplib.SMTPResponseException as error:
        raise MailRefusedError(error.code, f"The mail server returned {error.code}.") from None
    except aiosmtplib.SMTPNotSupported:
        raise InvalidMailError("The mail server does not support password login.") from None
    except (aiosmtplib.SMTPException, OSError):
        raise ConnectionFailedError(host) from None


def _refused_by_all(refused: Sequence[Refusal]) -> MailRefusedError:
    named = ", ".join(f"{refusal.address} ({refusal.status})" for refusal in refused)
    return MailRefusedError(refused[0].status, f"The mail server rejected {named}.")


def _content(mail: Mail, server: MailServer) -> bytes:
    """The mail as it is sent. Raises InvalidMailError for an address that is none."""
    # Servers without 8BITMIME would refuse other bytes.
    message = EmailMessage(policy=SMTP_POLICY.clone(cte_type="7bit"))
    message["From"] = Address(server.sender_name, addr_spec=server.sender)
    message["To"] = [_address(address) for address in mail.to]
    message["Subject"] = _one_line(mail.subject)
    message["Date"] = format_datetime(utc_now())
    message["Message-ID"] = mail.message_id
    # Asks other servers to send no automatic reply (RFC 3834).
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(mail.body, charset="utf-8")
    return message.as_bytes()


def _one_line(text: str) -> str:
    """A header's text: what could end the header becomes a space."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def _address(text: str) -> Address:
    try:
        text.encode("ascii")
        return Address(addr_spec=text)
    except (ValueError, IndexError):  # what the parser of the standard library raises
        raise InvalidMailError(f"{text} is not a valid ASCII email address.") from None
