"""Temporal's fairness: its queues serve the families of workspaces in turn, by weight."""

import uuid
from collections.abc import Mapping

from temporalio import activity
from temporalio.api.common.v1 import Payload
from temporalio.common import Priority

from runtime.families import Family

HEADER = "fairness-key"
"""The header of an activity that may be handed over without its priority."""


def fairness(workspace_id: uuid.UUID, family: Family, weight: int = 1) -> Priority:
    """The fairness of an execution and of all its tasks; every one has the same priority.

    A queue hands out tasks of the lowest priority key as long as there are any, so keys that differ
    would let one class hold back another for ever.
    """
    return Priority(fairness_key=f"{workspace_id}/{family}", fairness_weight=float(weight))


def header_of(priority: Priority) -> Mapping[str, Payload]:
    """The header of an activity whose workflow has this priority."""
    return {HEADER: Payload(data=(priority.fairness_key or "").encode())}


def workspace_of(info: activity.Info, headers: Mapping[str, Payload]) -> str:
    """The workspace for which an activity is executed; empty where there is none."""
    key = headers[HEADER].data.decode() if HEADER in headers else info.priority.fairness_key
    return (key or "").partition("/")[0]
