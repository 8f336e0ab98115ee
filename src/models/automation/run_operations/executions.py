"""Intents that tell Temporal of an operation: its start, after each pause anew, and its cancel."""

from typing import Protocol

from models.core.base import Id
from models.core.lifecycle import commands as lifecycle
from runtime import outbox
from runtime.database import UnitOfWork
from runtime.families import Family


class Executed(Protocol):
    """An operation, and the number of its present execution."""

    id: Id
    workspace_id: Id
    execution: int


async def start_execution(work: UnitOfWork, operation: Executed, restarts: int = 0) -> None:
    """Have the present execution of an operation started."""
    request: outbox.StartRequest = {
        "summary": "Operation over runs",
        "resourceId": str(operation.workspace_id),
        "source": "api",
        "weight": outbox.AWAITED,
    }
    if operation.execution:
        request["execution"] = str(operation.execution)
    await lifecycle.start(
        work,
        Family.RUN_OPERATION,
        operation.workspace_id,
        operation.id,
        request,
        restarts,
    )


async def end_execution(work: UnitOfWork, operation: Executed) -> None:
    """Have the present execution of an operation cancelled; one not started yet never is."""
    if await outbox.withdraw_starts(work, [operation.id]):
        return
    await outbox.append(
        work,
        intent=outbox.Intent.CANCEL,
        family=Family.RUN_OPERATION,
        workspace_id=operation.workspace_id,
        subject_id=operation.id,
        request={"execution": str(operation.execution or "")},
    )


def workflow_id(operation: Executed) -> str:
    """The id of the present execution of an operation."""
    return Family.RUN_OPERATION.workflow_id(operation.id, str(operation.execution or ""))
