"""When a run waits: nothing runs in any of its executions, and something waits (decisions C8).

A run is one execution, and one more for every chunk of a long loop. Each rests while it only waits
for something outside of it; the run waits while its own execution and all those below it rest.
"""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Text, bindparam, delete, func, literal, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from models.automation.automation_runs.rules import RunStatus
from models.automation.automation_runs.tables import automation_run, resting_execution
from models.core.base import Id
from runtime.database import UnitOfWork, Work
from runtime.families import Family
from runtime.prepared_statement import PreparedStatement

_run = automation_run.c
_resting = resting_execution.c


def place_of(run_id: Id, workflow_id: str) -> str:
    """Where an execution stands in its run: the last part of a chunk's id is its number."""
    own = Family.AUTOMATION_RUN.workflow_id(run_id)
    return own if workflow_id == own else workflow_id.rpartition("/")[0]


async def suspend(work: UnitOfWork, run_id: Id, place: str, below: Sequence[str]) -> bool:
    """The execution in a place rests, as far as those in the places `below` do.

    False for a run that has ended. The run's lock keeps two executions from overlooking each other.
    """
    run = select(_run.workspace_id).where(
        _run.id == run_id, _run.status.in_([RunStatus.RUNNING, RunStatus.WAITING])
    )
    workspace_id = await work.scalar(run.with_for_update())
    if workspace_id is None:
        return False
    own = {"place": place, "run_id": run_id, "workspace_id": workspace_id}
    await work.execute(
        upsert(resting_execution)
        .values(**own, below=list(below))
        .on_conflict_do_update(index_elements=["place"], set_={"below": list(below)})
    )
    await work.execute(
        update(automation_run)
        .where(_run.id == run_id, _run.status == RunStatus.RUNNING, _all_rest(run_id))
        .values(status=RunStatus.WAITING)
    )
    return True


def _all_rest(run_id: Id) -> ColumnElement[bool]:
    """Whether the run's own execution and all below it rest."""
    top = select(literal(Family.AUTOMATION_RUN.workflow_id(run_id)).label("id")).cte(
        "tree", recursive=True
    )
    deeper = select(func.unnest(_resting.below)).where(_resting.place == top.c.id)
    tree = top.union(deeper)
    busy = select(tree.c.id).where(
        tree.c.id.not_in(select(_resting.place).where(_resting.run_id == run_id))
    )
    return ~busy.exists()


_STIR = PreparedStatement(
    update(automation_run)
    .where(
        _run.id == bindparam("run_id"),
        _run.status == RunStatus.WAITING.value,
    )
    .values(status=RunStatus.RUNNING.value)
    .add_cte(
        delete(resting_execution)
        .where(_resting.place == bindparam("place", type_=Text))
        .cte("stirred")
    )
)


async def resume(work: Work, run_id: Id, place: str) -> None:
    """The execution in a place goes on, and so does its run."""
    await _STIR.execute(work, {"run_id": run_id, "place": place})
