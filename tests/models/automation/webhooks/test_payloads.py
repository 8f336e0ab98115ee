"""What a run is told of the body of a call."""

import base64

import pytest

from models.automation.automations.rules.triggers.webhooks import Webhook
from models.automation.webhooks.rules.delivery import Delivery
from models.automation.webhooks.rules.payloads import read_payload


def told(body: bytes, content_type: str) -> tuple[object, object]:
    delivery = Delivery("POST", [("content-type", content_type)], b"", body)
    payload = read_payload(Webhook(), delivery)
    return payload["body"], payload["bodyEncoding"]


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ("Grüße".encode("latin-1"), "text/plain; charset=iso-8859-1"),
        ("Grüße".encode("latin-1"), 'text/plain;format=flowed; Charset="ISO-8859-1"'),
        ("Grüße".encode("cp1252"), "application/xml;charset=windows-1252"),
        ("Grüße".encode("utf-16"), "text/plain; charset=utf-16"),
        ("Grüße".encode(), "text/plain; charset=utf-8"),
        ("Grüße".encode(), "text/plain; charset=us-ascii"),
        ("Grüße".encode(), "text/plain; charset=no-such-thing"),
        ("Grüße".encode(), "text/plain; charset="),
    ],
)
def test_text_is_read_in_its_charset_or_as_utf_8(body: bytes, content_type: str) -> None:
    assert told(body, content_type) == ("Grüße", "text")


@pytest.mark.parametrize("charset", ["idna", "punycode", "unicode_escape", "rot13", "zip", "hex"])
def test_a_codec_that_is_no_charset_is_not_used(charset: str) -> None:
    content_type = f"text/plain; charset={charset}"
    assert told(b"\\u00fc-4142", content_type) == ("\\u00fc-4142", "text")
    binary = b"\xff\xfe"
    assert told(binary, content_type) == (base64.b64encode(binary).decode(), "base64")


def test_headers_of_the_connection_are_not_told() -> None:
    hops = ("host", "connection", "forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip")
    headers = [(name, "evil.example") for name in hops] + [("x-order", "7"), ("x-forwarding", "1")]
    payload = read_payload(Webhook(), Delivery("POST", headers, b"", b""))
    assert payload["headers"] == {"x-order": "7", "x-forwarding": "1"}


def test_text_with_nul_is_told_as_bytes() -> None:
    assert told(b"a\x00b", "text/plain; charset=iso-8859-1")[1] == "base64"


def test_a_byte_order_mark_before_json_is_ignored() -> None:
    assert told(b'\xef\xbb\xbf{"a": 1}', "application/json") == ({"a": 1}, "json")
