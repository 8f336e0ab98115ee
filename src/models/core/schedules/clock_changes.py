"""Effects of daylight saving on a schedule, said to the person who made it (decisions D2)."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from models.core.schedules.cron import Cron
from models.core.schedules.timetables import Timetable, walls
from models.core.schedules.timezones import ClockChange, clock_changes

_YEAR = timedelta(days=366)
_MINUTE = timedelta(minutes=1)
EITHER_DAY = "The expression names days of the month and of the week: it runs where either matches."


def clock_notes(timetable: Timetable, first: datetime, last: datetime) -> list[str]:
    """A sentence for each change of the clock between two moments that touches due times."""
    if timetable.cron is None:
        return []
    zone = ZoneInfo(timetable.zone)
    notes = (_note(timetable.cron, zone, one) for one in clock_changes(zone, first, last))
    return [note for note in notes if note is not None]


def schedule_notes(timetable: Timetable, now: datetime) -> list[str]:
    """Notes on the less expected times of a schedule, in the year to come."""
    return [*day_notes(timetable), *clock_notes(timetable, now, now + _YEAR)]


def day_notes(timetable: Timetable) -> Iterator[str]:
    """A note on the two fields of days, if both restrict the schedule."""
    if timetable.cron is not None and timetable.cron.either_day:
        yield EITHER_DAY


def fire_note(timetable: Timetable, due: datetime) -> str | None:
    """The reason for a due time that the expression does not name; None for most."""
    return next(iter(clock_notes(timetable, due - _MINUTE, due)), None)


def _note(cron: Cron, zone: ZoneInfo, change: ClockChange) -> str | None:
    earlier, later = sorted((change.before, change.after))
    touched = next(walls(cron, earlier, later), None)
    if touched is None:
        return None
    clock = (
        f"the clock of {zone.key} goes {'forward' if change.is_forward else 'back'} from"
        f" {change.before:%H:%M} to {change.after:%H:%M}"
    )
    if cron.around_the_clock:
        return f"On {change.before:%Y-%m-%d} {clock}. The schedule keeps its interval."
    if not change.is_forward:
        return (
            f"On {change.before:%Y-%m-%d} {clock}: {touched:%H:%M} comes twice. The schedule runs"
            " the first time only."
        )
    if change.skips_day(touched):
        return f"{touched:%Y-%m-%d} does not exist in {zone.key} and has no runs."
    return (
        f"{touched:%Y-%m-%d %H:%M} does not exist: {clock}. The schedule runs at"
        f" {change.after:%H:%M} instead."
    )
