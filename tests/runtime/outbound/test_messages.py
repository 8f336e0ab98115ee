from typing import Any

import pytest

from runtime.outbound.errors import InvalidBodyError, InvalidRequestError
from runtime.outbound.messages import OutboundRequest, OutboundResponse, first_hop


def response(body: bytes, content_type: str | None) -> OutboundResponse:
    headers = {} if content_type is None else {"content-type": content_type}
    return OutboundResponse(
        status=200, headers=headers, body=body, bytes_received=len(body), final_url="http://a/"
    )


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        (b'{"a":[1]}', "application/json; charset=utf-8", {"a": [1]}),
        (b'{"a":1}', "application/problem+json", {"a": 1}),
        (b'{"a":1}', "text/json; charset=utf-8", {"a": 1}),
        (b'{"a":1}', "text/plain", '{"a":1}'),
        (b"caf\xe9", "text/plain; charset=latin-1", "café"),
        (b"caf\xe9", "text/plain", "Y2Fm6Q=="),
        (b"abc", "text/plain; charset=no-such", "abc"),
        (b"abc", "text/plain; charset=base64", "abc"),
        (b"abc", None, "abc"),
        (b"", "application/json", None),
    ],
)
def test_a_body_is_read_by_its_content_type(
    body: bytes, content_type: str | None, expected: Any
) -> None:
    assert response(body, content_type).json() == expected


@pytest.mark.parametrize(
    "body", [b"{", b"NaN", b"1e999", b'"\xff"', b"[" * 100_000, b"1" * 5000, b"{} x"]
)
def test_a_body_that_is_not_the_json_it_says_is_an_error(body: bytes) -> None:
    with pytest.raises(InvalidBodyError):
        response(body, "application/json").json()


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "169.254.169.254"}, {"content-length": "5"}, {"Transfer-Encoding": "chunked"},
        {"X-A": "secret\r\nX-B: 1"}, {"X-A": "secret\0"}, {"X-A": "secret✓"}, {"X A": "1"},
        {"": "1"}, {"X-A\r\nX-B": "1"}, {"X-A": "secret" * 9000},
        {"Proxy-Authorization": "secret"},
    ],
)  # fmt: skip
def test_a_header_that_could_break_the_framing_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        first_hop(OutboundRequest(url="http://a.example/", headers=headers))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("method", ["CONNECT", "TRACE", "GET /x", "", "MKCOL"])
def test_an_odd_method_is_refused(method: str) -> None:
    with pytest.raises(InvalidRequestError):
        first_hop(OutboundRequest(url="http://a.example/", method=method))


@pytest.mark.parametrize("body", [float("nan"), {"a": object()}, "\ud800"])
def test_a_body_that_is_not_json_is_refused(body: Any) -> None:
    with pytest.raises(InvalidRequestError):
        first_hop(OutboundRequest(url="http://a.example/", method="POST", body=body))


@pytest.mark.parametrize(
    ("body", "content", "content_type"),
    [
        ({"a": "ü"}, '{"a":"ü"}'.encode(), "application/json"),
        ([], b"[]", "application/json"),
        (b"raw", b"raw", None),
        (None, None, None),
    ],
)
def test_a_body_is_written_by_its_kind(
    body: Any, content: bytes | None, content_type: str | None
) -> None:
    hop = first_hop(OutboundRequest(url="http://a.example/", method="post", body=body))
    assert (hop.method, hop.content) == ("POST", content)
    assert hop.headers.get("content-type") == content_type


_FORM = "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    ("content_type", "body", "content"),
    [
        ("text/plain; charset=utf-8", "ü & more", "ü & more".encode()),
        ("application/xml", "<a/>", b"<a/>"),
        (_FORM, "a=1&b=2", b"a=1&b=2"),
        (_FORM, {"a": "x y", "b": [1, True], "c": None, "d": "ü"}, b"a=x+y&b=1&b=true&d=%C3%BC"),
        (f"{_FORM.upper()}; charset=utf-8", {"a": 1}, b"a=1"),
        (f"{_FORM}; charset=ISO-8859-1", {"a": "é", "ö": ["ü"]}, b"a=%E9&%F6=%FC"),
        (_FORM, {"a": [1, None, "x"], "b": [None]}, b"a=1&a=x"),
        ("text/plain; charset=iso-8859-1", "é", b"\xe9"),
        ('text/csv; header=present; charset="windows-1252"', "5 €", b"5 \x80"),
        ("text/plain; charset=Shift_JIS", "あ", b"\x82\xa0"),
        ("application/xml; charset=utf-16le", "<é/>", "<é/>".encode("utf-16-le")),
        ("text/plain; charset=no-such", "é", "é".encode()),
        ("application/json; charset=iso-8859-1", {"a": "é"}, '{"a":"é"}'.encode()),
        ("multipart/form-data; boundary=X", "--X--\r\n", b"--X--\r\n"),
        ("application/vnd.api+json", "text", b'"text"'),
        ("application/vnd.api+json", {"a": 1}, b'{"a":1}'),
        ("text/csv", {"a": 1}, b'{"a":1}'),
    ],
)
def test_a_body_is_written_as_its_content_type_says(
    content_type: str, body: Any, content: bytes
) -> None:
    headers = {"Content-Type": content_type}
    hop = first_hop(
        OutboundRequest(url="http://a.example/", method="POST", headers=headers, body=body)
    )
    assert (hop.headers["content-type"], hop.content) == (content_type, content)


@pytest.mark.parametrize("body", [{"a": {"b": 1}}, {"a": [{}]}, {"a": "\ud800"}])
def test_values_that_no_form_can_carry_are_refused(body: Any) -> None:
    request = OutboundRequest(
        url="http://a.example/", method="POST", headers={"Content-Type": _FORM}, body=body
    )
    with pytest.raises(InvalidRequestError, match="encoded as application/x-www-form-urlencoded"):
        first_hop(request)


@pytest.mark.parametrize(
    ("content_type", "body", "reason"),
    [
        ("text/plain; charset=iso-8859-1", "5 €", "as text/plain in iso8859-1"),
        ("text/csv; charset=us-ascii", "é", "as text/csv in ascii"),
        (f"{_FORM}; charset=windows-1252", {"a": "あ"}, f"as {_FORM} in cp1252"),
        ("multipart/form-data", {"a": 1}, "multipart"),
        ("multipart/form-data; boundary=X", ["a"], "multipart"),
    ],
)
def test_a_body_that_its_content_type_cannot_have_is_refused(
    content_type: str, body: Any, reason: str
) -> None:
    headers = {"Content-Type": content_type}
    request = OutboundRequest(url="http://a.example/", method="POST", headers=headers, body=body)
    with pytest.raises(InvalidRequestError, match=reason):
        first_hop(request)
