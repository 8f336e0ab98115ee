"""One database transaction of a workflow, as a local activity."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from models.automation.automations.rules.planner.plan import PlanNode
    from workflows.policies import DATABASE_PATIENCE, DATABASE_RETRY, DATABASE_TIMEOUT

SUMMARY_BYTES = 200
"""The size Temporal takes of the summary of an activity or timer; a label may be longer."""

_Argument = TypeVar("_Argument")
_Reply = TypeVar("_Reply")


async def transact(
    method: Callable[[Any, _Argument], Awaitable[_Reply]],
    argument: _Argument,
    summary: str | None = None,
) -> _Reply:
    """Execute an activity method as a local activity, retried while the database is away."""
    return await workflow.execute_local_activity_method(
        method,
        argument,
        start_to_close_timeout=DATABASE_TIMEOUT,
        retry_policy=DATABASE_RETRY,
        local_retry_threshold=DATABASE_PATIENCE,
        summary=summary,
    )


def summary_of(*nodes: PlanNode) -> str:
    """The labels of nodes, cut to what Temporal takes as a summary."""
    return shortened(", ".join(node.label or node.id for node in nodes))


def shortened(text: str) -> str:
    """The text, cut to what Temporal takes as a summary."""
    return text.encode()[:SUMMARY_BYTES].decode(errors="ignore")
