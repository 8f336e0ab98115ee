"""The runs that this process started and that have not begun, and the callbacks for when one does.

The relay notes the runs it starts; the activities of runs report here, because a begin makes room
for the next start.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from models.core.base import Id
from runtime.processes.bounded_processes import room_to_evaluate

LOST_SECONDS = 2.0
"""After this time a run that has not begun no longer keeps others from starting."""
RECENT_SECONDS = 5.0
"""For this time after a start its workspace counts as one that starts runs, or other work."""
CROWDED_SECONDS = 5.0
"""A run waits no longer for the evaluations of its workspace before it goes back to the outbox."""
MOST_HELD = 10
"""Runs that wait here at once for evaluations: a relay has twenty places for all workspaces."""
LONGEST_REST = 0.25


@dataclass(slots=True)
class _Begin:
    """The begin of a run, and the seconds from its turn to it, which are more in a busy worker."""

    event: asyncio.Event = field(default_factory=asyncio.Event)
    seconds: float = 0.0


@dataclass(slots=True)
class _Start:
    """A run that was claimed."""

    workspace_id: Id
    before: _Begin | None
    """The begin of the run of its workspace that was claimed before it."""
    at: float = field(default_factory=time.monotonic)
    turn_at: float = field(default_factory=time.monotonic)
    begin: _Begin = field(default_factory=_Begin)


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
        self._other_work: dict[Id, float] = {}
        """The last start of other work of each workspace, which has more steps than a run."""
        self._waits_for_begin = self._waits_for_end = False
        self._enough = 1
        self._begun, self._ended = 0, False
        """The begins of runs since the last claim began, and that any has ended."""

    def started(self, run_id: Id, workspace_id: Id) -> None:
        """The relay has claimed a run of a workspace."""
        last = self._recent.get(workspace_id)
        start = _Start(workspace_id, last.begin if last else None)
        self._not_begun[run_id] = self._recent[workspace_id] = start

    def started_other(self, workspace_id: Id) -> None:
        """The relay has claimed an import, a job or other work of a workspace."""
        self._other_work[workspace_id] = time.monotonic()

    async def turn(self, run_id: Id) -> bool:
        """Wait until a run may start; False when its workspace has too many long evaluations.

        The run would only wait for them in Temporal, and ask again and again. Beside other
        workspaces it waits for the begin of the run before it.
        """
        start = self._not_begun.get(run_id)
        if start is None:
            return True
        self.held += 1
        try:
            async with asyncio.timeout(CROWDED_SECONDS if self.held <= MOST_HELD else 0):
                await room_to_evaluate(start.workspace_id)
            if start.before is not None and self.workspaces() > 1:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOST_SECONDS):
                        await self._follow(start.before, start.workspace_id)
        except TimeoutError:
            self._not_begun.pop(run_id, None)
            start.begin.event.set()
            return False
        finally:
            self.held -= 1
            start.turn_at = time.monotonic()
        return True

    async def _follow(self, before: _Begin, workspace_id: Id) -> None:
        """Wait for a begin. While other workspaces have work, pause for as long as it took.

        Each of the many steps of that work would wait for a worker that is always busy with runs.
        """
        await before.event.wait()
        if self._other_work.keys() - {workspace_id}:
            await asyncio.sleep(min(before.seconds, LONGEST_REST))

    def release(self) -> None:
        """Let all take their turn now: no begin is heard of any more."""
        for start in self._not_begun.values():
            start.begin.event.set()

    def begun(self, run_id: Id, *, by_relay: bool = True) -> None:
        """A run began in this process; `by_relay` unless a workflow started it."""
        start = self._not_begun.pop(run_id, None)
        if start is None:
            if by_relay:
                self.on_foreign_begin()
            return
        start.begin.seconds = time.monotonic() - start.turn_at
        start.begin.event.set()
        self._begun += 1
        if self._waits_for_begin and self._has_room():
            self.on_room()

    def stopped_running(self) -> None:
        """A run ended in this process, or waits."""
        self._ended = True
        if self._waits_for_end:
            self.on_room()

    def workspaces(self) -> int:
        """The number of workspaces that started runs of late, or other work."""
        since = time.monotonic() - RECENT_SECONDS
        self._recent = {space: last for space, last in self._recent.items() if last.at > since}
        self._other_work = {space: at for space, at in self._other_work.items() if at > since}
        return len(self._recent.keys() | self._other_work.keys())

    def begin_claim(self) -> Sequence[Id]:
        """The relay begins a claim; the runs whose begin is waited for.

        Runs that began in other processes are among them.
        """
        since = time.monotonic() - LOST_SECONDS
        for run_id in [one for one, start in self._not_begun.items() if start.at <= since]:
            # Its begin may be heard no more: the run after it waits no longer, either.
            self._not_begun.pop(run_id).begin.event.set()
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
