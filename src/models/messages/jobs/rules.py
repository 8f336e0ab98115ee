"""The states of a job and the moves between them."""

from enum import StrEnum
from uuid import UUID

from models.core.lifecycle.rules import Lifecycle

SEALED_INPUT = "sealed"
"""The member of the input of a job that holds what is secret in it, sealed and in base64."""


class JobStatus(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


TRANSITIONS: dict[JobStatus, frozenset[JobStatus]] = {
    JobStatus.QUEUED: frozenset({JobStatus.RUNNING, JobStatus.FAILED, JobStatus.CANCELLED}),
    JobStatus.RUNNING: frozenset({JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.CANCELLED}),
    JobStatus.SUCCEEDED: frozenset(),
    JobStatus.FAILED: frozenset(),
    JobStatus.CANCELLED: frozenset(),
}

JOB_LIFECYCLE = Lifecycle(TRANSITIONS)
OPEN_JOB = JOB_LIFECYCLE.open


def sealed_input_place(job_id: UUID) -> str:
    """The place that the sealed input of a job is bound to."""
    return f"job|{job_id}|input"
