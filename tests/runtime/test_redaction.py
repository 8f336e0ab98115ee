"""What comes back from outside is kept without the secrets that were sent."""

import base64
import html
import itertools
import json
import textwrap
import time
from collections.abc import Callable
from typing import Any
from unicodedata import normalize
from urllib.parse import quote, quote_plus

import pytest

from runtime.redaction import Redaction, without_named_secrets

MARK = "[secret KEY]"
ODD = 'p&s "w\\rd ü/=+😀'
SPACES = "correct horse  battery staple"
PEM = "\n".join(
    [
        "-----BEGIN PRIVATE KEY-----",
        *textwrap.wrap(base64.b64encode(bytes(range(180))).decode(), 64),
        "-----END PRIVATE KEY-----",
        "",
    ]
)
SECRETS = pytest.mark.parametrize("secret", [ODD, SPACES, PEM], ids=["odd", "spaces", "pem"])


def escaped(text: str) -> str:
    return json.dumps(text)[1:-1]


def in_unicode(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def base64_of(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def shown(text: str, *secrets: str) -> str:
    return Redaction({secret: f"[secret {at}]" for at, secret in enumerate(secrets)}).text(text)


USUAL: list[Callable[[str], str]] = [
    str,
    escaped,
    in_unicode,
    lambda text: escaped(escaped(text)),
    lambda text: in_unicode(in_unicode(text)),
    quote,
    quote_plus,
    lambda text: quote(text, safe=""),
    html.escape,
    base64_of,
    lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
]


@SECRETS
@pytest.mark.parametrize("spell", USUAL)
def test_a_secret_is_marked_as_it_is_usually_spelled(
    secret: str, spell: Callable[[str], str]
) -> None:
    found = Redaction({secret: MARK}).text(f"x {spell(secret)} y {spell(secret)}")
    assert found == f"x {MARK} y {MARK}"


OTHER: list[Callable[[str], str]] = [
    lambda text: escaped(escaped(escaped(text))),
    lambda text: escaped(text).replace("/", r"\/"),
    lambda text: quote(escaped(text)),
    lambda text: quote(quote(text, safe=""), safe=""),
    lambda text: quote(text, safe="").lower() if text == ODD else quote(text).replace("%0A", "%0a"),
    lambda text: html.escape(escaped(text)),
    lambda text: html.escape(html.escape(text)).replace(" ", "&nbsp;"),
    lambda text: html.escape(text).replace("&#x27;", "&#39;").replace("\n", "<br>\n"),
    lambda text: " ".join(text.split()),
    lambda text: text.replace("\n", "\r\n").replace(" ", "\n"),
    lambda text: escaped(html.escape(text)).replace("&", r"\u0026"),
    lambda text: base64_of("me:" + text),
    lambda text: base64_of("m:" + text + "?"),
    lambda text: base64_of(":" + text + "??"),
    lambda text: quote(base64.encodebytes(f"me:{text}".encode()).decode()),
    lambda text: escaped(base64.encodebytes(text.encode()).decode()),
    str.upper,
    str.swapcase,
    lambda text: quote(text.upper(), safe=""),
    # Written in one charset, and read in another.
    lambda text: text.encode().decode("latin-1"),
    lambda text: text.encode("utf-8" if text == ODD else "cp1252").decode("cp1252"),
    lambda text: text.encode("utf-16-le").decode("latin-1"),
    lambda text: text.encode("utf-16-be").decode("utf-8", "replace"),
    lambda text: f"[{text}]".encode("utf-16-be").decode("utf-16-le"),
    lambda text: (b"m:" + text.encode() + b"=" * (len(text.encode()) % 2)).decode("utf-16-le"),
    lambda text: (b"m" + text.encode() + b"=" * (1 - len(text.encode()) % 2)).decode("utf-16-be"),
    lambda text: base64.b64encode(f"me:{text}".encode("utf-16-le")).decode(),
    # Small caps of East Asia, and letters with their accents apart.
    lambda text: text.translate({sign: sign + 0xFEE0 for sign in range(0x21, 0x7F)}),
    lambda text: normalize("NFD", text),
]


@SECRETS
@pytest.mark.parametrize("spell", OTHER)
def test_a_text_in_which_a_secret_can_be_traced_is_withheld(
    secret: str, spell: Callable[[str], str]
) -> None:
    if spell(secret) in {usual(secret) for usual in USUAL}:
        return
    redaction = Redaction({secret: MARK})
    assert MARK in redaction.text(f'{{"x": "{spell(secret)}"}}')
    part = spell(secret)[: min(10, len(spell(secret)) // 2)]
    assert redaction.text(f"x{part}") == f"x{part}"


def test_a_secret_with_accents_is_traced_in_the_wrong_charset() -> None:
    secret = "clé d'accès privée"
    for written, read in itertools.permutations(("utf-8", "cp1252", "latin-1", "utf-16-le"), 2):
        assert shown(secret.encode(written).decode(read, "replace"), secret) == "[secret 0]"


def test_of_two_secrets_the_longer_is_taken_out_whole() -> None:
    assert shown("abcdef abc", "abc", "abcdef") == "[secret 1] [secret 0]"


def test_a_text_that_only_resembles_a_secret_stays() -> None:
    text = 'abc d%20e \\"x\\" &amp; YWJj abcd efgx'
    assert shown(text, "abcdefgh", "a", "") == text.replace("a", "[secret 1]")
    assert not Redaction({})


def test_a_secret_is_taken_out_of_keys_lists_and_numbers() -> None:
    value = {"42": [42, 4.2, 1421, True, None, {"a": "x42"}], "b": 7}
    redaction = Redaction({"42": MARK})
    assert redaction.value(value) == {
        MARK: [MARK, 4.2, f"1{MARK}1", True, None, {"a": f"x{MARK}"}],
        "b": 7,
    }
    other = {"b": [7, "x", None]}
    assert redaction.value(other) is other


@pytest.mark.parametrize("piece", ["\\", "%25", '\\"', "&amp;", "%", "\\u00"])
def test_no_text_takes_long_to_look_through(piece: str) -> None:
    text = piece * (400_000 // len(piece))
    assert shown(text, PEM, ODD) == text


def test_a_secret_in_bytes_is_found_across_chunks() -> None:
    redaction = Redaction({"correct horse": "-", "short": "-"})
    for chunks in ([b"a correct horse"], [b"a corr", b"ect ", b"horse"], [b"%20correct%20horse"]):
        assert redaction.stands_in(chunks)
    for charset in ("utf-16-le", "utf-16-be"):
        assert redaction.stands_in(["a correct horse".encode(charset)])
    assert not redaction.stands_in([b"a correct", b"", b" house, short"])
    assert not Redaction({}).stands_in([b"a"])


@pytest.mark.parametrize(
    "name",
    ["Authorization", "authorisation", "db_password", "passwd", "pwd", "X-Api-Key", "apiKey",
     "access key", "private_key", "clientSecret", "refresh_token", "Set-Cookie", "credentials"],
)  # fmt: skip
@pytest.mark.parametrize("secret", ["hunter2", 4711, 1.5, ["hunter2"], {"value": "hunter2"}, ""])
def test_a_value_whose_key_names_a_secret_is_left_out(name: str, secret: object) -> None:
    value = {"order": 7, "nested": [{name: secret}]}
    assert without_named_secrets(value) == {"order": 7, "nested": [{name: "[redacted]"}]}


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ('{"user":"u","password":"hunter2"}', '{"user": "u", "password": "[redacted]"}'),
        ('{"password":"hunter2", "user":"u', '{"password":"[redacted]", "user":"u'),
        ('{"api_key" : "a\\"hunter2", "x', '{"api_key" : "[redacted]", "x'),
        ('{"in":"{\\"pwd\\":\\"hunter2\\"}",', '{"in":"{\\"pwd\\":\\"[redacted]\\"}",'),
        ('{"credentials":{"a":"hunter2"},', '{"credentials":[redacted]},'),
        ('{"token":true,"n":1', '{"token":true,"n":1'),
        ('{"pass\\u0077ord":"hunter2", "x', '{"password":"[redacted]", "x'),
        ('{"in":"{\\"\\\\u0070wd\\":\\"hunter2\\"}",', '{"in":"{\\"pwd\\":\\"[redacted]\\"}",'),
        ("%74oken=hunter2&x=%41", "token=[redacted]&x=A"),
        ("<a>&#x70;assword: hunter2</a>", "<a>password: [redacted]</a>"),
        ('{"n\\u0061me":"%41", "x', '{"n\\u0061me":"%41", "x'),
        ("password=hunter2&x=1", "password=[redacted]&x=1"),
        ("<secret>hunter2</secret>", "<secret>[redacted]</secret>"),
        ("Authorization: Bearer hunter2", "Authorization: [redacted]"),
        ("use Bearer hunter2hunter2hunter2 now", "use Bearer [redacted] now"),
        ("https://u:hunter2@host/?token=hunter2", "https://u:[redacted]@host/?token=[redacted]"),
        ("my secretary: Bo, the password is lost", "my secretary: Bo, the password is lost"),
        ("Basic English at https://host:443/a@b", "Basic English at https://host:443/a@b"),
    ],
)
def test_a_value_that_a_text_names_as_a_secret_is_left_out(text: str, kept: str) -> None:
    assert without_named_secrets({"a": [text]}) == {"a": [kept]}


@pytest.mark.parametrize("value", [None, True, False])
def test_the_presence_of_a_secret_stays(value: object) -> None:
    assert without_named_secrets({"token": value}) == {"token": value}


def test_names_beside_secrets_stay() -> None:
    value = {"passenger": "Ada", "secretary": "Bo", "author": "Cy", "key": "a", "n": [1, None]}
    assert without_named_secrets(value) == value


def test_parts_that_are_nested_too_deeply_are_left_out() -> None:
    deepest: Any = "end"
    for _ in range(32):
        deepest = {"a": deepest}
    assert without_named_secrets({"a": deepest}) == {"a": deepest}
    assert "end" not in str(without_named_secrets({"b": {"a": deepest}}))
    assert "end" not in str(without_named_secrets([[deepest]]))


@pytest.mark.parametrize("text", ["\\", "token\\", "token:'", "&#x0", "://a:", "secret "])
def test_a_text_takes_time_in_proportion_to_its_length(text: str) -> None:
    """One that is read from each of its signs takes minutes: others wait for their answers."""
    begun = time.monotonic()
    without_named_secrets(text * 300_000)
    assert time.monotonic() - begun < 60
