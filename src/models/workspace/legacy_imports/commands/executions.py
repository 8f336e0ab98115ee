"""Intents that tell Temporal of a run: that it has an execution, and that somebody has decided."""

from typing import Protocol

from models.core.base import Id
from models.core.lifecycle import commands as lifecycle
from runtime import outbox
from runtime.database import UnitOfWork
from runtime.families import Family

DECIDED = "decided"
"""The signal of an execution whose row has changed by somebody's decision."""


class Executed(Protocol):
    """A run, and which execution of it is the present one."""

    id: Id
    execution: str


async def start_execution(
    work: UnitOfWork, run_id: Id, execution: str = "", restarts: int = 0
) -> None:
    """Have an execution of a run started; `execution` as the column of the row."""
    request: outbox.StartRequest = {
        "summary": "Legacy import",
        "resourceId": str(run_id),
        "source": "api",
    }
    if execution:
        request["execution"] = execution
    # A run is of no workspace: in the line of the outbox it stands for itself.
    await lifecycle.start(work, Family.LEGACY_IMPORT, run_id, run_id, request, restarts)


async def signal_execution(work: UnitOfWork, run: Executed, decision: str) -> None:
    """Have the execution of a run look at its row again."""
    await outbox.append(
        work,
        intent=outbox.Intent.SIGNAL,
        family=Family.LEGACY_IMPORT,
        workspace_id=run.id,
        subject_id=run.id,
        request={
            "workflowId": workflow_id(run),
            "signal": DECIDED,
            "arguments": [decision],
        },
    )


async def cancel_execution(work: UnitOfWork, run: Executed) -> None:
    """Have the execution of a cancelled run end as cancelled."""
    await outbox.append(
        work,
        intent=outbox.Intent.CANCEL,
        family=Family.LEGACY_IMPORT,
        workspace_id=run.id,
        subject_id=run.id,
        request={"execution": run.execution},
    )


def workflow_id(run: Executed) -> str:
    """The id of the present execution of a run."""
    return Family.LEGACY_IMPORT.workflow_id(run.id, run.execution)
