"""Temporal's fairness: its queues serve the families of workspaces in turn, by weight."""

import uuid

from temporalio.common import Priority

from runtime.families import Family


def fairness(workspace_id: uuid.UUID, family: Family, weight: int = 1) -> Priority:
    """The fairness of an execution and of all its tasks; every one has the same priority.

    A queue hands out tasks of the lowest priority key as long as there are any, so keys that differ
    would let one class hold back another for ever.
    """
    return Priority(fairness_key=f"{workspace_id}/{family}", fairness_weight=float(weight))
