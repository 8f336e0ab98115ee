"""The two ends of work that was executed again, and their comparison."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from models.core.base import JsonObject
from runtime.ids import least_id, parse_id

NOT_COMPARED = ("input", "headers")
"""Parts of an end that are shown, and may differ."""
_PRECISION = timedelta(milliseconds=1)
"""Of ids, and of times in an output."""


@dataclass(frozen=True, slots=True)
class End:
    """An end as a row has it."""

    status: str
    code: str | None
    error: str | None
    output: JsonObject | None
    outcome: str | None = None
    input: JsonObject | None = None
    """May be written otherwise than before."""
    headers: JsonObject | None = None
    """Of the response to a call, of which the date and others differ with each call."""


@dataclass(frozen=True, slots=True)
class Reexecution:
    """The two ends of one piece of work: `before` is the recorded one."""

    name: str
    kind: str
    before: End
    now: End
    calls: str
    """The source of the answers to outside calls; empty where the kind makes none."""
    is_reached: bool | None
    """True when the debugger came to its own code; None without a debugger."""
    began: datetime

    @property
    def is_same(self) -> bool:
        before, now = self.before, self.now
        ends = [(end.status, end.code, end.error, end.outcome) for end in (before, now)]
        return ends[0] == ends[1] and self.has_same_output

    @property
    def has_same_output(self) -> bool:
        """True also for other ids and times, if this execution made the present ones."""
        return self._is_same(self.before.output, self.now.output)

    def _is_same(self, before: object, now: object) -> bool:
        if isinstance(before, dict) and isinstance(now, dict):
            return before.keys() == now.keys() and all(
                self._is_same(before[key], now[key]) for key in before
            )
        if isinstance(before, list) and isinstance(now, list):
            return len(before) == len(now) and all(map(self._is_same, before, now))
        if before == now:
            return True
        old, new, since = _parsed(before), _parsed(now), self.began - _PRECISION
        if isinstance(old, UUID) and isinstance(new, UUID):
            return new.version == 7 and new >= least_id(since)
        return isinstance(old, datetime) and isinstance(new, datetime) and new >= since


def _parsed(value: object) -> UUID | datetime | None:
    """An id, or a time with its zone."""
    if not isinstance(value, str):
        return None
    if (found := parse_id(value)) is not None:
        return found
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        return None
    return time if time.tzinfo else None
