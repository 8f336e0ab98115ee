"""The tables of legacy import runs and of the workspaces in them, and their lifecycle."""

from datetime import datetime
from typing import Any

from sqlalchemy import ARRAY, ForeignKeyConstraint, Index, Text, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.core.base import Id
from models.core.lifecycle.commands import WorkTable
from models.workspace.legacy_imports.rules import (
    RUN_LIFECYCLE,
    ImportStage,
    LegacyImportStatus,
    LifecycleState,
    Mode,
    RollbackState,
)
from runtime.postgresql.schema import Timestamp, listed, one_of, table_of
from runtime.temporal.families import Family

_EMPTY_LIST = {"server_default": text("'{}'")}
_EMPTY_MAP = {"server_default": text("'{}'")}


class LegacyImportRun(SQLModel, table=True):
    """One bundle on its way in; it belongs to the platform and to no workspace.

    `execution` is what follows the run's id in the id of its present execution: nothing for the
    first, `retry/2` or `rollback/1` for one that went on after the run had ended.
    """

    __tablename__ = "legacy_import_run"
    __table_args__ = (
        ForeignKeyConstraint(["created_by_user_id"], ["app_user.id"]),
        one_of("status", LegacyImportStatus),
        one_of("mode", Mode),
        Index("ix_legacy_import_run_created_at", "created_at", "id"),
        Index("ix_legacy_import_run_completed_at", "completed_at"),
        Index(
            "ix_legacy_import_run_open",
            "id",
            postgresql_where=text(f"status IN ({listed(RUN_LIFECYCLE.open)})"),
        ),
    )

    id: Id = Field(primary_key=True)
    bundle_object_key: str
    bundle_checksum: str
    uploaded: bool = False
    status: str
    mode: str
    execution: str = Field(default="", sa_column_kwargs={"server_default": ""})
    executions: int = Field(default=0, sa_column_kwargs={"server_default": "0"})
    source_snapshot_timestamp: str | None = None
    source_version: str | None = None
    converter_version: str | None = None
    source_counts: dict[str, int] = Field(sa_type=JSONB, sa_column_kwargs=_EMPTY_MAP)
    warnings: list[str] = Field(sa_type=ARRAY(Text), sa_column_kwargs=_EMPTY_LIST)
    errors: list[str] = Field(sa_type=ARRAY(Text), sa_column_kwargs=_EMPTY_LIST)
    approved_at: datetime | None = Field(default=None, sa_type=Timestamp)
    approved_by_user_id: Id | None = None
    approval_note: str | None = None
    canceled_by_user_id: Id | None = None
    cancellation_reason: str | None = None
    rollback_requested_by_user_id: Id | None = None
    rollback_reason: str | None = None
    rollback_force: bool = Field(default=False, sa_column_kwargs={"server_default": text("false")})
    created_by_user_id: Id
    started_at: datetime | None = Field(default=None, sa_type=Timestamp)
    completed_at: datetime | None = Field(default=None, sa_type=Timestamp)
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)


class LegacyImportWorkspace(SQLModel, table=True):
    """One workspace of a bundle and what becomes of it.

    `creates` says that the import makes the target workspace; else it fills one that is there.
    `progress` is where its stage continues.
    """

    __tablename__ = "legacy_import_workspace"
    __table_args__ = (
        UniqueConstraint("run_id", "source_workspace_id"),
        ForeignKeyConstraint(["run_id"], ["legacy_import_run.id"], ondelete="CASCADE"),
        one_of("stage", ImportStage),
        one_of("lifecycle_state", LifecycleState),
        one_of("rollback_state", RollbackState),
    )

    id: Id = Field(primary_key=True)
    run_id: Id
    position: int
    source_workspace_id: str
    source_name: str
    source_counts: dict[str, int] = Field(sa_type=JSONB, sa_column_kwargs=_EMPTY_MAP)
    target_workspace_id: Id | None = None
    creates: bool = True
    selected: bool = True
    stage: str
    lifecycle_state: str
    counts: dict[str, int] = Field(sa_type=JSONB, sa_column_kwargs=_EMPTY_MAP)
    warnings: list[str] = Field(sa_type=ARRAY(Text), sa_column_kwargs=_EMPTY_LIST)
    errors: list[str] = Field(sa_type=ARRAY(Text), sa_column_kwargs=_EMPTY_LIST)
    verification: dict[str, Any] = Field(sa_type=JSONB, sa_column_kwargs=_EMPTY_MAP)
    progress: dict[str, Any] = Field(sa_type=JSONB, sa_column_kwargs=_EMPTY_MAP)
    rollback_state: str
    attempt: int = Field(default=0, sa_column_kwargs={"server_default": "0"})
    last_error: str | None = None
    imported_at: datetime | None = Field(default=None, sa_type=Timestamp)
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)


legacy_import_run = table_of(LegacyImportRun)
legacy_import_workspace = table_of(LegacyImportWorkspace)

LEGACY_IMPORTS = WorkTable(legacy_import_run, RUN_LIFECYCLE, family=Family.LEGACY_IMPORT)
