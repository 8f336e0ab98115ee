"""The state of the platform on the wire (decisions C16)."""

from models.core.base import Id, Moment, Shape
from runtime.families import Queue


class Waiting(Shape):
    """The number that waits, and the age of the oldest; no age when nothing waits."""

    waiting: int
    oldest_seconds: float | None


class RelayState(Waiting):
    """Work that the relay has not brought to Temporal yet: its age is the lag of the relay.

    `retried` counts what could not be delivered at once.
    """

    retried: int


class OpenWork(Shape):
    """Open work of one kind in one state."""

    kind: str
    status: str
    count: int
    oldest_seconds: float


class WorkerBody(Shape):
    """A worker process; one that is not `alive` has said nothing for 20 seconds."""

    id: Id
    host: str
    pid: int
    queues: list[Queue]
    alive: bool
    started_at: Moment
    seen_at: Moment


class QueueBody(Shape):
    """A task queue, and how many processes that are alive take its tasks."""

    name: Queue
    workers: int


class SystemState(Shape):
    """The work that waits, for how long, and who works on it."""

    checked_at: Moment
    relay: RelayState
    events: Waiting
    work: list[OpenWork]
    queues: list[QueueBody]
    workers: list[WorkerBody]
