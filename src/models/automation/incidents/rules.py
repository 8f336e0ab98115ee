"""Fingerprints of failures, and what a failure does to its incident. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from models.core.base import Id
from runtime.crypto import fingerprint

LONGEST_READ = 2_000
LONGEST_MESSAGE = 300
"""Characters of a message that are looked at, and that are left of it."""
ENOUGH_SUCCESSES = 20
"""Runs that succeeded at the node since the last failure, which close an incident at once."""
QUIET = timedelta(hours=24)
"""Time without a failure after which one run that succeeded at the node closes it."""

_PARTS = re.compile(
    r"""
    (?P<kept>\b(?:HTTP|status|code|answered|returned)[ :]{1,2}\d{3}\b)
    |(?P<value>"[^"]*"|\u201c[^\u201d]*\u201d|\u2018[^\u2019]*\u2019|«[^»]*»|`[^`]*`
        |(?<!\w)'[^']*'(?!\w))
    |(?P<time>\b\d{4}-\d\d-\d\d
            (?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?(?!\w)
        |\b\d{1,2}:\d\d(?::\d\d(?:\.\d{1,9})?)?\b)
    |(?P<address>\b[A-Za-z][A-Za-z0-9+.-]{0,20}://[^\s<>"']+
        |(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+
        |\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b
        |\[[0-9a-fA-F:]*:[0-9a-fA-F:]*\](?::\d{1,5})?)
    |(?P<id>\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b|\b0x[0-9a-fA-F]+\b
        |\b(?=[a-fA-F\d]*[a-fA-F])(?=[a-fA-F\d]*\d)[0-9a-fA-F]{8,}\b)
    |(?P<number>(?<!\w)[+-]?\d+(?:[.,]\d+)*(?:[eE][+-]?\d+)?
        (?=(?:ns|us|µs|ms|s|min|h|d|[kKMGT]i?B|B|kb|mb|px)?(?!\w)))
    |(?P<word>\b(?=[A-Za-z_]*\d)[A-Za-z\d_]{6,}\b)
    """,
    re.VERBOSE,
)


class CloseReason(StrEnum):
    """The way in which an incident was closed: by a person, by retries, or by other runs."""

    PERSON = "person"
    RETRIED = "retried"
    RECOVERED = "recovered"


class IncidentChange(StrEnum):
    """A change of an incident that is notified."""

    OPENED = "opened"
    GREW = "grew"
    CLOSED = "closed"


def normalised(message: str) -> str:
    """The message with placeholders for what differs from run to run.

    The status that a server answered stays: it says what went wrong.
    """
    text = _PARTS.sub(_placeholder, message[:LONGEST_READ])
    return " ".join(text.split())[:LONGEST_MESSAGE]


def _placeholder(part: re.Match[str]) -> str:
    kind = part.lastgroup
    if kind == "kept":
        return part[0]
    return "<id>" if kind == "word" else f"<{kind}>"


def fingerprint_of(
    automation_id: Id, node_id: str | None, error_code: str | None, message: str
) -> bytes:
    """The digest by which failures are alike; `message` is a normalised one."""
    parts = (node_id or "", error_code or "", message)
    return fingerprint(automation_id.bytes, *(part.encode(errors="replace") for part in parts))


@dataclass(frozen=True, slots=True)
class Course:
    """The course of an incident, as failures change it."""

    runs: int
    runs_before: int
    openings: int
    opened_at: datetime
    first_failed_at: datetime
    last_failed_at: datetime
    closed_at: datetime | None

    @property
    def runs_now(self) -> int:
        """The runs since it was opened last."""
        return self.runs - self.runs_before


def after(course: Course, failures: Sequence[datetime]) -> tuple[Course, IncidentChange | None]:
    """The course after failures at these times, and its notifications.

    A failure from before it was closed, which is only seen now, does not open it again.
    """
    first, last = min(failures), max(failures)
    longer = replace(
        course,
        runs=course.runs + len(failures),
        first_failed_at=min(course.first_failed_at, first),
        last_failed_at=max(course.last_failed_at, last),
    )
    if course.openings == 0:
        return replace(longer, openings=1, opened_at=first), IncidentChange.OPENED
    if course.closed_at is not None:
        late = [moment for moment in failures if moment > course.closed_at]
        if not late:
            return replace(longer, runs_before=longer.runs), None
        again = replace(
            longer,
            runs_before=longer.runs - len(late),
            openings=course.openings + 1,
            opened_at=min(late),
            closed_at=None,
        )
        return again, IncidentChange.OPENED
    grew = magnitude(longer.runs_now) > magnitude(course.runs_now)
    return longer, IncidentChange.GREW if grew else None


def magnitude(runs: int) -> int:
    """The power of ten that a number has reached: 0 of 9, 1 of 10, 3 of 1,000."""
    return len(str(max(runs, 1))) - 1


def has_recovered(successes: int, last_failed_at: datetime, now: datetime) -> bool:
    """True when enough runs succeeded at the node since it failed last."""
    if successes >= ENOUGH_SUCCESSES:
        return True
    return successes > 0 and last_failed_at <= now - QUIET
