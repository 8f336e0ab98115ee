"""The payload of a run from the body of a call."""

import base64

import pytest

from models.automation.automations.rules.triggers.kinds import Webhook
from models.automation.webhooks.rules import Delivery, read_payload, refused_call
from runtime.errors import ValidationError


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


def test_text_with_nul_is_passed_on_as_bytes() -> None:
    assert told(b"a\x00b", "text/plain; charset=iso-8859-1")[1] == "base64"


def test_a_byte_order_mark_before_json_is_ignored() -> None:
    assert told(b'\xef\xbb\xbf{"a": 1}', "application/json") == ({"a": 1}, "json")


@pytest.mark.parametrize("charset", ["ISO-8859-15", "windows-1252", "utf-16", "utf-8-sig"])
def test_json_is_read_in_its_charset(charset: str) -> None:
    body = '{"p": "5 €"}'.encode(charset)
    assert told(body, f"application/json; charset={charset}") == ({"p": "5 €"}, "json")
    assert told(b'{"p": 9007199254740993}', "application/json") == ({"p": 2**53 + 1}, "json")


def test_a_form_is_read_in_its_charset() -> None:
    type_ = "application/x-www-form-urlencoded; charset=windows-1252"
    assert told(b"p=5+%80&p=6", type_) == ({"p": ["5 €", "6"]}, "form")


BOUNDARY = "--x'y z"
FORM = f'multipart/form-data; boundary="{BOUNDARY}"'


def form(*parts: tuple[str, bytes], end: str = "--") -> bytes:
    lines = [f"--{BOUNDARY}\r\n{head}\r\n\r\n".encode() + content for head, content in parts]
    return b"\r\n".join([*lines, f"--{BOUNDARY}{end}\r\n".encode()])


def field(name: str, more: str = "") -> str:
    return f"Content-Disposition: form-data; name={name}{more}"


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([(field('"from"'), b"Ada"), (field('"tag"'), b"1"), (field("tag"), b"2")],
         {"from": "Ada", "tag": ["1", "2"]}),
        ([(field('"a%22b\\"c;d"'), b"")], {'a"b"c;d': ""}),
        ([("content-disposition:form-data;NAME=a", b"\r\n--x'y zz\r\n--other--")],
         {"a": "\r\n--x'y zz\r\n--other--"}),
        ([(field("a", "\r\nContent-Type: text/plain; charset=ISO-8859-15"), b"5 \xa4")],
         {"a": "5 €"}),
        ([(field("_charset_"), b"windows-1251"), (field("a"), b"\xe6")],
         {"_charset_": "windows-1251", "a": "ж"}),
        ([(field("a", "\r\nContent-Transfer-Encoding: base64"), b"w7w=")], {"a": "ü"}),
        ([], {}),
    ],
    ids=["repeated", "quoted", "near the boundary", "charset", "_charset_", "base64", "no parts"],
)  # fmt: skip
def test_a_form_of_parts_is_fields(parts: list[tuple[str, bytes]], expected: object) -> None:
    assert told(form(*parts), FORM) == (expected, "form")
    assert told(b"preamble\r\n" + form(*parts) + b"epilogue", FORM) == (expected, "form")


@pytest.mark.parametrize(
    ("head", "content", "name", "type_"),
    [
        ('; filename="a.png"\r\nContent-Type: image/png', b"\x89\x00", "a.png", "image/png"),
        ('; filename="a.txt"\r\nContent-Type: text/plain', b"", "a.txt", "text/plain"),
        ('; filename=""', b"", "", "application/octet-stream"),
        ("; filename=no; filename*=UTF-8''%e2%82%ac%20a.txt", b"x", "€ a.txt",
         "application/octet-stream"),
        ("; filename=\"ü.txt\"; filename*=nope''x", b"x", "ü.txt", "application/octet-stream"),
        ("\r\nContent-Type: application/pdf", b"%PDF", None, "application/pdf"),
        ("", b"\xff", None, "application/octet-stream"),
    ],
    ids=["bytes", "empty", "none chosen", "extended", "unknown charset", "no name", "no text"],
)  # fmt: skip
def test_a_file_of_a_form_has_its_bytes(
    head: str, content: bytes, name: str | None, type_: str
) -> None:
    file = {
        "name": name,
        "mimeType": type_,
        "byteSize": len(content),
        "base64": base64.b64encode(content).decode(),
    }
    both = form((field("f", head), content), (field("g"), b"x"))
    assert told(both, FORM) == ({"f": file, "g": "x"}, "form")


@pytest.mark.parametrize(
    ("body", "type_"),
    [
        (form((field("a"), b"x"), end=""), FORM),
        (form((field("a"), b"x"))[:-20], FORM),
        (form(("Content-Disposition: form-data", b"x")), FORM),
        (form(("Content-Disposition: attachment; name=a", b"x")), FORM),
        (form(("Content-Type: text/plain", b"x")), FORM),
        (form((field("a", "\r\nContent-Transfer-Encoding: base64"), b"w")), FORM),
        (form((field('"a\x00"'), b"x")), FORM),
        (b"no form", FORM),
        (form((field("a"), b"x")), "multipart/form-data"),
        (form((field("a"), b"x")), f"multipart/form-data; boundary={'b' * 71}"),
        (form(*[(field("a"), b"x")] * 1_001), FORM),
    ],
    ids=["open", "cut", "no name", "attachment", "no disposition", "no base64", "NUL", "text",
         "no boundary", "long boundary", "many"],
)  # fmt: skip
def test_a_form_that_is_none_is_refused(body: bytes, type_: str) -> None:
    with pytest.raises(ValidationError):
        told(body, type_)


def test_other_types_of_parts_are_text() -> None:
    body = form((field("a"), b"x"))
    assert told(body, f'multipart/mixed; boundary="{BOUNDARY}"') == (body.decode(), "text")


def test_a_boundary_has_1_to_70_characters() -> None:
    for boundary in ("b", "b" * 70):
        head = "Content-Disposition: form-data; name=a"
        body = f"--{boundary}\r\n{head}\r\n\r\nx\r\n--{boundary}--\r\n"
        type_ = f"multipart/form-data; boundary={boundary}"
        assert told(body.encode(), type_) == ({"a": "x"}, "form")


@pytest.mark.parametrize(("length", "kept"), [(65_536, 65_536), (65_537, 4_096)])
def test_of_a_refused_call_64_kib_are_kept_or_an_excerpt(length: int, kept: int) -> None:
    delivery = Delivery("POST", [("content-type", "text/plain")], b"", b"a" * length)
    assert refused_call(Webhook(), delivery, [])["body"] == "a" * kept
