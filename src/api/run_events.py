"""The events of one run's stream, which the page of a run follows.

The run is read again and again, and what changed is sent.
"""

import asyncio
from collections.abc import AsyncIterator, Collection

import anyio
from fastapi.sse import format_sse_event

from api.kernel.responses import as_refusal
from api.kernel.services import Services
from models.automation.automation_runs.rules import OPEN_RUN
from models.automation.run_overviews import queries
from models.automation.run_overviews.loops import loops_of
from models.automation.run_overviews.shapes import NodeProgress, RunChange, RunState
from models.core.base import Id

POLL_SECONDS = 0.25
PAUSE_PER_READ = 10
"""A pause is at least so many times as long as the read before it."""
LONGEST_PAUSE_SECONDS = 5.0
"""Also after a very slow read: the page must not stay without news."""
LIFETIME_SECONDS = 60.0
"""Then the client reconnects and its rights are checked again. For at most this long a revoked key
still gets events."""


class Watch:
    """What was sent to a client so far."""

    def __init__(self) -> None:
        self._run: RunState | None = None
        self._nodes: dict[str, NodeProgress] = {}

    def changes(self, now: RunChange) -> RunChange | None:
        """What differs from that; None when nothing does."""
        changed = [node for node in now.nodes if self._nodes.get(node.node_id) != node]
        if not changed and now.run == self._run:
            return None
        self._run = now.run
        self._nodes |= {node.node_id: node for node in changed}
        return RunChange(run=now.run, nodes=changed)


async def run_events(
    services: Services, workspace_id: Id, run_id: Id
) -> AsyncIterator[bytes | None]:
    """The events of a run until it ends; None each time nothing is new.

    No connection to the database is held between two reads.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + LIFETIME_SECONDS
    watch = Watch()
    loops: Collection[str] | None = None
    while loop.time() < deadline and not services.streams.closing:
        begun = loop.time()
        try:
            # A page that is closed meanwhile cancels this, and a connection whose statement is
            # cancelled is lost to its pool, and to PostgreSQL an accident.
            with anyio.CancelScope(shield=True):
                async with services.database.snapshot() as work:
                    if loops is None:
                        loops = await loops_of(work, workspace_id, run_id)
                    now = await queries.state(work, workspace_id, run_id, loops)
        except Exception as error:  # noqa: BLE001  # the answer has begun, so it can only end
            as_refusal(error)
            return
        if now is None:
            return
        change = watch.changes(now)
        if change is None:
            yield None
        else:
            data = change.model_dump_json(by_alias=True)
            yield format_sse_event(event="state", data_str=data)
        if now.run.status not in OPEN_RUN:
            yield format_sse_event(event="end", data_str="{}")
            return
        pause = max(POLL_SECONDS, PAUSE_PER_READ * (loop.time() - begun))
        await asyncio.sleep(min(pause, LONGEST_PAUSE_SECONDS))
