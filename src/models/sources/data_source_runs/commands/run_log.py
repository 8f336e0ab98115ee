"""The log of a workspace says when a run begins and how it ends."""

from models.core.access.rules import Principal, PrincipalType
from models.core.base import Id, JsonObject
from models.messages.workspace_events.commands import append_event
from models.messages.workspace_events.rules import EventType
from models.sources.data_source_runs.rows import SourceRunRow
from models.sources.data_source_runs.rules import DataSourceRunStatus
from models.sources.data_sources.queries import source_item
from runtime.database import UnitOfWork


async def log_status(
    work: UnitOfWork,
    run: SourceRunRow,
    status: DataSourceRunStatus,
    principal: Principal | None = None,
) -> None:
    """Log that a run has reached a status; of an import only who asked for it is told."""
    user_id = run.actor_user_id or run.id
    doer = principal or Principal(type=PrincipalType.SYSTEM, id=run.id, user_id=user_id)
    subject = {} if run.data_source_id is None else {"dataSourceId": str(run.data_source_id)}
    await append_event(
        work,
        doer,
        run.workspace_id,
        EventType.DATA_SOURCE_RUN,
        {
            **subject,
            "runId": str(run.id),
            "trigger": run.trigger,
            "status": status.value,
            **_found(run.progress),
        },
        audience_user_id=run.actor_user_id if run.data_source_id is None else None,
        item_id=await _item(work, run),
    )


def _found(progress: JsonObject) -> JsonObject:
    """The numbers of cells that could not be read, and of columns that came, went or changed."""
    columns = progress.get("columns", {})
    counts = {
        "cellsSkipped": progress.get("lost", 0),
        "columnsAdded": len(columns.get("added", ())),
        "columnsMissing": len(columns.get("missing", ())),
        "columnsChanged": len(columns.get("changed", ())),
    }
    return {name: count for name, count in counts.items() if count}


async def _item(work: UnitOfWork, run: SourceRunRow) -> Id | None:
    """The item of the data source that runs: who sees it is told."""
    if run.data_source_id is None:
        return None
    return (await source_item(work, run.workspace_id, run.data_source_id)).id
