"""The kinds and states of time entries, and the moves between states (decisions C12)."""

from enum import StrEnum

from models.core.lifecycle.rules import Lifecycle


class TargetKind(StrEnum):
    """The kind of thing that time is spent on."""

    DATABASE_RECORD = "database_record"
    ITEM = "item"
    WORKSPACE = "workspace"


class EntrySource(StrEnum):
    """The origin of an entry."""

    TIMER = "timer"
    MANUAL = "manual"
    IMPORT = "import"
    AUTOMATION = "automation"


class EntryMode(StrEnum):
    STOPWATCH = "stopwatch"
    COUNTDOWN = "countdown"
    POMODORO = "pomodoro"
    FIXED = "fixed"


class EntryStatus(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    COMPLETED = "completed"
    DISCARDED = "discarded"


class EntrySound(StrEnum):
    """The sound that rings when a timer is done; the client plays it."""

    NONE = "none"
    CHIME = "chime"
    BELL = "bell"
    DIGITAL = "digital"
    GONG = "gong"
    SOFT = "soft"


class CompletedBy(StrEnum):
    """The person or the mechanism that ended an entry."""

    USER = "user"
    TIMER = "timer"
    """Its time was up."""
    SYSTEM = "system"
    """Another timer took its place, or its workspace was deleted."""
    ADMIN = "admin"
    """Somebody who manages the entries of others."""


class EntryAction(StrEnum):
    """The effect of an update on the clock of an entry."""

    PAUSE = "pause"
    RESUME = "resume"
    COMPLETE = "complete"
    DISCARD = "discard"


class OnActive(StrEnum):
    """The fate of the entry that runs when another one is to run."""

    REPLACE = "replace"
    REJECT = "reject"


_ENDS = frozenset({EntryStatus.COMPLETED, EntryStatus.DISCARDED})

ENTRY_LIFECYCLE = Lifecycle(
    {
        EntryStatus.ACTIVE: frozenset({EntryStatus.PAUSED}) | _ENDS,
        EntryStatus.PAUSED: frozenset({EntryStatus.ACTIVE}) | _ENDS,
        EntryStatus.COMPLETED: frozenset(),
        EntryStatus.DISCARDED: frozenset(),
    }
)
OPEN_ENTRY = ENTRY_LIFECYCLE.open

TIME_MOVED = "time_moved"
"""The signal to the execution of an entry: it is due at another moment, or has ended."""

TIMED_MODES = (EntryMode.COUNTDOWN, EntryMode.POMODORO)
"""The modes in which an entry ends by itself when its time is up."""
