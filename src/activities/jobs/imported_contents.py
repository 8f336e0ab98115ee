"""The contents of resources that are imported: pages as blocks, files in the object store."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from activities.providers.adapter import (
    MAX_DOWNLOAD_BYTES,
    MAX_READ_BYTES,
    RETRIED,
    Downloaded,
    ProblemKind,
    ProviderProblem,
)
from activities.providers.calls import OpenConnection, in_time
from models.content.files.commands import new_object_key
from models.content.files.rules import Content, file_name, media_type
from models.core.base import JsonObject
from models.sources.external_resources.rules.resources import ProviderResource
from models.sources.resource_imports.kinds import ImportedKind
from models.sources.resource_imports.rows import ImportedRow
from models.sources.resource_imports.rules import HTML_TYPES, MARKDOWN_TYPES, PAGE_TYPES, essence
from runtime.file_digests import size_and_digest
from runtime.object_store import ObjectStore

AT_ONCE = 8
"""Resources of one import that are asked for side by side."""
BEGIN_SECONDS = 120.0
"""The time in which a chunk begins downloads: the last ones end within its five minutes."""
DOWNLOAD_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Fetched:
    """The content of one resource: blocks of a page, or a file; or why there is none."""

    blocks: list[JsonObject] | None = None
    content: Content | None = None
    digest: str = ""
    problem: str | None = None


async def fetch_contents(
    connection: OpenConnection, rows: Sequence[ImportedRow], store: ObjectStore, directory: Path
) -> list[Fetched | None]:
    """The contents of resources, in their order; None where there was no time to ask.

    Raises ProviderProblem for what concerns all of them: a provider that is away, or does not
    accept the credentials.
    """
    gate, ends = asyncio.Semaphore(AT_ONCE), time.monotonic() + BEGIN_SECONDS

    async def one(row: ImportedRow) -> Fetched | ProviderProblem | None:
        """A problem is a value, so that it does not cancel what is asked for beside it."""
        async with gate:
            if time.monotonic() > ends:
                return None
            try:
                return await _fetch(connection, row, store, directory / str(row.id))
            except ProviderProblem as problem:
                concerns_all = problem.kind in {*RETRIED, ProblemKind.AUTH}
                if concerns_all or row.id == row.root_id:
                    return problem
                return Fetched(problem=problem.message)

    contents: list[Fetched | None] = []
    for found in await asyncio.gather(*(one(row) for row in rows)):
        if isinstance(found, ProviderProblem):
            raise found
        contents.append(found)
    return contents


async def _fetch(
    connection: OpenConnection, row: ImportedRow, store: ObjectStore, path: Path
) -> Fetched:
    resource = ProviderResource.model_validate(
        {
            "externalType": row.external_type,
            "externalId": row.external_id,
            "name": row.resource_name,
            "surfaceKind": "generic",
            "capabilities": [],
            **({} if row.mime_type is None else {"mimeType": row.mime_type}),
        }
    )
    got = await in_time(
        connection.adapter.download(connection.access, resource, path, {}), DOWNLOAD_SECONDS
    )
    size, digest = await asyncio.to_thread(size_and_digest, path)
    if size > MAX_DOWNLOAD_BYTES:
        raise ProviderProblem(ProblemKind.TOO_LARGE, "The resource is larger than 100 MiB.")
    if row.kind == ImportedKind.PAGE:
        return await _page(got, path, size, digest)
    key = new_object_key(row.workspace_id)
    await store.put_file(key, path)
    content = Content(
        name=file_name(row.resource_name),
        mime_type=media_type(got.mime_type),
        byte_size=size,
        sha256=digest,
        object_key=key,
    )
    return Fetched(content=content, digest=digest.hex())


async def _page(got: Downloaded, path: Path, size: int, digest: bytes) -> Fetched:
    mime_type = essence(got.mime_type)
    if mime_type not in PAGE_TYPES:
        return Fetched(problem=f"A document of the type {mime_type} cannot become a page.")
    if size > MAX_READ_BYTES:
        return Fetched(problem="The document is larger than 1 MiB.")
    return await asyncio.to_thread(_blocks_of, path, mime_type, digest)


def _blocks_of(path: Path, mime_type: str, digest: bytes) -> Fetched:
    # The parsers are much to import, and few workers read a document.
    from activities.providers import documents  # noqa: PLC0415

    content = path.read_bytes()
    try:
        if mime_type in HTML_TYPES:
            blocks = documents.html_document(content)
        elif mime_type in MARKDOWN_TYPES:
            blocks = documents.markdown_document(content)
        else:
            blocks = documents.text_document(content)
    except documents.UnreadableDocumentError as error:
        return Fetched(problem=str(error))
    return Fetched(blocks=blocks, digest=digest.hex())
