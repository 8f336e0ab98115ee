"""Tables of automations, their versions, and the immutable graphs of versions."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlmodel import Field, SQLModel

from models.core.base import Id
from runtime.crypto import sealed
from runtime.postgresql.schema import Timestamp, partial_index, same_workspace, table_of


def webhook_secret_place(automation_id: Id) -> str:
    """The place that a sealed webhook secret is bound to."""
    return f"automation|{automation_id}|sealed_webhook_secret"


class Automation(SQLModel, table=True):
    """An automation; what it does is in its versions.

    Its item says where it is placed, and whether it is archived or in the trash. `canary` is the
    experiment that shares its runs out between versions.
    """

    __tablename__ = "automation"
    __table_args__ = (
        sa.UniqueConstraint("workspace_id", "id"),
        sa.UniqueConstraint("workspace_id", "key"),
        same_workspace("item_id", "item.id"),
        sa.Index("ix_automation_workspace_id_created_at_id", "workspace_id", "created_at", "id"),
        partial_index("ix_automation_canary", "id", where="canary IS NOT NULL"),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    item_id: Id
    key: str
    label: str
    enabled: bool
    draft_version_id: Id | None = None
    published_version_id: Id | None = None
    last_version: int
    webhook_token: str = Field(unique=True)
    sealed_webhook_secret: bytes = Field(
        sa_type=sa.LargeBinary, sa_column_kwargs=sealed(lambda row: webhook_secret_place(row.id))
    )
    sealed_previous_webhook_secret: bytes | None = Field(
        default=None,
        sa_type=sa.LargeBinary,
        sa_column_kwargs=sealed(lambda row: webhook_secret_place(row.id)),
    )
    previous_webhook_secret_until: datetime | None = Field(default=None, sa_type=Timestamp)
    rewrites: int = Field(default=0, sa_column_kwargs={"server_default": sa.text("0")})
    canary: dict[str, Any] | None = Field(default=None, sa_type=JSONB(none_as_null=True))
    next_run_at: datetime | None = Field(default=None, sa_type=Timestamp)
    skipped_fires: int = Field(default=0, sa_column_kwargs={"server_default": sa.text("0")})
    missed_fires: int = Field(default=0, sa_column_kwargs={"server_default": sa.text("0")})
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)


class AutomationGraph(SQLModel, table=True):
    """The content of a version, stored under its checksum and never changed.

    `plan` is the compiled graph. A graph with issues has none until it is published or run without
    issues. `graph_references` are what the graph and its trigger name, and `referenced_ids` the ids
    among them. `references_version` is the version of the reading that found them (ADR 0161).
    """

    __tablename__ = "automation_graph"
    __table_args__ = (same_workspace("automation_id", "automation.id"),)

    automation_id: Id = Field(primary_key=True)
    checksum: str = Field(primary_key=True)
    workspace_id: Id
    trigger_config: dict[str, Any] = Field(sa_type=JSONB)
    graph: dict[str, Any] = Field(sa_type=JSONB)
    plan: dict[str, Any] | None = Field(default=None, sa_type=JSONB(none_as_null=True))
    references_version: int | None = Field(default=None, sa_type=sa.SmallInteger)
    referenced_ids: list[str] | None = Field(default=None, sa_type=ARRAY(sa.String))
    graph_references: list[Any] | None = Field(default=None, sa_type=JSONB(none_as_null=True))


class AutomationVersion(SQLModel, table=True):
    """A numbered version. An automation has at most one draft and one published.

    `changed_by_user_id` wrote its content last, at `changed_at`; both are absent from versions that
    were last written by an older release. See interface.md#versions.
    """

    __tablename__ = "automation_version"
    __table_args__ = (
        sa.ForeignKeyConstraint(
            ["automation_id", "checksum"],
            ["automation_graph.automation_id", "automation_graph.checksum"],
        ),
        sa.UniqueConstraint("automation_id", "version"),
        partial_index(
            "uq_automation_version_draft", "automation_id", where="status = 'draft'", unique=True
        ),
        partial_index(
            "uq_automation_version_published",
            "automation_id",
            where="status = 'published'",
            unique=True,
        ),
        partial_index(
            "ix_automation_version_scheduled",
            "automation_id",
            where="trigger = 'schedule' AND published_at IS NOT NULL",
        ),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    automation_id: Id
    version: int
    status: str
    trigger: str
    checksum: str
    note: str | None = None
    created_by_user_id: Id | None = None
    created_at: datetime = Field(sa_type=Timestamp)
    published_at: datetime | None = Field(default=None, sa_type=Timestamp)
    restored_from_version_id: Id | None = None
    changed_by_user_id: Id | None = None
    changed_at: datetime | None = Field(default=None, sa_type=Timestamp)


automation = table_of(Automation)
automation_graph = table_of(AutomationGraph)
automation_version = table_of(AutomationVersion)
