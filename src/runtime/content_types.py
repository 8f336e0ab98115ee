"""Bytes with a content type, as text: one rule for answers, calls, sources and contents.

A byte order mark counts before the charset that the type states, that one before what the text says
of itself, and UTF-8 last. A charset that is not known counts as none. JSON is read as UTF-8 first
(RFC 8259, 8.1), even if a server states another charset. Bytes are never replaced by others:
content that no charset can read is not text.
"""

import base64
import codecs
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

_LONGEST = 1_000
_BEGINNING = 1_024
"""Bytes in which a text may say its charset (HTML, 4.2.5.4)."""
_PARAMETER = re.compile(r';\s*([^\s=;"]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;]*))', re.DOTALL)
_ESCAPED = re.compile(r'\\(["\\])')
_TEXTS = re.compile(
    r"text/.+|multipart/.+|message/.+|.+\+(?:xml|json|yaml|json-seq)"
    r"|application/(?:json|xml|xml-dtd|(?:x-)?yaml|(?:x-)?javascript|ecmascript|sql|graphql|toml"
    r"|(?:x-)?(?:ndjson|jsonlines|jsonl)|json-seq|x-www-form-urlencoded|csv)"
)
_BYTES = re.compile(
    r"(?:image|audio|video|font)/.+|.+\+(?:zip|gzip|cbor)"
    r"|application/(?:octet-stream|(?:x-)?pdf|(?:x-)?(?:zip|zip-compressed|gzip|tar|bzip2?|7z-compressed"
    r"|msgpack|protobuf|binary|cbor)|vnd\.(?:google\.)?(?:protobuf|msgpack)|grpc.*)"
)
_XML = re.compile(rb"""<\?xml\s[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9._:-]{1,40})["']""")
_META = re.compile(
    rb"""<meta\s[^>]{0,300}?charset\s*=\s*["']?\s*([A-Za-z0-9._:-]{1,40})""", re.IGNORECASE
)
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_NO_CHARSETS = frozenset(
    {"charmap", "idna", "palmos", "punycode", "raw-unicode-escape", "undefined", "unicode-escape"}
    | {"utf-7"}
)
"""Codecs of Python that are no charsets, and one by which a text hides what it is."""
_BESIDE_ASCII = re.compile(r"utf-(?:16|32)|iso2022|hz")
"""Charsets in which ASCII bytes may be something else."""
_WIDER: Mapping[str, Sequence[str]] = {
    # Pages that state the narrow charset use the wide one (Encoding standard, 4.2).
    "iso8859-1": ("cp1252", "iso8859-1"),
    "iso8859-9": ("cp1254", "iso8859-9"),
    "gb2312": ("gb2312", "gb18030"),
    "gbk": ("gbk", "gb18030"),
    "shift_jis": ("shift_jis", "cp932"),
    "euc_kr": ("euc_kr", "cp949"),
    "big5": ("big5", "big5hkscs", "cp950"),
}
_OF_WINDOWS: Mapping[str, str] = {
    "iso8859-2": "cp1250",
    "iso8859-7": "cp1253",
    "iso8859-8": "cp1255",
    "iso8859-11": "cp874",
    "iso8859-13": "cp1257",
    "iso8859-15": "cp1252",
    "tis-620": "cp874",
}
"""The charsets of Windows that are stated by the names of others, in which some signs differ."""
_CONTROL = re.compile("[\x80-\x9f]")
"""A control that no text has: the charset is one of Windows, which has signs there."""


@dataclass(frozen=True, slots=True)
class ContentType:
    """A media type in lower case, empty for none, and the charset stated with it.

    `charset` is a name that Python knows, or None where none is stated or it is not known.
    """

    media_type: str = ""
    charset: str | None = None

    @classmethod
    def parse(cls, header: str) -> "ContentType":
        """The content type in the value of a header."""
        media_type, parameters = parameters_of(header[:_LONGEST])
        stated = parameters.get("charset")
        return cls(media_type, stated and known_charset(stated.strip("\"'")))

    @property
    def is_json(self) -> bool:
        named = self.media_type in {"application/json", "text/json"}
        return named or self.media_type.endswith("+json")

    @property
    def is_xml(self) -> bool:
        named = self.media_type in {"application/xml", "text/xml"}
        return named or self.media_type.endswith("+xml")

    @property
    def is_beside_ascii(self) -> bool:
        """True for a charset in which what looks like ASCII may be something else."""
        return _BESIDE_ASCII.match(self.charset or "") is not None

    def decode(self, body: bytes, *, with_nul: bool = False) -> str | None:
        """The text that the bytes are; None where the type or the bytes are no text.

        A text has no NUL, unless the caller can do with it.
        """
        if not self._is_text and _BYTES.fullmatch(self.media_type):
            return None
        read: str | None = None
        for charset in self._candidates(body):
            try:
                text = body.decode(charset)
            except UnicodeError:
                continue
            if has_controls(text, charset):
                read = read or text
            elif with_nul or "\x00" not in text:
                return text.removeprefix("\ufeff")
        return read

    @property
    def _is_text(self) -> bool:
        return bool(_TEXTS.fullmatch(self.media_type))

    def _candidates(self, body: bytes) -> Iterator[str]:
        if self._is_text:
            yield from (name for mark, name in _MARKS if mark != body and body.startswith(mark))
        stated = spellings(self.charset) if self.charset else ()
        if self.is_json:
            detected = json.detect_encoding(body)
            if detected.startswith("utf-8") and self.is_beside_ascii:
                yield from stated
            yield detected
        yield from stated
        yield from self._said_inside(body[:_BEGINNING])
        yield "utf-8"

    def _said_inside(self, begin: bytes) -> Iterator[str]:
        """The charset that XML or HTML states of itself, and by its first signs."""
        if self.is_xml:
            if begin[:4] in {b"<\x00?\x00", b"\x00<\x00?"}:
                yield json.detect_encoding(begin)
            found = _XML.match(begin.lstrip())
        elif self.media_type == "text/html":
            found = _META.search(begin)
        else:
            return
        charset = known_charset(found[1].decode("ascii")) if found else None
        if charset is not None and not _BESIDE_ASCII.match(charset):
            yield from spellings(charset)


def as_text_or_base64(content_type: ContentType, body: bytes) -> tuple[str, str]:
    """Bytes in JSON, and how they are written there: as `text` or in `base64`."""
    text = content_type.decode(body)
    if text is not None:
        return text, "text"
    return base64.b64encode(body).decode(), "base64"


def parameters_of(header: str) -> tuple[str, Mapping[str, str]]:
    """The value that a header begins with, in lower case, and its parameters by their names."""
    first, semicolon, rest = header.partition(";")
    found: dict[str, str] = {}
    for name, quoted, bare in _PARAMETER.findall(semicolon + rest):
        found.setdefault(name.lower(), _ESCAPED.sub(r"\1", quoted) if quoted else bare.strip())
    return first.strip().lower(), found


def extended_parameter(parameters: Mapping[str, str], name: str) -> str | None:
    """A parameter as it is extended to signs beyond ASCII (RFC 8187); None where it is not."""
    charset, _, rest = parameters.get(f"{name}*", "").partition("'")
    known = known_charset(charset)
    if known is None:
        return None
    try:
        return unquote(rest.partition("'")[2], known, "strict")
    except UnicodeError:
        return None


def part_parameter(parameters: Mapping[str, str], name: str) -> str | None:
    """A parameter of a part of a form: extended, else as browsers write it (RFC 7578, 4.2)."""
    value = extended_parameter(parameters, name)
    if value is None and (value := parameters.get(name)) is not None:
        for code, sign in (("%22", '"'), ("%0D", "\r"), ("%0A", "\n")):
            value = value.replace(code, sign)
    return value


def spellings(charset: str) -> Sequence[str]:
    """The charsets that one which Python knows means in practice, the likeliest first."""
    wider = _OF_WINDOWS.get(charset)
    return _WIDER.get(charset, (charset,) if wider is None else (charset, wider))


def has_controls(text: str, charset: str) -> bool:
    """True for a text in this charset with controls, where the one of Windows has signs."""
    return charset in _OF_WINDOWS and _CONTROL.search(text) is not None


def widest(name: str) -> str:
    """The charset that a name means in practice, as Python knows it (Encoding standard, 4.2)."""
    known = known_charset(name) or "utf-8"
    return _WIDER.get(known, (known,))[-1]


def known_charset(name: str) -> str | None:
    """The name by which Python knows a charset; None for one that it does not know."""
    label = name.strip().lower()
    others = (label.removeprefix("x-"), label.replace("windows-", "cp"), label.removesuffix("-i"))
    for spelling in (label, *others):
        try:
            b"a".decode(spelling)
        except UnicodeError:
            pass  # one byte is not a whole character everywhere
        except (LookupError, ValueError):
            continue
        found = codecs.lookup(spelling).name
        return None if found in _NO_CHARSETS else found
    return None
