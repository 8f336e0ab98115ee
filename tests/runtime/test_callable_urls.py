"""What is refused before a call is also refused when it is made, and nothing else."""

import json
from collections.abc import Callable
from typing import Any

import pydantic
import pytest

from models.automation.automations.rules.graph.configs import (
    HttpRequestConfig,
    SendEmailConfig,
    SendWebhookConfig,
)
from models.messages.push_devices import PushProvider, token_problem
from models.messages.webhook_endpoints.store import CreateWebhookEndpoint
from models.sources.connections.providers import (
    HttpConnection,
    MysqlConnection,
    PostgresqlConnection,
    S3Connection,
    SftpConnection,
    WebdavConnection,
)
from models.workspace.model_settings import PutModelSettings
from runtime.configuration.sections import IdentitySettings, MailServer, ProviderSettings
from runtime.outbound.client import OutboundClient
from runtime.outbound.errors import InvalidUrlError
from runtime.outbound.messages import parse_url
from runtime.outbound_policy import (
    Allowance,
    OutboundPolicy,
    canonical_host,
    host_name_problem,
    is_host,
    url_problem,
)


@pytest.mark.parametrize(
    "text",
    [
        "", "example.com", "ftp://a/", "http://", "http://[::1", "http://a]/", "http://a:99999/",
        "http://a:x/", "http://a:22/", "http://a:0/", "http://u:p@a/", "http://a@/", "http://a..b/",
        "http://-a.b/", "http://a%41b/", "http://a.example\\@127.0.0.1/",
        "http://" + "a" * 64 + ".example/", "http://bücher.example:22/",
    ],
)  # fmt: skip
def test_urls_that_can_never_be_called(text: str) -> None:
    assert url_problem(text)
    with pytest.raises(InvalidUrlError):
        parse_url(text)


@pytest.mark.parametrize(
    "text",
    [
        "https://a.example", "http://localhost:8080/", "http://127.0.0.1/", "http://10.0.0.1:81/x",
        "http://[::1]:8080/", "http://[fe80::1%25lo]/", "http://under_score.example./",
        "http://a:/x", "http://a?b=[c]", "http://a/b:99999/@c#http://d:0", "http://bücher.example/",
    ],
)  # fmt: skip
def test_the_policy_decides_which_urls_may_be_called(text: str) -> None:
    assert url_problem(text) is None
    parse_url(text)


NO_HOSTS = [
    "..", "a..b", ".a", "a..", "a" * 64, "a." * 127 + "b", "-", "-a.b", "a-.b", "a.-b", "xn--a",
    "1.2.3.4.5", "256.1.1.1", "a.123", "1.2.3.4%x", "a%b", "fe80::1%", "1::2::3", ":",
]  # fmt: skip
"""Spelled so that the form of no field refuses them before."""

_SERVER = {"database": "d", "user": "u"}
_SFTP = {"username": "u", "hostKey": "ssh-ed25519 AAAA"}


def _model(host: str) -> object:
    return PutModelSettings.model_validate({"baseUrl": f"http://{host}/", "model": "m"})


DOORS: dict[str, Callable[[str], Any]] = {
    "postgresql": lambda h: PostgresqlConnection.model_validate({"host": h, **_SERVER}),
    "mysql": lambda h: MysqlConnection.model_validate({"host": h, **_SERVER}),
    "sftp": lambda h: SftpConnection.model_validate({"host": h, **_SFTP}),
    "http": lambda h: HttpConnection.model_validate({"baseUrl": f"http://{h}/"}),
    "webdav": lambda h: WebdavConnection.model_validate(
        {"baseUrl": f"https://{h}/", "username": "u"}
    ),
    "s3": lambda h: S3Connection.model_validate({"bucket": "abc", "endpoint": f"http://{h}"}),
    "request": lambda h: HttpRequestConfig.model_validate({"url": f"http://{h}/x"}),
    "send_webhook": lambda h: SendWebhookConfig.model_validate({"url": f"http://{h}", "type": "t"}),
    "endpoint": lambda h: CreateWebhookEndpoint.model_validate({"url": f"https://{h}/"}),
    "mail": lambda h: SendEmailConfig.model_validate({"to": f"a@{h}", "subject": "s"}),
    "oidc": lambda h: IdentitySettings(
        oidc_issuer=f"https://{h}/", oidc_audience="a", oidc_jwks=f"https://{h}/"
    ),
    "provider": lambda h: ProviderSettings.model_validate({"tokenUrl": f"https://{h}/"}),
    "smtp": lambda h: MailServer.parse(f"smtp://{h}:25", "a@b.example"),
    "allowance": Allowance.parse,
    "place": canonical_host,
    "url": lambda h: parse_url(f"http://{h}/"),
}


@pytest.mark.parametrize("host", NO_HOSTS)
@pytest.mark.parametrize("door", DOORS)
def test_no_door_lets_in_what_can_be_no_host(door: str, host: str) -> None:
    with pytest.raises((ValueError, InvalidUrlError)) as caught:
        DOORS[door](host)
    if isinstance(caught.value, pydantic.ValidationError):
        assert all(error["loc"] for error in caught.value.errors())


@pytest.mark.parametrize(
    "host", ["a", "a.b", "a-b.c_d.example", "A.EXAMPLE", "1.2.3.4", "a" * 63, "xn--bcher-kva.de"]
)
@pytest.mark.parametrize("door", DOORS)
def test_every_door_lets_in_a_host(door: str, host: str) -> None:
    DOORS[door](host)


def test_a_sender_of_mails_has_a_host() -> None:
    with pytest.raises(ValueError, match="email address"):
        MailServer.parse("smtp://mail.example", "a@b..example")


@pytest.mark.parametrize("host", NO_HOSTS)
def test_a_push_is_judged_by_its_endpoint(host: str) -> None:
    token = json.dumps({"endpoint": f"https://{host}/x", "keys": {}})
    assert token_problem(PushProvider.WEBPUSH, token)


@pytest.mark.parametrize("host", ["", " ", "a b", "a\nb", "a\x00", "a/b", "a@b", "☃" * 70, "a:80"])
def test_a_host_has_no_other_signs(host: str) -> None:
    assert not is_host(host)
    assert host_name_problem(host)


@pytest.mark.parametrize("host", NO_HOSTS)
async def test_a_call_in_any_protocol_fails_for_good(host: str) -> None:
    async with OutboundClient(OutboundPolicy()) as outbound:
        with pytest.raises(InvalidUrlError) as caught:
            await outbound.addresses(host, 5432)
        assert not caught.value.retryable
        with pytest.raises(InvalidUrlError):
            async with outbound.turn(host):
                pass


BLOCKED = [
    *(0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95),
    *(101, 102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179),
    *(389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601),
    *(636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566),
    *(6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080),
]
"""The ports that browsers do not call either, as the Fetch standard lists them."""


def test_the_ports_of_other_protocols_are_not_called() -> None:
    called = [port for port in BLOCKED if url_problem(f"https://a.example:{port}/") is None]
    assert called == []
    assert url_problem("https://a.example:134/") is None
