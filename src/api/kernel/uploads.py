"""Writes the body of a request to the object store while it arrives.

The pipeline calls `uploaded` before its transaction. Neither memory nor a transaction is held for
the body.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from hashlib import sha256
from urllib.parse import unquote

from starlette.types import Receive

from api.kernel.body import ClientGoneError, too_large
from api.kernel.multipart import FileForm, form_boundary
from api.kernel.request import ApiRequest
from models.content.files.commands import new_object_key
from models.content.files.rules import Content, file_name, media_type
from runtime.errors import PlatformError, ValidationError
from runtime.ids import new_id
from runtime.settings import Settings

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

    An object that gets no row is removed again. Raises ClientGoneError, PayloadTooLargeError,
    ValidationError for a malformed form, and RequestTimeoutError for a body that stalls.
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
    # Any other error may be a commit whose answer was lost: `sweep_orphans` looks at it later.
    if request.replayed:
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
        raise ValidationError.at(NAME_HEADER, "Send the header once.")
    try:
        return unquote(values[0].decode("ascii"), errors="strict") if values else ""
    except UnicodeDecodeError:
        raise ValidationError.at(NAME_HEADER, "Percent-encode the name as UTF-8.") from None
