"""The tables of legacy import runs and of the workspaces in them, and their lifecycle."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.core.base import Id
from models.core.lifecycle.commands import WorkTable
from models.workspace.legacy_imports import rules
from runtime.postgresql.schema import Timestamp, listed, one_of, table_of
from runtime.temporal.families import Family

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
    warnings: list[str] = Field(sa_type=sa.ARRAY(sa.Text), sa_column_kwargs=_EMPTY_LIST)
    errors: list[str] = Field(sa_type=sa.ARRAY(sa.Text), sa_column_kwargs=_EMPTY_LIST)
    approved_at: datetime | None = Field(default=None, sa_type=Timestamp)
    approved_by_user_id: Id | None = None
    approval_note: str | None = None
    canceled_by_user_id: Id | None = None
    cancellation_reason: str | None = None
    rollback_requested_by_user_id: Id | None = None
    rollback_reason: str | None = None
    rollback_force: bool = Field(
        default=False, sa_column_kwargs={"server_default": sa.text("false")}
    )
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
        sa.UniqueConstraint("run_id", "source_workspace_id"),
        sa.ForeignKeyConstraint(["run_id"], ["legacy_import_run.id"], ondelete="CASCADE"),
        one_of("stage", rules.ImportStage),
        one_of("lifecycle_state", rules.LifecycleState),
        one_of("rollback_state", rules.RollbackState),
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
    warnings: list[str] = Field(sa_type=sa.ARRAY(sa.Text), sa_column_kwargs=_EMPTY_LIST)
    errors: list[str] = Field(sa_type=sa.ARRAY(sa.Text), sa_column_kwargs=_EMPTY_LIST)
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

LEGACY_IMPORTS = WorkTable(legacy_import_run, rules.RUN_LIFECYCLE, family=Family.LEGACY_IMPORT)
