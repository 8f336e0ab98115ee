"""Accepting imports of spreadsheets, which are runs without a data source, and their previews."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import sqlalchemy as sa
from pydantic_core import to_json

from models.content.files.queries import readable_file
from models.content.items.commands import check_parent
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.lifecycle import commands as lifecycle
from models.core.lifecycle.commands import require_place
from models.data.fields.queries import require_edit
from models.messages.jobs.rules import JobStatus
from models.sources.connections.store import get_connection
from models.sources.data_source_runs import rules
from models.sources.data_source_runs.acceptance import start_run
from models.sources.data_source_runs.shapes import ImportSource, ImportSpreadsheet, PreviewImport
from models.sources.data_source_runs.staging import find_run
from models.sources.data_source_runs.tables import DATA_SOURCE_RUNS, SourceRunRow, data_source_run
from models.sources.data_source_runs.targets import DENIED
from models.sources.data_sources.commands import Read, accept_reading, check_fields, checked_target
from models.sources.data_sources.rules import DataSourceKind, RemovedRows, WriteMode, check_use
from models.sources.tabular.rules.options import MAX_FILE_BYTES, TableFormat, format_named
from runtime import errors
from runtime.crypto import fingerprint
from runtime.database import UnitOfWork
from runtime.temporal.workflow_kinds import WorkflowKind

_MODES: Mapping[rules.ImportMode, WriteMode] = {
    rules.ImportMode.INSERT: WriteMode.APPEND,
    rules.ImportMode.UPSERT: WriteMode.UPSERT,
    rules.ImportMode.REPLACE: WriteMode.REPLACE,
}


@dataclass(frozen=True, slots=True)
class Renewed:
    """The source that an import brings in again and again, leaving what people changed there.

    Columns that suggest a field of `left_out` are not read: people removed those fields.
    """

    source_id: Id
    left_out: Sequence[str] = ()


async def accept_import(
    work: UnitOfWork,
    actor: Actor,
    run_id: Id,
    body: ImportSpreadsheet,
    renewed: Renewed | None = None,
) -> Id:
    """Accept an import; gives its id, which is that of an earlier one with its `clientMutationId`.

    Raises `NotFoundError` for what the body names, `DeniedError` without edit access to the target
    or to the place of the new database, `ValidationError` for what cannot be imported,
    `InProgressError` and `ConflictingMutationError` for a `clientMutationId` in use,
    `TooMuchOpenError`.
    """
    kind, config = await import_source(work, actor, body)
    await _check_target(work, actor, body)
    plan = _plan(body, kind, config, renewed)
    digest = fingerprint(to_json(plan)).hex()
    row = {
        "id": run_id,
        "workspace_id": actor.workspace_id,
        "database_id": body.target_database_id,
        "trigger": rules.RunTrigger.IMPORT.value,
        "actor_user_id": actor.user_id,
        "client_mutation_id": body.client_mutation_id,
        "plan": {**plan, "digest": digest, "force": True},
        "progress": {},
        "stats": {},
    }
    await _forget_old(work, actor, body.client_mutation_id)
    if not await lifecycle.accept(work, DATA_SOURCE_RUNS, row):
        return await _earlier(work, actor, run_id, body.client_mutation_id, digest)
    of_imports = DATA_SOURCE_RUNS.table.c.data_source_id.is_(None)
    await require_place(work, actor, DATA_SOURCE_RUNS, WorkflowKind.SPREADSHEET_IMPORT, of_imports)
    await start_run(work, await find_run(work, run_id))
    return run_id


def _plan(
    body: ImportSpreadsheet, kind: DataSourceKind, config: JsonObject, renewed: Renewed | None
) -> JsonObject:
    """The plan of the run."""
    plan: JsonObject = {
        "kind": kind.value,
        "config": config,
        "label": body.label,
        "fields": [one.to_json() for one in body.fields],
        "keyFields": body.key_fields,
        "writeMode": _MODES[body.mode].value,
        "removedRows": RemovedRows.DELETE.value
        if body.mode is rules.ImportMode.REPLACE
        else RemovedRows.KEEP.value,
        "removalGuardPercent": 100,
        "parentItemId": None if body.parent_item_id is None else str(body.parent_item_id),
    }
    if renewed is not None:
        plan |= {
            "sourceId": str(renewed.source_id),
            "leftOut": list(renewed.left_out),
            "writeMode": WriteMode.UPSERT.value,
            "removedRows": RemovedRows.ARCHIVE.value,
        }
    return plan


async def _check_target(work: UnitOfWork, actor: Actor, body: ImportSpreadsheet) -> None:
    check_fields(body.fields, body.key_fields)
    if body.mode is rules.ImportMode.UPSERT and not body.key_fields:
        raise errors.ValidationError.at("keyFields", "Required for upsert.")
    if body.target_database_id is not None:
        await require_edit(work, actor, body.target_database_id, DENIED)
    else:
        await check_parent(work, actor, body.parent_item_id)


async def _forget_old(work: UnitOfWork, actor: Actor, mutation_id: str | None) -> None:
    """Let a `clientMutationId` stand for a new import once its old one is old enough."""
    if mutation_id is not None:
        await work.execute(
            sa.update(data_source_run)
            .where(
                data_source_run.c.workspace_id == actor.workspace_id,
                data_source_run.c.client_mutation_id == mutation_id,
                data_source_run.c.completed_at < work.now - rules.KEPT_RESULT,
            )
            .values(client_mutation_id=None)
        )


async def _earlier(
    work: UnitOfWork, actor: Actor, run_id: Id, mutation_id: str | None, digest: str
) -> Id:
    """The import that was accepted before under this `clientMutationId`, or under this id."""
    condition = data_source_run.c.id == run_id
    if mutation_id is not None:
        condition = data_source_run.c.client_mutation_id == mutation_id
    run = await work.first(
        sa.select(data_source_run).where(
            data_source_run.c.workspace_id == actor.workspace_id,
            condition,
            data_source_run.c.status.not_in([JobStatus.FAILED, JobStatus.CANCELLED]),
        ),
        of=SourceRunRow,
    )
    if run is None:
        return run_id
    if run.plan["digest"] != digest:
        raise errors.ConflictingMutationError(
            "This clientMutationId was used with a different input. Use a new one."
        )
    if run.status != JobStatus.SUCCEEDED and run.id != run_id:
        raise errors.InProgressError("The import with this clientMutationId is still running.")
    return run.id


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
    target = await checked_target(
        work, actor, body.fields, body.target_database_id, body.key_fields
    )
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
        case rules.ImportKind.FILE:
            return DataSourceKind.FILE, await _file(work, actor, body)
        case rules.ImportKind.URL:
            return _url(body)
        case rules.ImportKind.INLINE:
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


def _required(value: object, name: str, kind: rules.ImportKind) -> None:
    if value is None:
        raise errors.ValidationError.at(name, f"Required for imports of the kind {kind.value}.")


async def _file(work: UnitOfWork, actor: Actor, body: ImportSource) -> JsonObject:
    _required(body.file_id, "fileId", body.kind)
    assert body.file_id is not None
    found = await readable_file(work, actor, body.file_id)
    if found.byte_size > MAX_FILE_BYTES:
        raise errors.ValidationError.at(
            "fileId", f"must be at most {MAX_FILE_BYTES // 1024**2} MiB"
        )
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
        raise errors.ValidationError.at(
            "content", "Set exactly one of `content` (base64), `text` and `rows`."
        )
    if body.rows is not None:
        content = base64.b64encode(to_json(body.rows)).decode()
        return {"content": content, "format": TableFormat.JSON.value, "jsonPath": "$"}
    content = body.content or base64.b64encode((body.text or "").encode()).decode()
    try:
        base64.b64decode(content, validate=True)
    except binascii.Error:
        raise errors.ValidationError.at(
            "content", "must be base64; use `text` for plain text"
        ) from None
    if body.format is None:
        raise errors.ValidationError.at(
            "format", "Required with `content` and `text`, for example csv or json."
        )
    return {"content": content, "format": body.format.value}


def _known(file_format: TableFormat | None) -> TableFormat:
    if file_format is None:
        known = ", ".join(TableFormat)
        raise errors.ValidationError.at("format", f"Unknown from the name. Set one of: {known}.")
    return file_format


def _options(body: ImportSource) -> JsonObject:
    """Options for reading the file; what stands beside `options` goes before what stands in it."""
    options: JsonObject = body.options.model_dump(mode="json", by_alias=True, exclude_none=True)
    if body.sheet_name is not None:
        options["sheetName"] = body.sheet_name
    if body.header_row is not None:
        options["headerRow"] = body.header_row
    return options
