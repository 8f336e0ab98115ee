"""Due times of dates in records: the field's value and an offset, in a time zone (decisions C7).

A date without a time means midnight of that day in the time zone. Its offset is added in local
time, so that 540 minutes are nine o'clock on every day of the year. A local time that the clocks
skip is due right after the skip; one that they repeat is due the first time.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from models.core.base import JsonObject
from models.core.schedules.timezones import moment_of
from models.data.fields.rules.kinds import DATE_KINDS, FieldKind

MOMENT_KINDS = DATE_KINDS | {FieldKind.CREATED_AT, FieldKind.UPDATED_AT}
"""Kinds of fields that hold one day or one moment."""

_MARGIN = timedelta(days=2)
"""More than any zone's distance from UTC, on both sides."""
LONGEST_WINDOW = timedelta(days=400)
"""The farthest a poll looks back for dates. Older dates start no run."""


@dataclass(frozen=True, slots=True)
class DateWatch:
    """The dates that a `record_date_reached` trigger waits for, in a field of this kind."""

    field_key: str
    kind: FieldKind
    offset: timedelta
    zone: ZoneInfo

    @classmethod
    def of(cls, trigger_config: JsonObject, kind: FieldKind | None) -> "DateWatch | None":
        """The watch of a field of this kind; None when the field is gone, or no date."""
        if kind not in MOMENT_KINDS:
            return None
        offset = timedelta(minutes=trigger_config["offsetMinutes"])
        return cls(trigger_config["fieldKey"], kind, offset, ZoneInfo(trigger_config["timezone"]))

    @property
    def whole_days(self) -> bool:
        return self.kind is FieldKind.DATE

    def due(self, value: object) -> datetime | None:
        """The time this value of the field is due; None without one, or beyond the calendar."""
        if not isinstance(value, str):
            return None
        try:
            if self.whole_days:
                return self._due_on(date.fromisoformat(value))
            return datetime.fromisoformat(value).astimezone(UTC) + self.offset
        except (ValueError, OverflowError):
            return None

    def due_of(self, record: JsonObject | None) -> datetime | None:
        """The time a record as the API shows it is due; None while it is archived."""
        if record is None or record["archived"]:
            return None
        part = "data" if self.kind in DATE_KINDS else "system"
        return self.due(record[part].get(self.field_key))

    def days(self, after: datetime, until: datetime) -> list[date]:
        """The days that become due after one moment and until another, in order."""
        return [day for day in self._near(after, until) if after < self._due_on(day) <= until]

    def next_day(self, after: datetime) -> datetime | None:
        """The time at which the next day becomes due."""
        near = self._near(after, after + _MARGIN)
        return min((due for due in map(self._due_on, near) if due > after), default=None)

    def _near(self, after: datetime, until: datetime) -> Iterator[date]:
        day = (after - self.offset - _MARGIN).date()
        last = (until - self.offset + _MARGIN).date()
        while day <= last:
            yield day
            day += timedelta(days=1)

    def _due_on(self, day: date) -> datetime:
        wall = datetime.combine(day, time()) + self.offset
        return moment_of(wall, self.zone)
