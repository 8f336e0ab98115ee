"""The status shown for a node that ran in several scopes."""

from collections.abc import Mapping

from models.automation.automation_runs.rules import NodeStatus

_TELLING = (
    NodeStatus.RUNNING,
    NodeStatus.WAITING,
    NodeStatus.QUEUED,
    NodeStatus.FAILED,
    NodeStatus.CANCELLED,
    NodeStatus.SUCCEEDED,
    NodeStatus.SKIPPED,
)


def overall(counts: Mapping[NodeStatus, int]) -> NodeStatus:
    """The status of a node over its scopes: an open one, else the worst end, else the best."""
    return next(status for status in _TELLING if counts.get(status))
