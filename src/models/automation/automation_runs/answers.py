"""Reading what a run has answered so far, for whoever called it and waits."""

from dataclasses import dataclass

from sqlalchemy import bindparam, select

from models.automation.automation_runs.outputs import first_response
from models.automation.automation_runs.rules import OPEN_RUN, RunStatus
from models.automation.automation_runs.tables import automation_run, node_run
from models.core.base import Id, JsonObject
from runtime.database import UnitOfWork
from runtime.prepared_statement import PreparedStatement


@dataclass(frozen=True, slots=True)
class RunAnswer:
    """The state of a run; `response` is the output of its respond node, once one has run."""

    status: RunStatus
    output: JsonObject | None
    response: JsonObject | None

    @property
    def ended(self) -> bool:
        return self.status not in OPEN_RUN


_ANSWER = PreparedStatement(
    select(automation_run.c.status, automation_run.c.output, first_response(node_run)).where(
        automation_run.c.workspace_id == bindparam("workspace_id"),
        automation_run.c.id == bindparam("run_id"),
    )
)


async def run_answer(work: UnitOfWork, workspace_id: Id, run_id: Id) -> RunAnswer | None:
    """The answer of a run so far; None when the run has been deleted."""
    row = await _ANSWER.first(work, {"workspace_id": workspace_id, "run_id": run_id})
    return None if row is None else RunAnswer(RunStatus(row[0]), row[1], row[2])
