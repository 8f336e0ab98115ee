"""A body of `multipart/form-data` (RFC 7578): its fields by name, files among them."""

import base64
import binascii
import quopri
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser

from models.core.base import JsonObject
from runtime.content_types import ContentType, extended_parameter, known_charset, parameters_of
from runtime.errors import ValidationError

TYPE = "multipart/form-data"
_LONGEST_BOUNDARY = 70
_MOST_PARTS = 1_000
_MOST_HEADERS = 16
_LONGEST_HEADER = 8_192
_CHARSET = "_charset_"
"""The field that names the charset of the others (RFC 7578, 4.6)."""
_CODINGS: Mapping[str, Callable[[bytes], bytes]] = {
    "base64": base64.b64decode,
    "quoted-printable": quopri.decodestring,
}


@dataclass(slots=True)
class _Part:
    headers: dict[str, str] = field(default_factory=dict)
    content: bytearray = field(default_factory=bytearray)


def form_pairs(content_type: str, body: bytes) -> Sequence[tuple[str, JsonValue]]:
    """The fields of a form in their order. Raises ValidationError.

    A file is `{name, mimeType, byteSize, base64}`, and so is what is no text, without a name.
    """
    boundary = parameters_of(content_type)[1].get("boundary", "")
    if not 1 <= len(boundary) <= _LONGEST_BOUNDARY or not boundary.isascii():
        raise ValidationError.at("Content-Type", "The form names no boundary.")
    named = [(*_naming(part), part) for part in _parts(boundary.encode(), body)]
    stated = (bytes(part.content) for name, _, part in named if name == _CHARSET)
    charset = known_charset(next(stated, b"")[:40].decode("latin-1"))
    return [(name, _value(part, filename, charset)) for name, filename, part in named]


def _parts(boundary: bytes, body: bytes) -> Sequence[_Part]:
    reader = _Reader()
    # What is before the first boundary is for readers of mail (RFC 2046, 5.1.1).
    opening = b"--" + boundary
    start = 0 if body.startswith(opening) else body.find(b"\r\n" + opening) + 2
    if start == 1:
        raise _broken("The form does not begin with its boundary.")
    try:
        reader.parser(boundary).write(body[start:])
    except FormParserError:
        raise _broken("The form is malformed.") from None
    if not reader.is_whole:
        raise _broken("The form ends before its last boundary.")
    return reader.parts


class _Reader:
    """Collects the parts of a form."""

    def __init__(self) -> None:
        self.parts: list[_Part] = []
        self.is_whole = False
        self._name = self._text = b""

    def parser(self, boundary: bytes) -> MultipartParser:
        return MultipartParser(
            boundary,
            {
                "on_part_begin": self._begin,
                "on_header_field": self._header_name,
                "on_header_value": self._header_value,
                "on_header_end": self._header_end,
                "on_part_data": self._data,
                "on_end": self._end,
            },
            max_header_count=_MOST_HEADERS,
            max_header_size=_LONGEST_HEADER,
        )

    def _begin(self) -> None:
        if len(self.parts) == _MOST_PARTS:
            raise _broken(f"A form has at most {_MOST_PARTS:,} parts.")
        self.parts.append(_Part())

    def _header_name(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._text += data[start:end]

    def _header_end(self) -> None:
        name, self._name = self._name.decode("latin-1").lower(), b""
        text, self._text = self._text, b""
        try:
            self.parts[-1].headers.setdefault(name, text.decode())
        except UnicodeDecodeError:
            self.parts[-1].headers.setdefault(name, text.decode("cp1252", "backslashreplace"))

    def _data(self, data: bytes, start: int, end: int) -> None:
        self.parts[-1].content += data[start:end]

    def _end(self) -> None:
        self.is_whole = True


def _naming(part: _Part) -> tuple[str, str | None]:
    """The name of a part, and that of its file if it is one."""
    disposition, given = parameters_of(part.headers.get("content-disposition", ""))
    name = _name(given, "name")
    if disposition != "form-data" or name is None:
        raise _broken("A part of the form has no name.")
    return name, _name(given, "filename")


def _name(given: Mapping[str, str], key: str) -> str | None:
    """A name as it is extended to other charsets, else as browsers write it."""
    name = extended_parameter(given, key)
    if name is None:
        name = given.get(key)
        for code, sign in (("%22", '"'), ("%0D", "\r"), ("%0A", "\n")):
            name = name and name.replace(code, sign)
    if name is not None and "\x00" in name:
        raise _broken("A name of the form has a NUL.")
    return name


def _value(part: _Part, filename: str | None, charset: str | None) -> JsonValue:
    content = _decoded(part)
    declared = part.headers.get("content-type", "")
    said = ContentType.parse(declared or "text/plain")
    if filename is None:
        text = ContentType(said.media_type, said.charset or charset).decode(content)
        if text is not None:
            return text
    described: JsonObject = {
        "name": filename,
        "mimeType": declared or "application/octet-stream",
        "byteSize": len(content),
        "base64": base64.b64encode(content).decode(),
    }
    return described


def _decoded(part: _Part) -> bytes:
    """The bytes of a part, which old senders write in other ones (RFC 7578, 4.7)."""
    coding = part.headers.get("content-transfer-encoding", "").strip().lower()
    try:
        return _CODINGS.get(coding, bytes)(bytes(part.content))
    except (binascii.Error, ValueError):
        raise _broken(f"A part of the form is not written in {coding}.") from None


def _broken(message: str) -> ValidationError:
    return ValidationError.at("body", message)
