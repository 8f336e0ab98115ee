"""Bytes with a content type: which are text, in which charset."""

import pytest

from runtime.content_types import ContentType, known_charset, parameters_of

TEXT = '{"p": "5 €, ж, 日本"}'


@pytest.mark.parametrize(
    ("charset", "text"),
    [
        ("ISO-8859-15", '{"p": "5 €"}'), ("windows-1252", '{"p": "5 €"}'), ("GBK", '{"p": "价格"}'),
        ("Shift_JIS", '{"p": "日本"}'), ("Shift_JIS", '{"p": "①"}'), ("x-sjis", '{"p": "日本"}'),
        ("EUC-JP", '{"p": "日本"}'), ("ISO-2022-JP", '{"p": "日本"}'), ("Big5", '{"p": "價格"}'),
        ("EUC-KR", '{"p": "가격"}'), ("koi8-r", '{"p": "цена"}'), ("windows-1251", '{"p": "цена"}'),
        ("utf-16", TEXT), ("utf-16le", TEXT), ("utf-16be", TEXT), ("utf-32", TEXT), ("utf-8", TEXT),
        ("utf-8-sig", TEXT), ("gb18030", TEXT),
    ],
)  # fmt: skip
@pytest.mark.parametrize("media_type", ["application/json", "application/hal+json", "text/plain"])
def test_a_stated_charset_is_read(charset: str, text: str, media_type: str) -> None:
    codec = {"Shift_JIS": "cp932", "x-sjis": "cp932"}.get(charset, charset)
    body = text.encode(codec)
    for stated in (charset, charset.upper(), f'"{charset}"', f"'{charset}'"):
        header = f'{media_type}; a="; charset=no" ; Charset={stated}'
        assert ContentType.parse(header).decode(body) == text


@pytest.mark.parametrize(
    ("header", "body", "text"),
    [
        # JSON is UTF-8 under any stated charset, and UTF-16 by its NULs.
        ("application/json; charset=iso-8859-1", '{"p": "ü"}'.encode(), '{"p": "ü"}'),
        ("application/json; charset=no-such", '{"p": "ü"}'.encode(), '{"p": "ü"}'),
        ("application/json", '{"p": "ü"}'.encode("utf-16-be"), '{"p": "ü"}'),
        ("application/json", b'\xef\xbb\xbf{"a": 1}', '{"a": 1}'),
        # XML and HTML say it themselves; what the answer states counts before that.
        ("application/xml", b'<?xml version="1.0" encoding="ISO-8859-1"?><a>\xfc</a>', "ü"),
        ("text/xml", b"<?xml version='1.0' encoding='windows-1251'?><a>\xe6</a>", "ж"),
        ("application/atom+xml", b'\n<?xml version="1.0" encoding="GBK"?><a>\xbc\xdb</a>', "价"),
        ("image/svg+xml", b'<?xml version="1.0" encoding="latin1"?><a>\xfc</a>', "ü"),
        ("application/xml; charset=cp1251", b'<?xml version="1.0" encoding="latin1"?>\xe6', "ж"),
        ("application/xml", '<?xml version="1.0" encoding="UTF-16"?>ü'.encode("utf-16"), "ü"),
        ("application/xml", '<?xml version="1.0" encoding="UTF-16"?>ü'.encode("utf-16-le"), "ü"),
        ("text/html", b'<meta charset="windows-1251"><p>\xe6', "ж"),
        ("text/html", b"<meta content='text/html; charset=euc-jp'>\xc6\xfc", "日"),
        # A mark counts before all that is said; Latin-1 has no signs where Windows has some.
        ("text/plain; charset=latin-1", b"\xef\xbb\xbf\xc3\xbc", "ü"),
        ("text/plain; charset=iso-8859-1", b"5 \x80", "5 €"),
        ("text/plain; charset=us-ascii", "ü".encode(), "ü"),
        ("text/plain; charset=iso-8859-15", b"5 \x80", "5 €"),
        ("text/plain; charset=iso-8859-15", b"5 \xa4", "5 €"),
        ("text/csv; charset=iso-8859-2", b"\x84\xb1\x94", "„±”"),
        ("application/json; charset=iso-8859-15", b'{"p": "5 \x80"}', '{"p": "5 €"}'),
        ("application/xml", b'<?xml version="1.0" encoding="iso-8859-15"?><a>\x80</a>', "€"),
        ("text/plain; charset=iso-8859-15", b"5 \x81", "5 \x81"),
        ("", "ü".encode(), "ü"),
        ("application/x-unknown", "ü".encode(), "ü"),
    ],
)
def test_a_charset_is_found(header: str, body: bytes, text: str) -> None:
    found = ContentType.parse(header).decode(body)
    assert found is not None
    assert found == text or text in found
    assert "\ufffd" not in found
    assert not found.startswith("\ufeff")


@pytest.mark.parametrize(
    ("header", "body"),
    [
        ("image/png", b"\x89PNG"), ("image/png", b"ASCII"), ("application/pdf", b"%PDF-1.7"),
        ("application/zip", b"PK"), ("application/octet-stream", b"abc"), ("audio/mpeg", b"ID3"),
        ("application/pdf; charset=utf-8", b"%PDF"), ("", b"\xff\xfea"), ("", b"a\x00b"),
        ("text/plain", b"caf\xe9"), ("text/plain; charset=utf-8", b"\xff"), ("text/csv", b"\xff"),
        ("application/json", b'"\xff"'), ("application/x-unknown", b"\xff\xd8"),
        ("font/woff", b"w"),
        ("text/plain; charset=zip", b"\xff\xfe"), ("text/plain; charset=utf-7", b"+\xff"),
    ],
)  # fmt: skip
def test_bytes_that_no_charset_reads_are_not_text(header: str, body: bytes) -> None:
    assert ContentType.parse(header).decode(body) is None


@pytest.mark.parametrize(
    "name",
    ["idna", "punycode", "unicode_escape", "raw_unicode_escape", "utf-7", "rot13", "zip", "hex",
     "base64", "undefined", "charmap", "palmos", "", " ", "\x00", "..", "os", "x" * 10_000],
)  # fmt: skip
def test_a_codec_that_is_no_charset_is_not_known(name: str) -> None:
    assert known_charset(name) is None


def test_parameters_are_split_outside_of_quotes() -> None:
    header = r'Form-Data; Name="a;b\"c\d" ; x ; y=1; name=no'
    assert parameters_of(header) == ("form-data", {"name": r'a;b"c\d', "y": "1"})
