"""Accepting imports of spreadsheets: runs without a data source."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic_core import to_json
from sqlalchemy import select, update

from models.content.items.commands import check_parent
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.lifecycle import commands as lifecycle
from models.core.work_bounds import require_place
from models.data.fields.queries import require_edit
from models.sources.data_source_runs.commands.acceptance import start_run
from models.sources.data_source_runs.commands.import_sources import import_source
from models.sources.data_source_runs.commands.staging import find_run
from models.sources.data_source_runs.commands.targets import DENIED
from models.sources.data_source_runs.lifecycle import DATA_SOURCE_RUNS
from models.sources.data_source_runs.rows import SourceRunRow
from models.sources.data_source_runs.rules import (
    KEPT_RESULT,
    DataSourceRunStatus,
    ImportMode,
    RunTrigger,
)
from models.sources.data_source_runs.shapes import ImportSpreadsheet
from models.sources.data_source_runs.tables import data_source_run
from models.sources.data_sources.commands import check_fields
from models.sources.data_sources.rules.configs import DataSourceKind, RemovedRows, WriteMode
from runtime.crypto import fingerprint
from runtime.database import UnitOfWork
from runtime.errors import (
    ConflictingMutationError,
    InProgressError,
    ValidationError,
)
from runtime.families import Family

_MODES: Mapping[ImportMode, WriteMode] = {
    ImportMode.INSERT: WriteMode.APPEND,
    ImportMode.UPSERT: WriteMode.UPSERT,
    ImportMode.REPLACE: WriteMode.REPLACE,
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
        "trigger": RunTrigger.IMPORT.value,
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
    await require_place(work, actor, DATA_SOURCE_RUNS, Family.SPREADSHEET_IMPORT, of_imports)
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
        if body.mode is ImportMode.REPLACE
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
    if body.mode is ImportMode.UPSERT and not body.key_fields:
        raise ValidationError.at("keyFields", "An upsert needs the fields that tell rows apart.")
    if body.target_database_id is not None:
        await require_edit(work, actor, body.target_database_id, DENIED)
    else:
        await check_parent(work, actor, body.parent_item_id)


async def _forget_old(work: UnitOfWork, actor: Actor, mutation_id: str | None) -> None:
    """Let a `clientMutationId` stand for a new import once its old one is old enough."""
    if mutation_id is not None:
        await work.execute(
            update(data_source_run)
            .where(
                data_source_run.c.workspace_id == actor.workspace_id,
                data_source_run.c.client_mutation_id == mutation_id,
                data_source_run.c.completed_at < work.now - KEPT_RESULT,
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
        select(data_source_run).where(
            data_source_run.c.workspace_id == actor.workspace_id,
            condition,
            data_source_run.c.status.not_in(
                [DataSourceRunStatus.FAILED, DataSourceRunStatus.CANCELLED]
            ),
        ),
        of=SourceRunRow,
    )
    if run is None:
        return run_id
    if run.plan["digest"] != digest:
        raise ConflictingMutationError(
            "This clientMutationId was used with another input. Choose a new one."
        )
    if run.status != DataSourceRunStatus.SUCCEEDED and run.id != run_id:
        raise InProgressError("The import with this clientMutationId is still running.")
    return run.id
