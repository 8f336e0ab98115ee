"""Uploads: the body of a request or the one file of a form (RFC 7578), stored as it arrives.

The pipeline calls `uploaded` before its transaction. Neither memory nor a transaction is held for
the body.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from hashlib import sha256
from urllib.parse import unquote

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.types import Receive

from api.kernel.body import ClientGoneError, too_large
from api.kernel.request import ApiRequest
from models.content.files.commands import new_object_key
from models.content.files.rules import Content, file_name, media_type
from runtime import content_types
from runtime.configuration.settings import Settings
from runtime.errors import PlatformError, ValidationError
from runtime.ids import new_id

NAME_HEADER = "X-File-Name"
ENVELOPE = 64 * 1024
"""The bytes a form may add to the bytes of its file."""


@asynccontextmanager
async def uploaded(
    request: ApiRequest,
    bundles: str | None = None,
    on_fields: Callable[[Mapping[str, str]], None] | None = None,
) -> AsyncIterator[None]:
    """Store the body of the request, for the block that writes its row.

    `bundles` as in `Access`, `on_fields` as in `FileForm`.

    An object that gets no row, or that of a dry run, is removed again.

    Raises ClientGoneError, PayloadTooLargeError, ValidationError for a malformed form, and
    RequestTimeoutError for a body that stalls.
    """
    store = request.services.store
    key = f"{bundles}/{new_id()}" if bundles else new_object_key(request.actor.workspace_id)
    limit = upload_limit(request.services.settings, bundles)
    request.upload = await _store(request, key, limit, on_fields)
    try:
        yield
    except PlatformError:
        await store.delete(key)
        raise
    # Any other error may be a commit whose answer was lost: the daily sweep looks at it later.
    if request.replayed or request.is_dry_run:
        await store.delete(key)


def upload_limit(settings: Settings, bundles: str | None) -> int:
    """Bytes of an upload; `bundles` as in `Access`."""
    return settings.upload_limit if bundles is None else settings.bundle_limit


async def _store(
    request: ApiRequest,
    key: str,
    limit: int,
    on_fields: Callable[[Mapping[str, str]], None] | None,
) -> Content:
    content_type = b"".join(request.headers_named(b"content-type")[:1])
    boundary = form_boundary(content_type)
    body = _chunks(request.receive, limit + ENVELOPE)
    form = None if boundary is None else FileForm(boundary, on_fields)
    digest = sha256()
    size = 0

    async def counted() -> AsyncIterator[bytes]:
        nonlocal size
        async for chunk in body if form is None else form.file(body):
            size += len(chunk)
            if size > limit:
                raise too_large(limit)
            digest.update(chunk)
            yield chunk

    await request.services.store.put(key, counted())
    declared = content_type.decode("latin-1") if form is None else form.media_type
    return Content(
        name=file_name(_named(request) or (form and form.name) or ""),
        mime_type=media_type(declared),
        byte_size=size,
        sha256=digest.digest(),
        object_key=key,
    )


async def _chunks(receive: Receive, limit: int) -> AsyncIterator[bytes]:
    """The body in chunks. Raises PayloadTooLargeError, RequestTimeoutError and ClientGoneError."""
    size = 0
    has_more = True
    while has_more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        chunk: bytes = message.get("body", b"")
        size += len(chunk)
        if size > limit:
            raise too_large(limit)
        has_more = message.get("more_body", False)
        if chunk:
            yield chunk


def _named(request: ApiRequest) -> str:
    """The name that the header gives, percent-encoded; raises ValidationError."""
    values = request.headers_named(NAME_HEADER.lower().encode())
    if len(values) > 1:
        raise ValidationError.at(NAME_HEADER, "Send the header only once.")
    try:
        return unquote(values[0].decode("ascii"), errors="strict") if values else ""
    except UnicodeDecodeError:
        raise ValidationError.at(NAME_HEADER, "Percent-encode the name as UTF-8.") from None


_FORM = b"multipart/form-data"
_LONGEST_BOUNDARY = 70
_HEADERS = 4
_LONGEST_HEADER = 4096
_LONGEST_PREAMBLE = 4096
_MOST_FIELDS = 20
_LONGEST_FIELD = 4096


def form_boundary(content_type: bytes) -> bytes | None:
    """The boundary that the header `Content-Type` of a form names; None for any other type.

    Raises ValidationError for a form without a boundary of 1 to 70 characters (RFC 2046, 5.1.1).
    """
    essence, options = parse_options_header(content_type)
    if essence != _FORM:
        return None
    boundary = options.get(b"boundary", b"")
    if not 1 <= len(boundary) <= _LONGEST_BOUNDARY:
        raise ValidationError.at(
            "Content-Type", f"The form has no boundary of 1 to {_LONGEST_BOUNDARY} characters."
        )
    return boundary


class FileForm:
    """Reads one form; `name` and `media_type` are set before the first bytes of the file come.

    `on_fields` takes the fields before the file, and may refuse them; without it there are none.

    A form holds one file, small headers and a short preamble; that of a page has a few short fields
    before its file (ADR 0092). python-multipart does the parsing; Starlette's reader would collect
    the whole file first (docs/adr/0025).
    """

    def __init__(
        self, boundary: bytes, on_fields: Callable[[Mapping[str, str]], None] | None = None
    ) -> None:
        self.name: str | None = None
        self.media_type: str | None = None
        self._on_fields = on_fields
        self._fields: dict[str, str] = {}
        self._field: str | None = None
        self._text = b""
        self._opening = b"--" + boundary
        self._has_file = False
        self._whole = False
        self._header = b""
        self._value = b""
        self._headers: dict[bytes, bytes] = {}
        self._pieces: list[bytes] = []
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._on_part_begin,
                "on_header_field": self._on_header_field,
                "on_header_value": self._on_header_value,
                "on_header_end": self._on_header_end,
                "on_headers_finished": self._on_headers_finished,
                "on_part_data": self._on_part_data,
                "on_part_end": self._on_part_end,
                "on_end": self._on_end,
            },
            max_header_count=_HEADERS,
            max_header_size=_LONGEST_HEADER,
        )

    async def file(self, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The bytes of the file. Raises ValidationError for a body that is no such form."""
        async for chunk in self._after_preamble(body):
            for piece in self._read(chunk):
                yield piece
        if not self._whole:
            raise _broken("The form ends before its last boundary.")
        if not self._has_file:
            raise _broken("The form has no file.")

    async def _after_preamble(self, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The body from its first boundary: lines before it say nothing (RFC 2046, 5.1.1)."""
        head, begin, longest = b"", -1, _LONGEST_PREAMBLE + len(self._opening)
        async for chunk in body:
            head += chunk
            begin = (b"\r\n" + head[:longest]).find(b"\r\n" + self._opening)
            if begin >= 0 or len(head) >= longest:
                break
        if begin < 0:
            raise _broken("The form does not begin with its boundary.")
        yield head[begin:]
        async for chunk in body:
            yield chunk

    def _read(self, chunk: bytes) -> list[bytes]:
        try:
            self._parser.write(chunk)
        except FormParserError:
            raise _broken("The form is malformed.") from None
        pieces, self._pieces = self._pieces, []
        return pieces

    def _on_part_begin(self) -> None:
        if self._has_file:
            raise _broken("The form has more than one part. Send one file.")
        self._headers = {}

    def _on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _on_header_end(self) -> None:
        name = self._header.lower()
        if name in self._headers:
            raise _broken("The part repeats a header.")
        self._headers[name] = self._value
        self._header = self._value = b""

    def _on_headers_finished(self) -> None:
        header = _text(self._headers.get(b"content-disposition", b""))
        disposition, given = content_types.parameters_of(header)
        name = content_types.part_parameter(given, "name")
        self.name = content_types.part_parameter(given, "filename")
        is_field = self._on_fields is not None and self.name is None
        if disposition == "form-data" and name is not None and is_field:
            self._begin_field(name)
            return
        if disposition != "form-data" or name != "file":
            raise _broken("The part must be named file.")
        if self.name is None:
            raise _broken("The part has no filename.")
        if self._on_fields is not None:
            self._on_fields(self._fields)
        self._has_file = True
        self.media_type = self._headers.get(b"content-type", b"").decode("latin-1")

    def _begin_field(self, name: str) -> None:
        if name in self._fields or len(self._fields) == _MOST_FIELDS:
            raise _broken("The form repeats a field, or has too many.")
        self._field, self._text = name, b""

    def _on_part_data(self, data: bytes, start: int, end: int) -> None:
        if self._field is None:
            self._pieces.append(data[start:end])
            return
        self._text += data[start:end]
        if len(self._text) > _LONGEST_FIELD:
            raise _broken("A field of the form is too long.")

    def _on_part_end(self) -> None:
        if self._field is None:
            return
        try:
            self._fields[self._field] = self._text.decode()
        except UnicodeDecodeError:
            raise _broken("The form is not valid UTF-8.") from None
        self._field = None

    def _on_end(self) -> None:
        self._whole = True


def _text(header: bytes) -> str:
    try:
        return header.decode()
    except UnicodeDecodeError:
        raise _broken("The filename is not valid UTF-8.") from None


def _broken(message: str) -> ValidationError:
    return ValidationError.at("file", message)
