"""The sources of imports, and their previews."""

import base64
import binascii
from urllib.parse import urlsplit

from pydantic_core import to_json

from models.content.files.queries import readable_file
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.sources.connections.queries import get_connection
from models.sources.data_source_runs.rules import ImportKind
from models.sources.data_source_runs.shapes import ImportSource, PreviewImport
from models.sources.data_sources.previews import Read, accept_reading, checked_target
from models.sources.data_sources.rules.configs import DataSourceKind
from models.sources.data_sources.rules.connection_uses import check_use
from models.sources.tabular.rules.options import MAX_FILE_BYTES, TableFormat, format_named
from runtime.database import UnitOfWork
from runtime.errors import ValidationError


async def accept_import_preview(
    work: UnitOfWork,
    actor: Actor,
    preview_id: Id,
    body: PreviewImport,
    draft: JsonObject | None = None,
) -> None:
    """Accept the job that reads the first rows; a page keeps its `draft` beside them.

    Raises what `import_source` raises.
    """
    kind, config = await import_source(work, actor, body)
    target = await checked_target(work, actor, body.fields, body.target_database_id)
    await accept_reading(work, actor, preview_id, Read(kind, config, body.limit, target), draft)


async def import_source(
    work: UnitOfWork, actor: Actor, body: ImportSource
) -> tuple[DataSourceKind, JsonObject]:
    """The source that a run reads, as the config of a data source says it.

    Raises `NotFoundError` for what the body names, `ValidationError` for what cannot be imported.
    """
    kind, config = await _source(work, actor, body)
    return kind, {**config, **_options(body)}


async def _source(
    work: UnitOfWork, actor: Actor, body: ImportSource
) -> tuple[DataSourceKind, JsonObject]:
    match body.kind:
        case ImportKind.FILE:
            return DataSourceKind.FILE, await _file(work, actor, body)
        case ImportKind.URL:
            return _url(body)
        case ImportKind.INLINE:
            return DataSourceKind.FILE, _inline(body)
        case _:
            return await _connection(work, actor, body)


async def _connection(
    work: UnitOfWork, actor: Actor, body: ImportSource
) -> tuple[DataSourceKind, JsonObject]:
    _required(body.connection_id, "connectionId", body.kind)
    assert body.connection_id is not None
    found = await get_connection(work, actor, body.connection_id)
    check_use(DataSourceKind.CONNECTION, {}, "connectionId", found)
    _required(body.resource, "resource", body.kind)
    assert body.resource is not None
    resource = body.resource.model_dump(mode="json", by_alias=True, exclude_none=True)
    return DataSourceKind.CONNECTION, {
        "connectionId": str(body.connection_id),
        "resource": resource,
    }


def _required(value: object, name: str, kind: ImportKind) -> None:
    if value is None:
        raise ValidationError.at(name, f"An import of the kind {kind.value} needs it.")


async def _file(work: UnitOfWork, actor: Actor, body: ImportSource) -> JsonObject:
    _required(body.file_id, "fileId", body.kind)
    assert body.file_id is not None
    found = await readable_file(work, actor, body.file_id)
    if found.byte_size > MAX_FILE_BYTES:
        raise ValidationError.at("fileId", f"holds more than {MAX_FILE_BYTES // 1024**2} MiB")
    file_format = body.format or format_named(found.name, found.mime_type)
    return {"fileId": str(body.file_id), "format": _known(file_format).value}


def _url(body: ImportSource) -> tuple[DataSourceKind, JsonObject]:
    _required(body.url, "url", body.kind)
    assert body.url is not None
    file_format = body.format or format_named(urlsplit(body.url).path)
    return DataSourceKind.HTTP_JSON, {
        "url": body.url,
        "headers": body.headers,
        # None: what is fetched tells it.
        "format": None if file_format is None else file_format.value,
    }


def _inline(body: ImportSource) -> JsonObject:
    if [body.content, body.text, body.rows].count(None) != 2:
        raise ValidationError.at(
            "content", "Inline takes exactly one of `content` in base64, `text` and `rows`."
        )
    if body.rows is not None:
        content = base64.b64encode(to_json(body.rows)).decode()
        return {"content": content, "format": TableFormat.JSON.value, "jsonPath": "$"}
    content = body.content or base64.b64encode((body.text or "").encode()).decode()
    try:
        base64.b64decode(content, validate=True)
    except binascii.Error:
        raise ValidationError.at("content", "must be base64; `text` takes plain text") from None
    if body.format is None:
        raise ValidationError.at("format", "`content` and `text` need it: csv, say, or json.")
    return {"content": content, "format": body.format.value}


def _known(file_format: TableFormat | None) -> TableFormat:
    if file_format is None:
        known = ", ".join(TableFormat)
        raise ValidationError.at("format", f"The name does not tell it; name one of: {known}.")
    return file_format


def _options(body: ImportSource) -> JsonObject:
    """Options for reading the file; what stands beside `options` goes before what stands in it."""
    options: JsonObject = body.options.model_dump(mode="json", by_alias=True, exclude_none=True)
    if body.sheet_name is not None:
        options["sheetName"] = body.sheet_name
    if body.header_row is not None:
        options["headerRow"] = body.header_row
    return options
