"""What is old for tests: ids and rows of long ago, and purges repeated until nothing is left."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Table, func, insert, select

from models.automation.automation_runs.rules import RunSource, RunStatus
from models.automation.automation_runs.tables import automation_run, node_run, node_run_attempt
from models.automation.automations.commands import create_automation
from models.automation.automations.shapes import CreateAutomation
from models.automation.automations.tables import automation_version
from models.core.base import Id
from models.messages.jobs.store import job
from models.tables import metadata
from runtime.clock import utc_now
from runtime.database import Database, UnitOfWork
from runtime.ids import least_id, new_id
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.spaces import Space

LASTING = {"workspace", "workspace_member", "workspace_event", "api_key", "app_user", "request_log"}
"""What a workspace keeps for as long as it is there, and what is written behind its calls."""

Purge = Callable[[UnitOfWork, datetime, int], Awaitable[int]]


def ago(days: float) -> datetime:
    return utc_now() - timedelta(days=days)


def id_of(moment: datetime) -> Id:
    """An id as it was made at a moment."""
    return Id(int=least_id(moment).int | new_id().int & ((1 << 80) - 1))


async def purged(database: Database, purge: Purge, before: datetime, limit: int = 5_000) -> int:
    """Purge until nothing is left, each time at most `limit` rows; the number of rows."""
    total = 0
    while True:
        async with database.transaction() as work:
            removed = await purge(work, before, limit)
        assert removed <= limit
        if not removed:
            return total
        total += removed


async def rows_of(space: Space) -> dict[str, int]:
    """The number of rows of the workspace by table, without empty tables."""
    counts = {}
    async with space.database.transaction() as work:
        for table in metadata.sorted_tables:
            if "workspace_id" in table.c and table.name not in LASTING:
                own = select(func.count()).where(table.c.workspace_id == space.id)
                counts[table.name] = int(await work.scalar(own.select_from(table)))
    return {name: number for name, number in counts.items() if number}


async def ids_of(space: Space, table: Table) -> set[UUID]:
    """The ids of a table's rows in a workspace."""
    async with space.database.transaction() as work:
        rows = await work.rows(select(table.c.id).where(table.c.workspace_id == space.id))
    return {row.id for row in rows}


async def old_job(
    space: Space, days: float, status: str = "succeeded", accepted: float | None = None
) -> Id:
    """A job that ended this number of days ago."""
    at = ago(accepted or days)
    values: dict[str, Any] = {
        "id": id_of(at),
        "workspace_id": space.id,
        "workflow_kind": WorkflowKind.RECOMPUTATION.value,
        "subject_id": new_id(),
        "actor_user_id": space.user_id,
        "status": status,
        "input": {},
        "progress": {},
        "created_at": at,
        "completed_at": ago(days),
    }
    async with space.database.transaction() as work:
        await work.execute(insert(job).values(values))
    return values["id"]


async def make_automation(space: Space) -> Any:
    """A version of a new automation."""
    body = CreateAutomation.model_validate({"label": "Old", "graph": {"nodes": [], "edges": []}})
    async with space.database.transaction() as work:
        made = await create_automation(work, space.actor, space.keys, body)
        statement = select(automation_version).where(automation_version.c.automation_id == made.id)
        return await work.first(statement)


def run_row(space: Space, version: Any, **values: Any) -> dict[str, Any]:
    """The row of a run of a version: one that succeeded now, unless `values` say otherwise."""
    return {
        "id": new_id(),
        "workspace_id": space.id,
        "automation_id": version.automation_id,
        "automation_version_id": version.id,
        "graph_checksum": version.checksum,
        "status": RunStatus.SUCCEEDED.value,
        "source": RunSource.MANUAL.value,
        "trigger_payload": {},
        "options": {},
        "created_at": utc_now(),
        **values,
    }


async def old_run(
    space: Space,
    version: Any,
    days: float,
    status: str = "succeeded",
    accepted: float | None = None,
    run_id: Id | None = None,
) -> Id:
    """A run that ended this number of days ago, with a node that took two attempts."""
    at, ended = ago(accepted or days), ago(days)
    run_id = run_id or id_of(at)
    own = {"workspace_id": space.id, "run_id": run_id, "node_id": "only", "scope_key": ""}
    async with space.database.transaction() as work:
        await work.execute(
            insert(automation_run).values(
                run_row(space, version, id=run_id, status=status, created_at=at, completed_at=ended)
            )
        )
        await work.execute(
            insert(node_run).values(**own, node_kind="transform", status="succeeded", attempt=2)
        )
        failure = {"error": "x", "error_code": "x", "started_at": at, "completed_at": ended}
        await work.execute(insert(node_run_attempt).values(**own, attempt=1, **failure))
    return run_id
