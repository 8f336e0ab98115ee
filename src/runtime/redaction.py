"""Texts without the secrets in them.

The whole text is redacted, before it is cut or its white space is collapsed: a part of a secret, or
another spelling, would not be recognized.
"""

import base64
import html
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import TypeVar, cast
from unicodedata import normalize
from urllib.parse import quote, quote_plus

_ESCAPE = re.compile(
    r"(?:%[0-9A-Fa-f]{2})+|(?:(?<!\\)\\+u[0-9A-Fa-f]{4})+|(?<!\\)\\+(?:x[0-9A-Fa-f]{2}|[bfnrt])"
    r"|&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,8});|<br ?/?>"
)
_UNIT = re.compile(r"\\u([0-9A-Fa-f]{4})")
_ROUNDS = 6
"""Times that escapes are undone: escaped text may have been escaped again."""
_LOOSE = str.maketrans("", "", " \t\r\n\v\f\0\xa0\\+\ufffd")
"""Characters that escaping, wrapping and wrong charsets add to a text, or change in it."""
_ALPHABETS = str.maketrans("", "", "-_/=")
"""Characters that, beside `+`, differ between the variants of base64."""
_CHARSETS = ("utf-8", "utf-16-le", "utf-16-be", "cp1252", "latin-1")
"""Charsets in which servers write; some write one and say another."""
_TRACEABLE = 8
"""Characters that a trace has at least: fewer would be found in what has nothing to do with it."""


Value = TypeVar("Value")
"""A JSON value."""

REDACTED = "[redacted]"
_NAMES = (
    r"(?:authori[sz]ation|credential|cookie|passw|pwd|secret(?!ar)|token|pepper"
    r"|(?:api|access|private)[-_ ]?key)"
)
_SECRET_NAME = re.compile(_NAMES, re.IGNORECASE)
_MAX_DEPTH = 32

_NAMED_IN_TEXT = re.compile(
    # The rest of the name, and what parts it from the value: as in JSON, in a query, in XML.
    rf"""(?P<name>{_NAMES}[\w.-]{{0,64}}+\\*["']?\s*[:=>]\s*)"""
    r"""(?:(?P<quote>\\*["'])(?:(?!(?<!\\)(?P=quote)).)*"""  # closed by the quote that opens it
    r"""|[{\[][^}\]]*|(?!null\b|true\b|false\b)(?:(?:Basic|Bearer)\s+)?[^\s&;,"'\\<>{}\[\]]+)""",
    re.IGNORECASE | re.DOTALL,
)
_ESCAPED = re.compile(r"(?:(?<!\\)\\+(?:u00|x)|%)([2-7][0-9A-Fa-f])|&#[xX]0*([2-7][0-9A-Fa-f]);")
"""A sign of ASCII as JSON, a URL or HTML may write it. Many backslashes are read from one place."""
_PARTS_OF_NAMES = (
    *("authori", "credential", "cookie", "passw", "pwd", "secret", "token", "pepper", "key"),
    *("basic ", "bearer "),
)
"""A text without any of them has no name of a secret. To look for them is fast."""
_SCHEME_IN_TEXT = re.compile(r"\b(Basic|Bearer) +[A-Za-z0-9._~+/=-]{16,}")
_LOGIN_IN_TEXT = re.compile(r"""(://[^\s/:@"'\\]{0,200}:)[^\s/@"'\\]{1,200}@""")


def names_secret(name: str) -> bool:
    """True for the name of a key, a header or a parameter that usually has a secret."""
    return _SECRET_NAME.search(name) is not None


def without_named_secrets(value: object, depth: int = 0) -> object:
    """A JSON value without the values whose keys name secrets, and without its deepest parts.

    A text may be JSON, a query or a URL itself. Whether there is a secret stays to be seen: null,
    true and false are no secrets.
    """
    if isinstance(value, str):
        return _text_without_named_secrets(value, depth)
    if not isinstance(value, dict | list):
        return value
    if depth > _MAX_DEPTH:
        return REDACTED
    if isinstance(value, list):
        return [without_named_secrets(item, depth + 1) for item in value]
    return {
        key: REDACTED
        if names_secret(key) and item is not None and not isinstance(item, bool)
        else without_named_secrets(item, depth + 1)
        for key, item in value.items()
    }


def _text_without_named_secrets(text: str, depth: int) -> str:
    """A text without the values that it names as secrets; of JSON, also of JSON that is cut."""
    if text[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):
            value = json.loads(text)
            kept = without_named_secrets(value, depth + 1)
            return text if kept == value else json.dumps(kept, ensure_ascii=False)
    unescaped = _ESCAPED.sub(_letter, text)
    if _NAMED_IN_TEXT.search(unescaped):
        text = unescaped
    lowered = text.lower()
    if any(part in lowered for part in _PARTS_OF_NAMES):
        text = _NAMED_IN_TEXT.sub(rf"\g<name>\g<quote>{REDACTED}", text)
        text = _SCHEME_IN_TEXT.sub(rf"\1 {REDACTED}", text)
    return _LOGIN_IN_TEXT.sub(rf"\1{REDACTED}@", text) if "://" in text else text


def _letter(escape: re.Match[str]) -> str:
    """The sign that an escape stands for, if names consist of such; the escape otherwise."""
    sign = chr(int(escape[1] or escape[2], 16))
    return sign if sign.isalnum() or sign in "-_" else escape[0]


MAX_PATHS = 20
"""Paths that `redacted_paths` gives: the first ones."""


def redacted_paths(value: object) -> list[str]:
    """The paths of the texts of a JSON value that were redacted, in whole or in part."""
    return list(islice(_redacted(value, ""), MAX_PATHS))


def _redacted(value: object, path: str) -> Iterator[str]:
    if isinstance(value, str):
        if REDACTED in value:
            yield path
    elif isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _redacted(item, f"{path}.{key}" if path else str(key))


class Redaction:
    """Replaces secrets by marks; `marks` are the marks by secret.

    A secret is marked as it is, escaped once or twice as in JSON, or encoded for a URL, for HTML or
    in base64. A text in which it can be traced in any other way, such as escaped more often, mixed,
    in other lines, in capitals, read in a wrong charset or as a part of longer base64, is replaced
    by the mark as a whole.
    """

    def __init__(self, marks: Mapping[str, str]) -> None:
        spellings: dict[str, str] = {}
        for secret, mark in marks.items():
            for text in _spellings(secret):
                spellings.setdefault(text, mark)
        # The longest first: one secret may begin with another.
        self._marks = sorted(spellings.items(), key=lambda one: len(one[0]), reverse=True)
        self._traces = [
            (trace, mark)
            for secret, mark in marks.items()
            for trace in {_undone(text, _folded) for text in (secret, *_misread(secret))}
            if len(trace) >= _TRACEABLE
        ]
        self._encoded = [
            (trace, mark)
            for secret, mark in marks.items()
            for trace in _in_base64(secret)
            if len(trace) >= _TRACEABLE
        ]
        self._in_bytes = [
            raw
            for secret in marks
            if len(secret) >= _TRACEABLE
            for raw in _written(secret).values()
        ]
        traces = [*self._traces, *self._encoded]
        self._shortest = min((len(trace) for trace, _ in traces), default=None)

    def __bool__(self) -> bool:
        """True when there is a secret to search for."""
        return bool(self._marks)

    def text(self, text: str) -> str:
        for secret, mark in self._marks:
            text = text.replace(secret, mark)
        return self._traced(text) or text

    def stands_in(self, chunks: Iterable[bytes]) -> bool:
        """True when a secret is in the bytes, as it is or in a usual encoding.

        One of fewer than eight characters is ignored: it may be there by chance.
        """
        spellings = [
            text.encode("utf-8", "surrogatepass")
            for text, _ in self._marks
            if len(text) >= _TRACEABLE
        ] + self._in_bytes
        overlap = max(map(len, spellings), default=1) - 1
        before = b""
        for chunk in chunks:
            window = before + chunk
            if any(text in window for text in spellings):
                return True
            before = window[-overlap:] if overlap else b""
        return False

    def value(self, value: Value) -> Value:
        """The JSON value without secrets, in keys and numbers too."""
        joined = "\0".join(_texts(value))
        return value if self.text(joined) == joined else cast("Value", self._without(value))

    def _without(self, value: object) -> object:
        if isinstance(value, dict):
            return {self.text(key): self._without(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._without(item) for item in value]
        if isinstance(value, str):
            return self.text(value)
        text = json.dumps(value)
        redacted = text if _is_plain(value) else self.text(text)
        return value if redacted == text else redacted

    def _traced(self, text: str) -> str | None:
        """The mark of a secret that can be traced in the text."""
        if self._shortest is None or len(text) < self._shortest:
            return None
        undone = _undone(text, _folded)
        for trace, mark in self._traces:
            if trace in undone:
                return mark
        undone = _undone(text).translate(_ALPHABETS)
        for trace, mark in self._encoded:
            if trace in undone:
                return mark
        return None


def _texts(value: object) -> Iterator[str]:
    """Everything in a JSON value that may be a secret, as text."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif not _is_plain(value):
        yield value if isinstance(value, str) else json.dumps(value)


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, bool)


def _spellings(secret: str) -> Iterator[str]:
    """The secret as it is usually written. None of the empty text."""
    if not secret:
        return
    yield secret
    for ascii_only in (True, False):
        once = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
        yield once
        yield json.dumps(once, ensure_ascii=ascii_only)[1:-1]
    raw = secret.encode("utf-8", "surrogatepass")
    yield quote(raw, safe="")
    yield quote(raw)
    yield quote_plus(raw)
    yield html.escape(secret)
    yield html.escape(secret, quote=False)
    yield base64.b64encode(raw).decode()
    yield base64.urlsafe_b64encode(raw).decode()


def _in_base64(secret: str) -> Iterator[str]:
    """The base64 of the secret among other bytes, whose number before it is unknown.

    Without the characters at either end that the neighbours have a part in, and without the
    characters that differ between the alphabets.
    """
    for raw in _written(secret).values():
        for before in range(3):
            encoded = base64.b64encode(b"\0" * before + raw).decode()
            own = encoded[-(-before * 8 // 6) : (before + len(raw)) * 8 // 6]
            yield own.translate(_LOOSE).translate(_ALPHABETS)


def _written(secret: str) -> dict[str, bytes]:
    """The bytes of the secret by the charset they are written in, where it has its characters."""
    written = {"utf-8": secret.encode("utf-8", "surrogatepass")}
    for charset in _CHARSETS:
        with suppress(UnicodeEncodeError):
            written.setdefault(charset, secret.encode(charset))
    return written


def _misread(secret: str) -> Iterator[str]:
    """The secret written in one charset and read in another."""
    for raw in _written(secret).values():
        for charset in _CHARSETS:
            # Two bytes make a character, and those before the secret may be odd in number.
            width = 2 if charset.startswith("utf-16") else 1
            for start in range(width):
                end = len(raw) - (len(raw) - start) % width
                yield raw[start:end].decode(charset, "replace")


def _folded(text: str) -> str:
    """The text in small letters, and in the simplest form of each (Unicode, NFKC)."""
    return text.lower() if text.isascii() else normalize("NFKC", text).casefold()


def _undone(text: str, fold: Callable[[str], str] = str) -> str:
    """The text with escapes undone, without white space, backslashes and plus signs."""
    for _ in range(_ROUNDS):
        text = fold(text)
        undone = fold(_ESCAPE.sub(_undo, text))
        if undone == text:
            break
        text = undone
    return text.translate(_LOOSE)


def _undo(escape: re.Match[str]) -> str:
    escaped = escape[0]
    if escaped[0] == "<":
        return " "
    if escaped[0] == "&":
        return html.unescape(escaped)
    if escaped[0] == "%":
        raw = bytes.fromhex(escaped.replace("%", ""))
        return raw.decode("utf-8", "surrogateescape")
    if units := _UNIT.findall(escaped):
        return bytes.fromhex("".join(units)).decode("utf-16-be", "surrogatepass")
    code = escaped.lstrip("\\")
    return chr(int(code[1:], 16)) if len(code) > 1 else " "
