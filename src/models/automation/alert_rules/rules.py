"""States of alert rules, and what an evaluation changes. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from models.core.base import Id

UNSEEN_RUN = "The rule matches a run you have no access to."
"""The message of a firing for who does not see the run that it names."""


class AlertState(StrEnum):
    """The state of a rule: its condition holds, or it does not."""

    OK = "ok"
    FIRING = "firing"


class AlertChange(StrEnum):
    """A change of a rule that its recipients are notified of."""

    FIRED = "fired"
    REPEATED = "repeated"
    RESOLVED = "resolved"


class AlertDisabledReason(StrEnum):
    """The reason why a rule is disabled: a person, or lost rights."""

    MANUAL = "manual"
    SAVER_LEFT = "saver_left"
    RIGHTS_LOST = "rights_lost"


class Resolution(StrEnum):
    """The end of a firing: the condition ended, or the rule was changed or disabled."""

    OVER = "over"
    CHANGED = "changed"
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check of a rule; `run_id` is the run that shows it best."""

    holds: bool
    message: str
    value: int | None = None
    run_id: Id | None = None
    pending_since: datetime | None = None
    """The time since which it would hold, where only the looks themselves know it."""


def change_of(
    state: AlertState,
    holds: bool,
    told_at: datetime | None,
    repeat: timedelta | None,
    now: datetime,
) -> AlertChange | None:
    """The change that a check brings; None where nothing is to be told."""
    if state is AlertState.OK:
        return AlertChange.FIRED if holds else None
    if not holds:
        return AlertChange.RESOLVED
    due = repeat is not None and told_at is not None and told_at <= now - repeat
    return AlertChange.REPEATED if due else None


def minutes_since(moment: datetime, now: datetime) -> int:
    """The whole minutes between two moments, none where clocks differ."""
    return max(0, int((now - moment).total_seconds() // 60))


def counted(number: int, noun: str) -> str:
    """A number with its noun: `1 run`, `1,200 runs`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def spoken(minutes: int) -> str:
    """A time of whole minutes in words: `90 minutes`, `3 hours`, `2 days`."""
    for length, noun in ((24 * 60, "day"), (60, "hour")):
        if minutes and minutes % length == 0:
            return counted(minutes // length, noun)
    return counted(minutes, "minute")
