"""Failed runs, grouped into incidents."""

from datetime import datetime
from typing import Any

from sqlalchemy import insert, select, update

from models.automation.automation_runs.tables import automation_run, node_run
from models.automation.automations.tables import automation_version
from models.automation.incidents.grouping import group_failures
from models.automation.incidents.tables import incident, incident_run, ungrouped_failure
from models.core.base import Id
from runtime.clock import utc_now
from runtime.database import Database
from tests.support.ageing import run_row
from tests.support.patience import eventually
from tests.support.spaces import Space


async def failed_run(
    space: Space,
    version: Any,
    message: str = "It fell.",
    *,
    at: datetime | None = None,
    node: str | None = "call",
    **values: Any,
) -> Id:
    """A run of a version that went on, and failed at a node, or of its own."""
    moment = at or utc_now()
    times = {"created_at": moment, "started_at": moment, "completed_at": None}
    row = run_row(space, version, status="running", **{**times, **values})
    async with space.database.transaction() as work:
        await work.execute(insert(automation_run).values(row))
        if node is not None:
            own = {"workspace_id": space.id, "run_id": row["id"], "scope_key": "", "attempt": 1}
            failure = {"status": "failed", "error_code": "upstream_error", "error": message}
            await work.execute(
                insert(node_run).values(**own, **failure, node_id=node, node_kind="http_request")
            )
        of_it = automation_run.c.id == row["id"]
        ends = {"status": "failed", "completed_at": moment, "error": f"Call: {message}"}
        await work.execute(update(automation_run).where(of_it).values(ends))
    return Id(str(row["id"]))


async def succeeded_run(
    space: Space, version: Any, *, at: datetime | None = None, node: str = "call", **values: Any
) -> Id:
    """A run of a version that succeeded at a node."""
    moment = at or utc_now()
    row = run_row(space, version, **{"created_at": moment, "completed_at": moment, **values})
    async with space.database.transaction() as work:
        await work.execute(insert(automation_run).values(row))
        own = {"workspace_id": space.id, "run_id": row["id"], "scope_key": "", "attempt": 1}
        await work.execute(
            insert(node_run).values(
                **own, node_id=node, node_kind="http_request", status="succeeded"
            )
        )
    return Id(str(row["id"]))


async def grouped(database: Database) -> int:
    """Group until no note is left; the number of runs grouped here.

    A worker beside may have taken notes and not committed yet: they are waited for.
    """
    total = 0

    async def none_left() -> bool:
        nonlocal total
        async with database.transaction() as work:
            total += await group_failures(work)
        async with database.reading() as work:
            return await work.scalar(select(ungrouped_failure.c.run_id).limit(1)) is None

    await eventually(none_left, what="the grouping of all failures")
    return total


async def incident_of(database: Database, run_id: Id) -> Any:
    """The row of the incident of a run."""
    async with database.transaction() as work:
        statement = select(incident).join(incident_run, incident_run.c.incident_id == incident.c.id)
        return await work.first(statement.where(incident_run.c.run_id == run_id))


async def open_incident(space: Space, automation_id: Any, message: str, **values: Any) -> Id:
    """A new incident of an automation, with one run; its id."""
    statement = select(automation_version).where(
        automation_version.c.automation_id == automation_id,
        automation_version.c.published_at.is_not(None),
    )
    async with space.database.transaction() as work:
        version = await work.first(statement.limit(1))
    run_id = await failed_run(space, version, message, **values)
    await grouped(space.database)
    return Id(str((await incident_of(space.database, run_id)).id))
