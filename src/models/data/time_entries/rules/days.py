"""The days of a summary, as long as the clock of their zone makes them."""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from models.core.schedules.timezones import is_timezone
from models.core.values import InvalidValueError, day
from models.data.time_entries.rules.times import EARLIEST
from runtime.errors import ValidationError

MAX_DAYS = 366
DEFAULT_DAYS = 30

_DAY = timedelta(days=1)


def read_zone(name: str) -> ZoneInfo:
    """The zone of this name. Raises `ValidationError`."""
    if not is_timezone(name):
        raise ValidationError.at("timezone", "must be an IANA time zone such as Europe/Berlin")
    return ZoneInfo(name)


def read_days(
    first: str | None, last: str | None, now: datetime, zone: ZoneInfo
) -> tuple[date, date]:
    """The first and the last day: until today, and 30 days, unless they are said.

    Raises `ValidationError` for what is no day, backward, or more than 366 days.
    """
    end = _read(last, "lastDay") or now.astimezone(zone).date()
    begin = _read(first, "firstDay") or max(end - (DEFAULT_DAYS - 1) * _DAY, EARLIEST.date())
    if end < begin:
        raise ValidationError.at("lastDay", "must not be before firstDay")
    if (end - begin).days >= MAX_DAYS:
        raise ValidationError.at("lastDay", f"must be within {MAX_DAYS} days of firstDay")
    return begin, end


def starts(first: date, last: date, zone: ZoneInfo) -> list[datetime]:
    """The start of each day, and the end of the last one.

    A day without a midnight begins when its clock is set forward; of two midnights the first
    counts.
    """
    count = (last - first).days + 2
    return [_start(first + number * _DAY, zone) for number in range(count)]


def _start(of: date, zone: ZoneInfo) -> datetime:
    return datetime.combine(of, time(), zone).astimezone(UTC)


def _read(text: str | None, path: str) -> date | None:
    if text is None:
        return None
    try:
        found = day(text)
    except InvalidValueError as problem:
        raise ValidationError.at(path, str(problem)) from problem
    if not EARLIEST.date() <= found <= date(9990, 1, 1):
        raise ValidationError.at(path, "must be a day from the year 2000 on")
    return found
