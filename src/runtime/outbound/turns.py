"""The turns in which the calls of somebody are made, where a limit or an answer asks for it."""

from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from runtime.outbound.messages import OutboundResponse


@dataclass(slots=True)
class Caller:
    """The work in whose name a task calls others.

    `key` is the same whenever the task is done again, and `execution` is whoever would do so.
    `calls` counts those begun so far; `connection_id` is the connection that they go through.
    """

    workspace_id: UUID
    work_id: UUID
    execution: str
    key: str
    connection_id: UUID | None = None
    calls: int = 0


calling: ContextVar[Caller | None] = ContextVar("calling", default=None)
"""None where calls are nobody's: they have no turns."""


def call_through(connection_id: UUID) -> None:
    """Note that what the task calls from now on goes through a connection."""
    caller = calling.get()
    if caller is not None:
        caller.connection_id = connection_id


class Turns(Protocol):
    """Lets the callers of hosts take turns."""

    def turn(self, host: str) -> AbstractAsyncContextManager[None]:
        """Wait until the host may be called, and hold a place there in the block."""
        ...

    async def answered(self, answer: OutboundResponse) -> None:
        """Heed what an answer asks of all callers; a turn is held meanwhile."""
        ...
