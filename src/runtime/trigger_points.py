"""Named points at which a process can be made to die, so that its recovery there can be proved.

Nothing happens unless WORKSPACE_TRIGGER names points (comma-separated) and WORKSPACE_TRIGGER_MARKS
a directory. Each point kills once: its mark lets every later process pass.
"""

import os
import signal
from enum import StrEnum
from pathlib import Path


class Point(StrEnum):
    AFTER_COMMIT_BEFORE_START = "after_commit_before_start"
    """A run is accepted and its start claimed; Temporal knows nothing yet."""
    AFTER_START_BEFORE_MARK = "after_start_before_mark"
    """The workflow is started; the outbox still says that it must be."""
    AFTER_EFFECT_BEFORE_COMPLETION = "after_effect_before_completion"
    """A record is written; the workflow has not heard of it."""
    AFTER_CALL_BEFORE_END = "after_call_before_end"
    """A foreign server has answered; the node's end is not written."""
    DISPATCHED_BEFORE_COMMIT = "dispatched_before_commit"
    """Runs that answer events are written; nothing is committed. The mark names an event."""
    DISPATCHED_AFTER_COMMIT = "dispatched_after_commit"
    BEFORE_TERMINAL_WRITE = "before_terminal_write"
    AFTER_TERMINAL_WRITE = "after_terminal_write"


_ARMED = frozenset(filter(None, os.environ.get("WORKSPACE_TRIGGER", "").split(",")))


def reach(point: Point, run_id: object) -> None:
    """Die here with SIGKILL if this point is armed and unmarked; `run_id` is left in its mark."""
    if point in _ARMED:
        _die(Path(os.environ["WORKSPACE_TRIGGER_MARKS"]) / point, str(run_id))


def _die(mark: Path, run_id: str) -> None:
    try:
        with mark.open("x") as file:
            file.write(run_id)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)
