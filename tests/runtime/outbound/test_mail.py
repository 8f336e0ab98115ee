"""Mail: the same guard as HTTP, TLS where it is due, and no word of a password."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, AuthResult

from runtime.configuration.sections import MailServer
from runtime.outbound.errors import (
    ConnectionFailedError,
    OutboundBlockedError,
    OutboundTimeoutError,
)
from runtime.outbound.mail import InvalidMailError, Mail, MailClient, MailRefusedError
from runtime.outbound_policy import OutboundPolicy
from tests.runtime.outbound.servers import NAME, Names
from tests.support.post_office import PostOffice, open_post_office

LOOPBACK = OutboundPolicy.from_entries(["127.0.0.0/8"])
SENDER = "us@sender.test"
MAIL = Mail(to=["a@b.test"], subject="Hi", body="Words", message_id="<1@sender.test>")


@pytest.fixture
async def office() -> AsyncIterator[PostOffice]:
    async with open_post_office() as office:
        yield office


async def test_a_private_server_is_blocked_unless_it_is_allowed(office: PostOffice) -> None:
    with pytest.raises(OutboundBlockedError):
        await MailClient(office.server, OutboundPolicy()).send(MAIL)
    assert (await MailClient(office.server, LOOPBACK).send(MAIL)).accepted == ["a@b.test"]
    assert len(office.mails) == 1


async def test_a_name_with_one_private_address_is_blocked(names: Names) -> None:
    names.answers["mail.test"] = [["93.184.216.34", "10.0.0.1"]]
    server = MailServer.parse("smtp://mail.test:25", SENDER)
    with pytest.raises(OutboundBlockedError):
        await MailClient(server, OutboundPolicy(), resolver=names).send(MAIL)


async def test_a_closed_port_is_a_failed_connection() -> None:
    server = MailServer.parse("smtp://127.0.0.1:1", SENDER)
    with pytest.raises(ConnectionFailedError) as failed:
        await MailClient(server, LOOPBACK).send(MAIL)
    assert failed.value.retryable


async def test_a_server_that_says_nothing_is_a_timeout() -> None:
    async def silence(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(3_600)
        writer.close()

    listening = await asyncio.start_server(silence, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    server = MailServer.parse(f"smtp://127.0.0.1:{port}", SENDER)
    with pytest.raises(OutboundTimeoutError):
        await MailClient(server, LOOPBACK, seconds=0.3).send(MAIL)
    listening.close()


async def test_a_greeting_can_be_a_refusal() -> None:
    async def busy(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"421 4.3.2 Too many connections\r\n")
        await writer.drain()
        writer.close()

    listening = await asyncio.start_server(busy, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    server = MailServer.parse(f"smtp://127.0.0.1:{port}", SENDER)
    with pytest.raises(MailRefusedError) as refused:
        await MailClient(server, LOOPBACK).send(MAIL)
    assert refused.value.reply == 421
    listening.close()


# ---- TLS and passwords


class Accounts:
    """Takes one password and keeps what arrives."""

    def __init__(self) -> None:
        self.mails: list[bytes] = []

    def check(
        self, _server: Any, _session: Any, _envelope: Any, _how: str, data: Any
    ) -> AuthResult:
        good = (data.login, data.password) == (b"me@b", b"p@ss w\xc3\xb6rd")
        return AuthResult(success=good, handled=False)

    async def handle_DATA(  # noqa: N802  # the name aiosmtpd calls
        self, _server: Any, _session: Any, envelope: Any
    ) -> str:
        self.mails.append(envelope.content)
        return "250 OK"


Open = Callable[..., Awaitable[int]]


@pytest.fixture
async def listen(certificate: Path) -> AsyncIterator[Open]:
    """Start a server with a certificate for NAME; gives its port."""
    servers: list[asyncio.Server] = []
    loop = asyncio.get_running_loop()

    async def start(accounts: Accounts, *, implicit: bool = False, offered: bool = True) -> int:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate)
        server = await loop.create_server(
            lambda: SMTP(
                accounts,
                hostname=NAME,
                loop=loop,
                tls_context=context if offered and not implicit else None,
                auth_require_tls=not implicit,
                authenticator=accounts.check,
            ),
            "127.0.0.1",
            0,
            ssl=context if implicit else None,
        )
        servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    yield start
    for server in servers:
        server.close()


def client(url: str, names: Names, certificate: Path | None) -> MailClient:
    names.answers[NAME] = [["127.0.0.1"]]
    context = ssl.create_default_context()
    if certificate is not None:
        context.load_verify_locations(certificate)
    return MailClient(MailServer.parse(url, SENDER), LOOPBACK, resolver=names, tls=context)


ACCOUNT = "me%40b:p%40ss%20w%C3%B6rd@"


@pytest.mark.parametrize("scheme", ["smtp", "smtps"])
async def test_a_password_is_sent_through_tls(
    listen: Open,
    names: Names,
    certificate: Path,
    scheme: str,
) -> None:
    accounts = Accounts()
    port = await listen(accounts, implicit=scheme == "smtps")
    await client(f"{scheme}://{ACCOUNT}{NAME}:{port}", names, certificate).send(MAIL)
    assert len(accounts.mails) == 1


async def test_a_wrong_password_is_refused_for_good_and_not_told(
    listen: Open,
    names: Names,
    certificate: Path,
) -> None:
    port = await listen(Accounts())
    with pytest.raises(MailRefusedError) as refused:
        await client(f"smtp://me:t0psecret@{NAME}:{port}", names, certificate).send(MAIL)
    assert (refused.value.reply, refused.value.message) == (535, "The mail server returned 535.")


async def test_a_password_is_not_sent_without_tls(listen: Open, names: Names) -> None:
    accounts = Accounts()
    port = await listen(accounts, offered=False)
    with pytest.raises(InvalidMailError):
        await client(f"smtp://{ACCOUNT}{NAME}:{port}", names, None).send(MAIL)
    assert accounts.mails == []


@pytest.mark.parametrize("url", ["smtp://{}:{}", "smtps://{}:{}"])
async def test_a_certificate_of_an_unknown_authority_is_not_trusted(
    listen: Open, names: Names, url: str
) -> None:
    accounts = Accounts()
    port = await listen(accounts, implicit=url.startswith("smtps"))
    with pytest.raises(ConnectionFailedError):
        await client(url.format(NAME, port), names, None).send(MAIL)
    assert accounts.mails == []


# ---- the operator's URL


def test_urls_of_mail_servers_are_read() -> None:
    server = MailServer.parse("smtps://u%40x:p%2F%3A@mail.test", "Us <us@sender.test>")
    assert server == MailServer(
        host="mail.test",
        port=465,
        sender="us@sender.test",
        sender_name="Us",
        tls=True,
        starttls=False,
        username="u@x",
        password="p/:",
    )
    assert "p/:" not in repr(server)
    plain = MailServer.parse("smtp://mail.test", "us@sender.test")
    assert (plain.port, plain.tls, plain.starttls, plain.username) == (587, False, None, None)
    assert MailServer.parse("smtp://u:p@mail.test", SENDER).starttls is True
    assert MailServer.parse("smtp://u:p@mail.test?starttls=off", SENDER).starttls is False


@pytest.mark.parametrize(
    ("url", "sender"),
    [
        ("http://mail.test", SENDER),
        ("smtp://", SENDER),
        ("smtp://mail.test/path", SENDER),
        ("smtp://mail.test?starttls=perhaps", SENDER),
        ("smtp://mail.test?other=1", SENDER),
        ("smtp://user:t0p#secret@mail.test", SENDER),
        ("smtp://user:t0p/secret@mail.test", SENDER),
        ("smtp://mail.test", "nobody"),
        ("smtp://mail.test", "ü@sender.test"),
    ],
)
def test_urls_that_cannot_be_meant_are_refused(url: str, sender: str) -> None:
    with pytest.raises(ValueError, match=r"must be|is one of") as refused:
        MailServer.parse(url, sender)
    assert "t0p" not in str(refused.value)
    assert "secret" not in str(refused.value)
