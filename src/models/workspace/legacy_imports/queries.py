"""Legacy import runs (interface.md#legacy-import-run): their tables, shapes, and reading them."""

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import Annotated, Any, Protocol

import sqlalchemy as sa
from pydantic import Field
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field as TableField
from sqlmodel import SQLModel

from models.core.base import Id, Input, InputId, Moment, Shape, example
from models.core.lifecycle.commands import WorkTable
from models.core.lifecycle.lost_workers import with_worker_wait
from models.core.page_addresses import legacy_import_page
from models.core.pagination import Listed, PageRequest
from models.workspace.legacy_imports import rules
from runtime.database import UnitOfWork
from runtime.postgresql.schema import Timestamp, listed, one_of, table_of
from runtime.temporal.workflow_kinds import WorkflowKind

_EMPTY_LIST = {"server_default": sa.text("'{}'")}
_EMPTY_MAP = {"server_default": sa.text("'{}'")}


class LegacyImportRun(SQLModel, table=True):
    """One bundle on its way in; it belongs to the platform and to no workspace.

    `execution` is what follows the run's id in the id of its present execution: nothing for the
    first, `retry/2` or `rollback/1` for one that went on after the run had ended.
    """

    __tablename__ = "legacy_import_run"
    __table_args__ = (
        sa.ForeignKeyConstraint(["created_by_user_id"], ["app_user.id"]),
        one_of("status", rules.LegacyImportStatus),
        one_of("mode", rules.Mode),
        sa.Index("ix_legacy_import_run_created_at", "created_at", "id"),
        sa.Index("ix_legacy_import_run_completed_at", "completed_at"),
        sa.Index(
            "ix_legacy_import_run_open",
            "id",
            postgresql_where=sa.text(f"status IN ({listed(rules.RUN_LIFECYCLE.open)})"),
        ),
    )

    id: Id = TableField(primary_key=True)
    bundle_object_key: str
    bundle_checksum: str
    uploaded: bool = False
    status: str
    mode: str
    execution: str = TableField(default="", sa_column_kwargs={"server_default": ""})
    executions: int = TableField(default=0, sa_column_kwargs={"server_default": "0"})
    source_snapshot_timestamp: str | None = None
    source_version: str | None = None
    converter_version: str | None = None
    source_counts: dict[str, int] = TableField(sa_type=JSONB, sa_column_kwargs=_EMPTY_MAP)
    warnings: list[str] = TableField(sa_type=sa.ARRAY(sa.Text), sa_column_kwargs=_EMPTY_LIST)
    errors: list[str] = TableField(sa_type=sa.ARRAY(sa.Text), sa_column_kwargs=_EMPTY_LIST)
    approved_at: datetime | None = TableField(default=None, sa_type=Timestamp)
    approved_by_user_id: Id | None = None
    approval_note: str | None = None
    canceled_by_user_id: Id | None = None
    cancellation_reason: str | None = None
    rollback_requested_by_user_id: Id | None = None
    rollback_reason: str | None = None
    rollback_force: bool = TableField(
        default=False, sa_column_kwargs={"server_default": sa.text("false")}
    )
    created_by_user_id: Id
    started_at: datetime | None = TableField(default=None, sa_type=Timestamp)
    completed_at: datetime | None = TableField(default=None, sa_type=Timestamp)
    created_at: datetime = TableField(sa_type=Timestamp)
    updated_at: datetime = TableField(sa_type=Timestamp)


class LegacyImportWorkspace(SQLModel, table=True):
    """One workspace of a bundle and what becomes of it.

    `creates` says that the import makes the target workspace; else it fills one that is there.
    `progress` is where its stage continues.
    """

    __tablename__ = "legacy_import_workspace"
    __table_args__ = (
        sa.UniqueConstraint("run_id", "source_workspace_id"),
        sa.ForeignKeyConstraint(["run_id"], ["legacy_import_run.id"], ondelete="CASCADE"),
        one_of("stage", rules.ImportStage),
        one_of("lifecycle_state", rules.LifecycleState),
        one_of("rollback_state", rules.RollbackState),
    )

    id: Id = TableField(primary_key=True)
    run_id: Id
    position: int
    source_workspace_id: str
    source_name: str
    source_counts: dict[str, int] = TableField(sa_type=JSONB, sa_column_kwargs=_EMPTY_MAP)
    target_workspace_id: Id | None = None
    creates: bool = True
    selected: bool = True
    stage: str
    lifecycle_state: str
    counts: dict[str, int] = TableField(sa_type=JSONB, sa_column_kwargs=_EMPTY_MAP)
    warnings: list[str] = TableField(sa_type=sa.ARRAY(sa.Text), sa_column_kwargs=_EMPTY_LIST)
    errors: list[str] = TableField(sa_type=sa.ARRAY(sa.Text), sa_column_kwargs=_EMPTY_LIST)
    verification: dict[str, Any] = TableField(sa_type=JSONB, sa_column_kwargs=_EMPTY_MAP)
    progress: dict[str, Any] = TableField(sa_type=JSONB, sa_column_kwargs=_EMPTY_MAP)
    rollback_state: str
    attempt: int = TableField(default=0, sa_column_kwargs={"server_default": "0"})
    last_error: str | None = None
    imported_at: datetime | None = TableField(default=None, sa_type=Timestamp)
    created_at: datetime = TableField(sa_type=Timestamp)
    updated_at: datetime = TableField(sa_type=Timestamp)


legacy_import_run = table_of(LegacyImportRun)
legacy_import_workspace = table_of(LegacyImportWorkspace)

LEGACY_IMPORTS = WorkTable(
    legacy_import_run, rules.RUN_LIFECYCLE, workflow_kind=WorkflowKind.LEGACY_IMPORT
)


CHECKSUM = r"^[0-9a-f]{64}$"
OBJECT_KEY = r"^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*$"

Words = Annotated[str, Field(min_length=1, max_length=2000)]
"""The words an administrator writes beside a decision."""

EntryIds = Annotated[list[InputId], Field(max_length=1000)]


class CreateLegacyImport(Input):
    """Body of create legacy import: a bundle that is in the object store already.

    `bundleChecksum` is the SHA-256 of the bundle in hexadecimal digits. `mode` can only be
    `dry_run`: nothing is written before the run is approved and started.
    """

    model_config = example(
        {
            "bundleObjectKey": "bundles/acme-2026-10-01.zip",
            "bundleChecksum": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        }
    )

    bundle_object_key: Annotated[str, Field(max_length=1024, pattern=OBJECT_KEY)]
    bundle_checksum: Annotated[str, Field(pattern=CHECKSUM)]
    mode: rules.Mode | None = None


class ApproveLegacyImport(Input):
    """Body of approve: `selectedWorkspaceIds` are ids of entries, which replace the selection."""

    model_config = example({"note": "Counts compared with the old system."})

    note: Words | None = None
    selected_workspace_ids: EntryIds | None = None


class CancelLegacyImport(Input):
    """Body of cancel."""

    model_config = example({"reason": "The wrong bundle."})

    reason: Words | None = None


class RollBackLegacyImport(Input):
    """Body of roll back.

    `workspaceIds` are ids of entries; without them all imported ones are rolled back. Data edited
    since the import is kept, unless `force` is set.
    """

    model_config = example({"reason": "The old system stays.", "force": False})

    reason: Words
    force: bool = False
    workspace_ids: Annotated[EntryIds, Field(min_length=1)] | None = None


class UpdateImportWorkspace(Input):
    """Body of update.

    A selected workspace is imported into a new workspace, or into `targetWorkspaceId`; null resets
    it.
    """

    model_config = example({"selected": True})

    selected: bool | None = None
    target_workspace_id: InputId | None = None


class VerifiedCount(Shape):
    """Rows of one kind: in the bundle, imported, and existing."""

    source: int | None = None
    imported: int
    found: int | None = None


class VerifiedSample(Shape):
    """`equal` of `rows` rows match the bundle; `hash` is of the existing rows."""

    rows: int
    equal: int
    hash: str


class Verification(Shape):
    """The verification of an import; empty before."""

    outcome: rules.Outcome | None = None
    counts: dict[str, VerifiedCount] = Field(default_factory=dict)
    samples: dict[str, VerifiedSample] = Field(default_factory=dict)


class StageProgress(Shape):
    """The chunks of a stage that are done, and their total; a chunk is up to 5,000 rows."""

    stage: str
    done: int
    total: int


class ImportWorkspaceEntry(Shape):
    """One workspace of a bundle.

    `counts` are numbers by kind: of the dry run, later of the import. `verification`
    compares numbers and samples of the contents after the import.
    """

    id: Id
    source_workspace_id: str
    source_name: str
    target_workspace_id: Id | None
    selected: bool
    stage: rules.ImportStage
    lifecycle_state: rules.LifecycleState
    source_counts: dict[str, int]
    counts: dict[str, int]
    warnings: list[str]
    errors: list[str]
    verification: Verification
    progress: StageProgress | None
    rollback_state: rules.RollbackState
    attempt: int
    last_error: str | None


class LegacyImport(Shape):
    """A legacy import run; it has as many `workspaces` as its bundle.

    `errors` are why it cannot be imported as it is, the errors of its workspaces among them.
    """

    id: Id
    bundle_object_key: str
    bundle_checksum: str
    source_snapshot_timestamp: str | None
    source_version: str | None
    converter_version: str | None
    status: rules.LegacyImportStatus
    mode: rules.Mode
    selected_workspace_count: int
    source_counts: dict[str, int]
    target_counts: dict[str, int]
    warnings: list[str]
    errors: list[str]
    approved_at: Moment | None
    approved_by_user_id: Id | None
    approval_note: str | None
    canceled_by_user_id: Id | None
    cancellation_reason: str | None
    rollback_requested_by_user_id: Id | None
    rollback_reason: str | None
    rollback_until: Moment | None
    created_by_user_id: Id
    started_at: Moment | None
    completed_at: Moment | None
    created_at: Moment
    updated_at: Moment
    waiting_for_worker_since: Moment | None = None
    page_url: str
    temporal_workflow_id: str
    temporal_url: str | None = None
    workspaces: list[ImportWorkspaceEntry]


class LegacyImportList(Listed):
    """A page of runs, newest first."""

    legacy_imports: list[LegacyImport]


class ImportRunRow(Protocol):
    """A run with its bundle: the key in the object store, and the digest it had."""

    id: Id
    bundle_object_key: str
    bundle_checksum: str
    approved_at: datetime | None


_run = legacy_import_run.c
_entry = legacy_import_workspace.c
_WRITTEN = frozenset({rules.LifecycleState.HIDDEN, rules.LifecycleState.LIVE})


async def get_run(work: UnitOfWork, run_id: Id) -> LegacyImport:
    """A run with its workspaces. Raises NotFoundError."""
    row = await find_run(work, run_id)
    shown = _shown(row, await entries_of(work, row.id), work.now)
    return await with_worker_wait(work, shown, is_open=row.status in rules.WORKED_ON)


async def list_runs(work: UnitOfWork, page: PageRequest) -> LegacyImportList:
    """The runs, newest first, with their workspaces."""
    run_page = await page.descending(
        work, sa.select(legacy_import_run), _run.created_at, _run.id, of=LegacyImportRun
    )
    theirs = sa.select(legacy_import_workspace).where(
        _entry.run_id.in_([run.id for run in run_page.items])
    )
    rows = await work.rows(
        theirs.order_by(_entry.run_id, _entry.position), of=LegacyImportWorkspace
    )
    by_run = {run_id: list(group) for run_id, group in groupby(rows, attrgetter("run_id"))}
    shown = [_shown(run, by_run.get(run.id, []), work.now) for run in run_page.items]
    return LegacyImportList(legacy_imports=shown, cursor=run_page.cursor)


async def find_run(work: UnitOfWork, run_id: Id, *, lock: bool = False) -> LegacyImportRun:
    """The row of a run, locked until the transaction ends if asked for. Raises NotFoundError."""
    statement = sa.select(legacy_import_run).where(_run.id == run_id)
    if lock:
        statement = statement.with_for_update()
    return await work.one(statement, "legacy import run", of=LegacyImportRun)


async def entries_of(work: UnitOfWork, run_id: Id) -> Sequence[LegacyImportWorkspace]:
    """The workspaces of a run, in the order of its bundle."""
    statement = sa.select(legacy_import_workspace).where(_entry.run_id == run_id)
    return await work.rows(statement.order_by(_entry.position), of=LegacyImportWorkspace)


async def find_entry(work: UnitOfWork, run_id: Id, entry_id: Id) -> LegacyImportWorkspace:
    """A workspace of a run. Raises NotFoundError."""
    return await work.one(
        sa.select(legacy_import_workspace).where(_entry.run_id == run_id, _entry.id == entry_id),
        "workspace of the legacy import run",
        of=LegacyImportWorkspace,
    )


async def find_entry_by_id(work: UnitOfWork, entry_id: Id) -> LegacyImportWorkspace:
    """A workspace of any run. Raises NotFoundError."""
    statement = sa.select(legacy_import_workspace).where(_entry.id == entry_id)
    return await work.one(statement, "workspace of a legacy import run", of=LegacyImportWorkspace)


def decisive(rows: Sequence[LegacyImportWorkspace]) -> list[rules.Entry]:
    """The facts that decide about the workspaces of a run."""
    return [
        rules.Entry(
            id=row.id,
            selected=row.selected,
            stage=rules.ImportStage(row.stage),
            lifecycle_state=rules.LifecycleState(row.lifecycle_state),
            rollback_state=rules.RollbackState(row.rollback_state),
            warned=bool(row.warnings)
            or row.verification.get("outcome") == rules.Outcome.WITHIN_TOLERANCE,
        )
        for row in rows
    ]


def is_expired(run: LegacyImportRun, now: datetime) -> bool:
    """True when it is too late to roll a run back."""
    return run.completed_at is not None and run.completed_at + rules.ROLLBACK_WINDOW < now


def is_purged(run: LegacyImportRun, now: datetime) -> bool:
    """True when what a run keeps hidden may be gone: it is removed as what is in the trash."""
    return run.started_at is not None and run.started_at + rules.HIDDEN_WINDOW < now


def holds_data(row: LegacyImportWorkspace) -> bool:
    """True when an import has written something that is still there."""
    return row.lifecycle_state in _WRITTEN


def is_finished(row: LegacyImportWorkspace) -> bool:
    """True when a workspace is whole and verified, and still hidden."""
    return (
        row.stage == rules.ImportStage.DONE
        and row.lifecycle_state == rules.LifecycleState.HIDDEN
        and row.rollback_state == rules.RollbackState.NONE
    )


def _shown(
    run: LegacyImportRun, rows: Sequence[LegacyImportWorkspace], now: datetime
) -> LegacyImport:
    counts: Counter[str] = Counter()
    for row in rows:
        if holds_data(row):
            counts.update(row.counts)
    of_entries = [
        f"{row.source_name}: {error}" for row in rows if row.selected for error in row.errors
    ]
    until = None if run.completed_at is None else run.completed_at + rules.ROLLBACK_WINDOW
    columns = {name: getattr(run, name) for name in _COLUMNS}
    return LegacyImport.model_validate(
        {
            **columns,
            "errors": [*run.errors, *of_entries],
            "selected_workspace_count": sum(row.selected for row in rows),
            "target_counts": dict(counts),
            "rollback_until": until if any(map(holds_data, rows)) else None,
            "page_url": legacy_import_page(run.id),
            "temporal_workflow_id": WorkflowKind.LEGACY_IMPORT.workflow_id(run.id, run.execution),
            "workspaces": [_shown_entry(run, row, now) for row in rows],
        }
    )


_ENTRY_COLUMNS = ImportWorkspaceEntry.model_fields.keys() & legacy_import_workspace.c.keys()
_COLUMNS = LegacyImport.model_fields.keys() & legacy_import_run.c.keys()


def _shown_entry(
    run: LegacyImportRun, row: LegacyImportWorkspace, now: datetime
) -> ImportWorkspaceEntry:
    at = row.progress
    fields = {name: getattr(row, name) for name in _ENTRY_COLUMNS}
    fields["progress"] = None
    if at.get("total"):
        fields["progress"] = {"stage": row.stage, "done": at["done"], "total": at["total"]}
    shown = ImportWorkspaceEntry.model_validate(fields)
    if row.rollback_state == rules.RollbackState.NONE and holds_data(row) and is_expired(run, now):
        shown.rollback_state = rules.RollbackState.EXPIRED
    return shown


async def known_runs(work: UnitOfWork, run_ids: Collection[Id]) -> set[Id]:
    """The runs among these that have a row."""
    found = sa.select(legacy_import_run.c.id).where(legacy_import_run.c.id.in_(run_ids))
    return {row.id for row in await work.rows(found)}


async def named_bundles(work: UnitOfWork, object_keys: Collection[str]) -> set[str]:
    """The objects among these that are the bundle of a run."""
    key = legacy_import_run.c.bundle_object_key
    return {
        row.bundle_object_key for row in await work.rows(sa.select(key).where(key.in_(object_keys)))
    }
