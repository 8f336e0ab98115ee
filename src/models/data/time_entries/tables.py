"""The table of time entries, as durable work too, and the completed ones in a bundle."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import BYTEA, TSTZMULTIRANGE
from sqlmodel import Field, SQLModel

from models.content.items.joins import ITEM, live_items
from models.core.base import Id
from models.core.bundles import USER, BundleKind, Row, Stage
from models.core.lifecycle.commands import WorkTable
from models.data.time_entries import rules
from runtime.postgresql.schema import Timestamp, listed, one_of, partial_index, table_of
from runtime.temporal.workflow_kinds import WorkflowKind


class TimeEntry(SQLModel, table=True):
    """Time that one user spends, or spent, on one thing.

    It outlives its target, whose title and place it keeps: `item_id` is the item whose access says
    who sees the entry, null for time spent on the workspace. `pauses` are the spans that do not
    count; `accumulated_paused_ms` is their length. `counted_ms` is what a completed entry adds to
    its timer field. `client_mutation_id` and `mutation_digest` are of the call that made it,
    `update_mutation_id` is of its last update. `closed_at` is when it was decided that it ended. An
    import that is not verified yet keeps its entries out of sight by `deleted_at`.
    """

    __tablename__ = "time_entry"
    __table_args__ = (
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        sa.ForeignKeyConstraint(["user_id"], ["app_user.id"]),
        one_of("target_kind", rules.TargetKind),
        one_of("source", rules.EntrySource),
        one_of("mode", rules.EntryMode),
        one_of("status", rules.EntryStatus),
        one_of("sound_id", rules.EntrySound),
        one_of("completed_by", rules.CompletedBy),
        sa.CheckConstraint("ended_at >= started_at", name="ends_after_start"),
        sa.CheckConstraint("accumulated_paused_ms >= 0 AND duration_ms >= 0", name="not_negative"),
        sa.CheckConstraint(
            "(status = 'paused') = (paused_at IS NOT NULL)"
            " AND (status = 'completed') <= (ended_at IS NOT NULL AND duration_ms IS NOT NULL)"
            " AND (status IN ('completed', 'discarded')) = (closed_at IS NOT NULL)",
            name="times_of_status",
        ),
        # One clock runs for a person in a workspace: a second one ends the first before it begins.
        partial_index(
            "uq_time_entry_active",
            "workspace_id",
            "user_id",
            where="status = 'active'",
            unique=True,
        ),
        partial_index(
            "uq_time_entry_client_mutation_id",
            "workspace_id",
            "user_id",
            "client_mutation_id",
            where="client_mutation_id IS NOT NULL",
            unique=True,
        ),
        sa.Index("ix_time_entry_started_at", "workspace_id", "started_at", "id"),
        sa.Index("ix_time_entry_user_started_at", "workspace_id", "user_id", "started_at", "id"),
        sa.Index("ix_time_entry_target_id_field_id", "workspace_id", "target_id", "field_id"),
        sa.Index(
            "ix_time_entry_open",
            "id",
            postgresql_where=sa.text(f"status IN ({listed(rules.OPEN_ENTRY)})"),
        ),
        partial_index("ix_time_entry_discarded", "closed_at", "id", where="status = 'discarded'"),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    user_id: Id
    target_kind: str
    target_id: Id
    target_title_snapshot: str | None = None
    item_id: Id | None = None
    database_id: Id | None = None
    field_id: Id | None = None
    field_label_snapshot: str | None = None
    source: str
    mode: str
    status: str
    started_at: datetime = Field(sa_type=Timestamp)
    ended_at: datetime | None = Field(default=None, sa_type=Timestamp)
    paused_at: datetime | None = Field(default=None, sa_type=Timestamp)
    due_at: datetime | None = Field(default=None, sa_type=Timestamp)
    pauses: Any = Field(
        sa_type=TSTZMULTIRANGE,
        sa_column_kwargs={"server_default": sa.text("'{}'"), "nullable": False},
    )
    accumulated_paused_ms: int = Field(sa_type=sa.BigInteger)
    duration_ms: int | None = Field(default=None, sa_type=sa.BigInteger)
    counted_ms: int | None = Field(default=None, sa_type=sa.BigInteger)
    target_duration_ms: int | None = Field(default=None, sa_type=sa.BigInteger)
    summary: str | None = None
    sound_id: str
    completed_by: str | None = None
    client_mutation_id: str | None = None
    mutation_digest: bytes | None = Field(default=None, sa_type=BYTEA)
    update_mutation_id: str | None = None
    created_by_user_id: Id
    updated_by_user_id: Id
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)
    closed_at: datetime | None = Field(default=None, sa_type=Timestamp)
    deleted_at: datetime | None = Field(default=None, sa_type=Timestamp)


time_entry = table_of(TimeEntry)

TIME_ENTRIES = WorkTable(
    time_entry,
    rules.ENTRY_LIFECYCLE,
    ended_column="closed_at",
    # Others continue until a member ends them.
    executed=time_entry.c.mode.in_(rules.TIMED_MODES),
    workflow_kind=WorkflowKind.TIMER_DUE,
)


def _rows(workspace_id: Id) -> sa.Select[Any]:
    """Completed entries whose item, which says who sees them, is outside the trash."""
    seen = time_entry.c.item_id.in_(live_items(workspace_id, ITEM.id))
    return sa.select(time_entry).where(
        time_entry.c.workspace_id == workspace_id,
        time_entry.c.status == rules.EntryStatus.COMPLETED.value,
        time_entry.c.deleted_at.is_(None),
        sa.or_(time_entry.c.item_id.is_(None), seen),
    )


def _problem(row: Row) -> str | None:
    """The problem that keeps a row from being a completed entry.

    Of other entries one at most may run for a person, and only executions, which no import starts,
    would end them.
    """
    if row["status"] != rules.EntryStatus.COMPLETED:
        return f"status: only completed entries are imported; this one is {row['status']}."
    for name in ("endedAt", "closedAt", "durationMs"):
        if row.get(name) is None:
            return f"{name}: is required for a completed entry."
    if row.get("pausedAt") is not None:
        return "pausedAt: must be null for a completed entry."
    if min(row["durationMs"], row["accumulatedPausedMs"]) < 0:
        return "durationMs, accumulatedPausedMs: must not be negative."
    try:
        backwards = datetime.fromisoformat(row["endedAt"]) < datetime.fromisoformat(
            row["startedAt"]
        )
    except ValueError:
        return "startedAt, endedAt: must be valid times."
    return "endedAt: must not be before startedAt." if backwards else None


COMPLETED_ENTRIES = BundleKind(
    name="time_entry",
    stage=Stage.AUTOMATIONS,
    file="time_entries.ndjson",
    table=time_entry,
    rows=_rows,
    references={
        "user_id": USER,
        "item_id": "item",
        "database_id": "database",
        "field_id": "field",
        "created_by_user_id": USER,
        "updated_by_user_id": USER,
    },
    required=("user_id", "item_id"),
    # An entry outlives what its time was spent on.
    contents=("target_id",),
    left_out={
        "client_mutation_id": "makes a repeated call one, in the source alone",
        "mutation_digest": "as client_mutation_id",
        "update_mutation_id": "as client_mutation_id",
        "deleted_at": "marks what an import has not shown yet",
    },
    hides=True,
    check=_problem,
)
