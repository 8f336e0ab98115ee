"""The events of one run's stream: rows are asked again and again, and changes are sent."""

import asyncio
from collections.abc import AsyncIterator, Collection

from api.kernel.event_streams import event
from api.kernel.responses import as_refusal
from api.kernel.services import Services
from models.automation.automation_runs.rules import OPEN_RUN
from models.automation.run_overviews import queries
from models.automation.run_overviews.loops import loops_of
from models.automation.run_overviews.shapes import NodeProgress, RunChange, RunState
from models.core.base import Id

POLL_SECONDS = 0.25
SHARE = 10
"""Of the time between two questions, at most a tenth is spent on the answer."""
LONGEST_PAUSE_SECONDS = 5.0
"""However slow an answer was: one slow moment must not leave the page without news."""
LIFETIME_SECONDS = 60.0
"""Then the client comes again, and what it may see is asked anew: so long may a revoked key or a
lost right still hear."""


class Watch:
    """What a client knows of a run."""

    def __init__(self) -> None:
        self._run: RunState | None = None
        self._nodes: dict[str, NodeProgress] = {}

    def news(self, now: RunChange) -> RunChange | None:
        """What the client does not know yet; None when it knows everything."""
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

    No connection to the database is held between two questions.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + LIFETIME_SECONDS
    watch = Watch()
    loops: Collection[str] | None = None
    while loop.time() < deadline and not services.streams.closing:
        begun = loop.time()
        try:
            async with services.database.snapshot() as work:
                if loops is None:
                    loops = await loops_of(work, workspace_id, run_id)
                now = await queries.state(work, workspace_id, run_id, loops)
        except Exception as error:  # noqa: BLE001  # the answer has begun: it can only end
            as_refusal(error)
            return
        if now is None:
            return
        news = watch.news(now)
        yield None if news is None else event("state", news.model_dump_json(by_alias=True))
        if now.run.status not in OPEN_RUN:
            yield event("end")
            return
        pause = max(POLL_SECONDS, SHARE * (loop.time() - begun))
        await asyncio.sleep(min(pause, LONGEST_PAUSE_SECONDS))
