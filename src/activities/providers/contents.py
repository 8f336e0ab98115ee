"""The kind of a resource and the reading of its content, by media type; rows as CSV."""

import asyncio
import csv
import io
import mimetypes
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from activities.providers import adapter
from activities.providers.web import Web, shown_text
from models.sources.external_resources.rules import resources as external_resources
from models.sources.external_resources.rules.resources import ResourceSurfaceKind as Kind
from runtime import strict_json

CSV, HTML, JSON, MARKDOWN = "text/csv", "text/html", "application/json", "text/markdown"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
BYTES = "application/octet-stream"

FOLDER = (
    external_resources.Capability.BROWSE,
    external_resources.Capability.MOUNT,
    external_resources.Capability.IMPORT,
)
CONTENT = (
    external_resources.Capability.READ,
    external_resources.Capability.MOUNT,
    external_resources.Capability.IMPORT,
)
FORM = (
    external_resources.Capability.READ,
    external_resources.Capability.MOUNT,
    external_resources.Capability.IMPORT_FORM,
)
SHOWN = (external_resources.Capability.MOUNT,)

_FORMATS = {
    CSV: external_resources.ReadFormat.CSV,
    HTML: external_resources.ReadFormat.HTML,
    "application/xhtml+xml": external_resources.ReadFormat.HTML,
    MARKDOWN: external_resources.ReadFormat.MARKDOWN,
    "text/x-markdown": external_resources.ReadFormat.MARKDOWN,
}
_KINDS = {
    CSV: Kind.SPREADSHEET,
    "text/tab-separated-values": Kind.SPREADSHEET,
    XLSX: Kind.SPREADSHEET,
    "application/vnd.ms-excel": Kind.SPREADSHEET,
    "application/vnd.oasis.opendocument.spreadsheet": Kind.SPREADSHEET,
    HTML: Kind.DOCUMENT,
    MARKDOWN: Kind.DOCUMENT,
    "text/x-markdown": Kind.DOCUMENT,
}
_SUFFIXES = {
    ".md": MARKDOWN,
    ".markdown": MARKDOWN,
    ".csv": CSV,
    ".xlsx": XLSX,
}


def media_type(name: str, declared: str | None = None) -> str:
    """The media type of a file: the provider's, else by its name. Lower case, no parameters."""
    for suffix, known in _SUFFIXES.items():
        if name.lower().endswith(suffix):
            return known
    media = (declared or "").partition(";")[0].strip().lower()
    if media and media != BYTES:
        return media
    return mimetypes.guess_type(name, strict=True)[0] or media or BYTES


def kind_of(mime_type: str) -> Kind:
    return _KINDS.get(mime_type, Kind.FILE)


def capabilities_of(kind: Kind) -> list[str]:
    """The capabilities of a resource of a kind, by the names of the wire."""
    able = CONTENT
    if kind in {Kind.FOLDER, Kind.REPOSITORY}:
        able = FOLDER
    elif kind is Kind.FORM:
        able = FORM
    return [one.value for one in able]


def is_text(mime_type: str) -> bool:
    """True when a content can be shown."""
    return (
        mime_type.startswith("text/")
        or mime_type in {JSON, "application/xml", "application/xhtml+xml", "application/yaml"}
        or mime_type.endswith(("+json", "+xml"))
    )


def content_of(
    resource: external_resources.ProviderResource, mime_type: str, text: str
) -> adapter.ReadContent:
    """Text as the content of a resource."""
    form, content = external_resources.ReadFormat.TEXT, shown_text(text)
    value: Any = content
    if mime_type == JSON or mime_type.endswith("+json"):
        try:
            value, form = (
                strict_json.parse(content.encode()),
                external_resources.ReadFormat.JSON,
            )
        except strict_json.StrictJsonError:
            value = content
    else:
        form = _FORMATS.get(mime_type, external_resources.ReadFormat.TEXT)
    return adapter.ReadContent(form, value, resource.revision, fallback_url=resource.canonical_url)


async def fetch_file(
    web: Web,
    resource: external_resources.ProviderResource,
    url: str,
    path: Path,
    conditions: Mapping[str, str],
) -> adapter.Downloaded:
    """Write a file that has an ETag, unless it is the one known. Raises ProviderProblem."""
    asked = {"If-None-Match": conditions["etag"]} if "etag" in conditions else {}
    answer = await web.download(url, path, headers=asked)
    etag, unchanged = answer.headers.get("etag"), answer.status == 304
    validators = dict(conditions) if unchanged else {"etag": etag} if etag else {}
    declared = answer.content_type.media_type or resource.mime_type
    mime_type = media_type(resource.name, declared)
    return adapter.Downloaded(resource.name, mime_type, validators, unchanged)


def link_to(resource: external_resources.ProviderResource) -> adapter.ReadContent:
    """A resource whose content is not shown: where it is."""
    address = resource.canonical_url
    return adapter.ReadContent(
        external_resources.ReadFormat.LINK, None, resource.revision, fallback_url=address
    )


Row = Mapping[str, str]
"""The cells of a row, by the names of their columns; empty ones are left out."""


async def csv_text(columns: Sequence[str], pages: AsyncIterator[Sequence[Row]]) -> str:
    """Rows as they are shown. Raises ProviderProblem beyond MAX_READ_BYTES."""
    parts = [part async for part in _parts(columns, pages, adapter.MAX_READ_BYTES)]
    return b"".join(parts).decode()


async def write_csv(
    path: Path, columns: Sequence[str], pages: AsyncIterator[Sequence[Row]]
) -> None:
    """Rows in a file. Raises ProviderProblem beyond MAX_DOWNLOAD_BYTES."""
    with await asyncio.to_thread(path.open, "wb") as file:
        async for part in _parts(columns, pages, adapter.MAX_DOWNLOAD_BYTES):
            await asyncio.to_thread(file.write, part)


async def _parts(
    columns: Sequence[str], pages: AsyncIterator[Sequence[Row]], limit: int
) -> AsyncIterator[bytes]:
    written = 0
    yield _lines([columns])
    async for page in pages:
        part = _lines([[row.get(name, "") for name in columns] for row in page])
        written += len(part)
        if written > limit:
            message = f"The table is larger than {limit} bytes."
            raise adapter.ProviderProblem(adapter.ProblemKind.TOO_LARGE, message)
        yield part


def _lines(rows: Sequence[Sequence[str]]) -> bytes:
    out = io.StringIO()
    csv.writer(out).writerows([[shown_text(cell) for cell in row] for row in rows])
    return out.getvalue().encode("utf-8", "replace")
