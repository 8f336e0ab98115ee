"""Suspended executions, and when a run waits because all of its executions are suspended (C8).

A run is one Temporal execution, and one more for every chunk of a long loop. An execution is
suspended while it only waits: for time, for a response, or for executions below it. The run has
the status `waiting` while its own execution and all those below it are suspended.

The activities of a run call `suspend` and `resume`.
"""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Text, bindparam, delete, func, literal, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from models.automation.automation_runs.rules import RunStatus
from models.automation.automation_runs.tables import automation_run, suspended_execution
from models.core.base import Id
from runtime.database import UnitOfWork
from runtime.families import Family
from runtime.prepared_statement import PreparedStatement
from runtime.work import Work

_run = automation_run.c
_suspended = suspended_execution.c


def execution_key(run_id: Id, workflow_id: str) -> str:
    """The key of an execution in its run.

    The chunks of a loop run one after the other and share a key: the workflow id of a chunk
    without its number.
    """
    own = Family.AUTOMATION_RUN.workflow_id(run_id)
    return own if workflow_id == own else workflow_id.rpartition("/")[0]


async def suspend(work: UnitOfWork, run_id: Id, key: str, child_keys: Sequence[str]) -> bool:
    """Note that an execution is suspended, given that those in `child_keys` are, too.

    Returns False for a run that has ended. The run's row is locked, so that two executions that
    are suspended at the same time see each other.
    """
    run = select(_run.workspace_id).where(
        _run.id == run_id, _run.status.in_([RunStatus.RUNNING, RunStatus.WAITING])
    )
    workspace_id = await work.scalar(run.with_for_update())
    if workspace_id is None:
        return False
    own = {"execution_key": key, "run_id": run_id, "workspace_id": workspace_id}
    children = {"child_keys": list(child_keys)}
    await work.execute(
        upsert(suspended_execution)
        .values(**own, **children)
        .on_conflict_do_update(index_elements=["execution_key"], set_=children)
    )
    await work.execute(
        update(automation_run)
        .where(_run.id == run_id, _run.status == RunStatus.RUNNING, _all_suspended(run_id))
        .values(status=RunStatus.WAITING)
    )
    return True


async def forget(work: UnitOfWork, run_id: Id) -> None:
    """Forget the executions of a run that begins anew."""
    await work.execute(delete(suspended_execution).where(_suspended.run_id == run_id))


def _all_suspended(run_id: Id) -> ColumnElement[bool]:
    """True when the run's own execution and all below it are suspended."""
    top = select(literal(Family.AUTOMATION_RUN.workflow_id(run_id)).label("id")).cte(
        "tree", recursive=True
    )
    children = select(func.unnest(_suspended.child_keys)).where(
        _suspended.execution_key == top.c.id
    )
    tree = top.union(children)
    active = select(tree.c.id).where(
        tree.c.id.not_in(select(_suspended.execution_key).where(_suspended.run_id == run_id))
    )
    return ~active.exists()


_RESUME = PreparedStatement(
    update(automation_run)
    .where(
        _run.id == bindparam("run_id"),
        _run.status == RunStatus.WAITING.value,
    )
    .values(status=RunStatus.RUNNING.value)
    .add_cte(
        delete(suspended_execution)
        .where(_suspended.execution_key == bindparam("execution_key", type_=Text))
        .cte("resumed")
    )
)


async def resume(work: Work, run_id: Id, key: str) -> None:
    """Note that an execution goes on; its run is no longer `waiting`."""
    await _RESUME.execute(work, {"run_id": run_id, "execution_key": key})
