"""The runs that this process started and that have not begun, and who is told when one does.

The relay notes the runs it starts; the activities of runs report here, because what they do makes
room for the next start.
"""

import time
from collections.abc import Callable, Sequence

from models.core.base import Id

LOST_SECONDS = 2.0
"""After this time a run that has not begun no longer keeps others from starting."""
RECENT_SECONDS = 5.0
"""For this time after a start its workspace counts as one that starts runs."""
BEGUN_TOGETHER = 4
"""Begins of one workspace's runs after which the next are claimed; the rest keep a worker busy."""


class RunStarts:
    """The messages between the relay and the activities of one process.

    `on_room` is called when a start that was left in the outbox may have room now,
    `on_foreign_begin` when a run begins here that the relay of another process started.
    """

    def __init__(self) -> None:
        self.on_room: Callable[[], None] = lambda: None
        self.on_foreign_begin: Callable[[], None] = lambda: None
        self._until: dict[Id, float] = {}
        """The runs that were started, and until when their begin is waited for."""
        self._recent: dict[Id, float] = {}
        """The workspaces that started runs, and until when they count."""
        self._waits_for_begin = self._waits_for_end = False
        self._begun, self._ended = 0, False
        """The begins of runs since the last claim began, and that any has ended."""

    def started(self, run_id: Id, workspace_id: Id) -> None:
        """The relay starts a run of a workspace."""
        now = time.monotonic()
        self._until[run_id] = now + LOST_SECONDS
        self._recent[workspace_id] = now + RECENT_SECONDS

    def begun(self, run_id: Id, *, by_relay: bool = True) -> None:
        """A run began in this process; `by_relay` unless a workflow started it."""
        if self._until.pop(run_id, None) is None:
            if by_relay:
                self.on_foreign_begin()
            return
        self._begun += 1
        if self._waits_for_begin and self._has_room():
            self.on_room()

    def stopped_running(self) -> None:
        """A run ended in this process, or waits."""
        self._ended = True
        if self._waits_for_end:
            self.on_room()

    def several_workspaces(self) -> bool:
        """True when more than one workspace started runs of late."""
        now = time.monotonic()
        self._recent = {space: until for space, until in self._recent.items() if until > now}
        return len(self._recent) > 1

    def begin_claim(self) -> Sequence[Id]:
        """The relay begins a claim; the runs whose begin is waited for.

        Runs that began in other processes are among them.
        """
        now = time.monotonic()
        self._until = {run_id: until for run_id, until in self._until.items() if until > now}
        self._begun, self._ended = 0, False
        return list(self._until)

    def end_claim(self, *, waits_for_begin: bool, waits_for_end: bool) -> None:
        """The relay ends a claim, and says what the starts that it left wait for."""
        self._waits_for_begin, self._waits_for_end = waits_for_begin, waits_for_end
        if (waits_for_begin and self._has_room()) or (waits_for_end and self._ended):
            self.on_room()

    def _has_room(self) -> bool:
        """True when enough has begun for a claim, which costs as much for several runs as for one.

        Where several workspaces start runs each begin counts: it is the turn of another.
        """
        enough = 1 if len(self._recent) > 1 else BEGUN_TOGETHER
        return self._begun >= enough or (self._begun > 0 and not self._until)
