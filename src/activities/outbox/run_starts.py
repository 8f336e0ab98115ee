"""The runs that this process started and that have not begun, and who is told when one does.

The relay notes the runs it starts; the activities of runs report here, because what they do makes
room for the next start.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from models.core.base import Id

LOST_SECONDS = 2.0
"""After this time a run that has not begun no longer keeps others from starting."""
RECENT_SECONDS = 5.0
"""For this time after a start its workspace counts as one that starts runs."""


@dataclass(slots=True)
class _Start:
    """A run that was claimed."""

    before: asyncio.Event | None
    """The begin of the run of its workspace that was claimed before it."""
    at: float = field(default_factory=time.monotonic)
    begin: asyncio.Event = field(default_factory=asyncio.Event)


class RunStarts:
    """The messages between the relay and the activities of one process.

    `on_room` is called when a start that was left in the outbox may have room now,
    `on_foreign_begin` when a run begins here that the relay of another process started.
    """

    def __init__(self) -> None:
        self.on_room: Callable[[], None] = lambda: None
        self.on_foreign_begin: Callable[[], None] = lambda: None
        self.held = 0
        """The runs that were claimed and wait for their turn."""
        self._not_begun: dict[Id, _Start] = {}
        self._recent: dict[Id, _Start] = {}
        """The last start of each workspace that started runs of late."""
        self._waits_for_begin = self._waits_for_end = False
        self._enough = 1
        self._begun, self._ended = 0, False
        """The begins of runs since the last claim began, and that any has ended."""

    def started(self, run_id: Id, workspace_id: Id) -> None:
        """The relay has claimed a run of a workspace."""
        last = self._recent.get(workspace_id)
        start = _Start(last.begin if last else None)
        self._not_begun[run_id] = self._recent[workspace_id] = start

    async def turn(self, run_id: Id) -> None:
        """Beside other workspaces, wait for the begin of the run of its workspace before it."""
        start = self._not_begun.get(run_id)
        if start is None or start.before is None or self.workspaces() < 2:
            return
        self.held += 1
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOST_SECONDS):
                    await start.before.wait()
        finally:
            self.held -= 1

    def release(self) -> None:
        """Let all take their turn now: no begin is heard of any more."""
        for start in self._not_begun.values():
            start.begin.set()

    def begun(self, run_id: Id, *, by_relay: bool = True) -> None:
        """A run began in this process; `by_relay` unless a workflow started it."""
        start = self._not_begun.pop(run_id, None)
        if start is None:
            if by_relay:
                self.on_foreign_begin()
            return
        start.begin.set()
        self._begun += 1
        if self._waits_for_begin and self._has_room():
            self.on_room()

    def stopped_running(self) -> None:
        """A run ended in this process, or waits."""
        self._ended = True
        if self._waits_for_end:
            self.on_room()

    def workspaces(self) -> int:
        """The number of workspaces that started runs of late."""
        since = time.monotonic() - RECENT_SECONDS
        self._recent = {space: last for space, last in self._recent.items() if last.at > since}
        return len(self._recent)

    def begin_claim(self) -> Sequence[Id]:
        """The relay begins a claim; the runs whose begin is waited for.

        Runs that began in other processes are among them.
        """
        since = time.monotonic() - LOST_SECONDS
        for run_id in [one for one, start in self._not_begun.items() if start.at <= since]:
            # Its begin may be heard no more: the run after it waits no longer, either.
            self._not_begun.pop(run_id).begin.set()
        self._begun, self._ended = 0, False
        return list(self._not_begun)

    def end_claim(self, *, waits_for_begin: bool, waits_for_end: bool, enough: int = 1) -> None:
        """The relay ends a claim, and says what the starts that it left wait for.

        The next claim comes when `enough` have begun: it costs as much for several as for one.
        """
        self._waits_for_begin, self._waits_for_end = waits_for_begin, waits_for_end
        self._enough = enough
        if (waits_for_begin and self._has_room()) or (waits_for_end and self._ended):
            self.on_room()

    def _has_room(self) -> bool:
        return self._begun >= self._enough or (self._begun > 0 and not self._not_begun)
