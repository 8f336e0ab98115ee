"""Cron expressions of five fields, as crontab(5) reads them (ADR 0128)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    lowest: int
    highest: int
    names: tuple[str, ...] = ()


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of week", 0, 7, _DAYS),
)
_SHORTHANDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_DAY_FIELDS = (2, 4)

ALL_HOURS = tuple(range(24))
ALL_DAYS = tuple(range(1, 32))
ALL_MONTHS = tuple(range(1, 13))
ALL_WEEKDAYS = tuple(range(7))

_PART = re.compile(r"(?P<range>\*|\w+(?:-\w+)?)(?:/(?P<step>\d{1,4}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Cron:
    """The values each field matches, ascending; days of the week count from Sunday, 0.

    `around_the_clock` says that the hours are all hours or a step through them, so that its times
    are a beat rather than hours of the day. `either_day` says that both day fields restrict it.
    """

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]
    around_the_clock: bool = False
    either_day: bool = False

    def names_day(self, day: date) -> bool:
        """True for a date on which it has times."""
        if day.month not in self.months:
            return False
        matches = (day.day in self.days, day.isoweekday() % 7 in self.weekdays)
        return any(matches) if self.either_day else all(matches)


def cron_problem(text: str) -> str | None:
    """The sentence for a cron expression that cannot be read, or None.

    Five fields (minute, hour, day of month, month, day of week) of `*`, numbers, names, ranges,
    lists and steps, or a shorthand such as `@daily`. Time zones have a key of their own.
    """
    if len(text) > 256:
        return "A cron expression can have at most 256 characters."
    fields = _fields(text)
    if len(fields) != len(_FIELDS):
        return (
            "A cron expression needs five fields: minute, hour, day of month, month, day of week. "
            f"This one has {len(fields)}."
        )
    for spec, field in zip(_FIELDS, fields, strict=True):
        for part in field.split(","):
            if _range(spec, part) is None:
                if (ranges := _turned(spec, part)) is not None:
                    return (
                        f'The {spec.name} "{part[:32]}" of the cron expression runs backwards. '
                        f"Write it as two ranges: {ranges}."
                    )
                return (
                    f'The {spec.name} "{part[:32]}" of the cron expression must be within '
                    f"{spec.lowest} to {spec.highest}."
                )
    return None


def parse_cron(text: str) -> Cron:
    """The fields of an expression without a `cron_problem`, as numbers."""
    fields = _fields(text)
    minutes, hours, days, months, weekdays = (
        _values(spec, field) for spec, field in zip(_FIELDS, fields, strict=True)
    )
    return Cron(
        minutes,
        hours,
        days,
        months,
        tuple(sorted({day % 7 for day in weekdays})),
        around_the_clock=_is_around_the_clock(fields[1], hours),
        # As in crontab(5), a field that begins with a star is no restriction, even with a step.
        either_day=not fields[2].startswith("*") and not fields[4].startswith("*"),
    )


def _is_around_the_clock(field: str, hours: tuple[int, ...]) -> bool:
    """True for all hours, and for a step that begins anew each day without a pause."""
    match = _PART.fullmatch(field)
    if hours == ALL_HOURS or match is None or match["step"] is None:
        return hours == ALL_HOURS
    step = int(match["step"])
    return len(hours) > 1 and hours[0] < step and hours[-1] + step >= len(ALL_HOURS)


def _fields(text: str) -> list[str]:
    """The five fields, or as many as there are; `?` in a day field is `*`, as Quartz writes it."""
    lowered = text.strip().lower()
    fields = _SHORTHANDS.get(lowered, lowered).split()
    return [
        "*" if field == "?" and place in _DAY_FIELDS else field
        for place, field in enumerate(fields)
    ]


def _values(spec: _Field, field: str) -> tuple[int, ...]:
    ranges: Iterator[range | None] = (_range(spec, part) for part in field.split(","))
    return tuple(sorted({value for numbers in ranges for value in numbers or ()}))


def _range(spec: _Field, part: str) -> range | None:
    """The values of one part of a list: a single value with a step continues to the highest."""
    match = _PART.fullmatch(part)
    if match is None:
        return None
    step = int(match["step"] or 1)
    if not 1 <= step <= spec.highest - spec.lowest + 1:
        return None
    if match["range"] == "*":
        return range(spec.lowest, spec.highest + 1, step)
    bounds = [_number(spec, text) for text in match["range"].split("-")]
    if spec.names is _DAYS and len(bounds) == 2 and bounds[0] and bounds[1] == 0:
        # Sunday is the last day of a range as well.
        bounds[1] = 7
    known = [bound for bound in bounds if bound is not None]
    in_range = all(spec.lowest <= bound <= spec.highest for bound in known)
    if len(known) != len(bounds) or not in_range or known != sorted(known):
        return None
    last = spec.highest if len(known) == 1 and match["step"] else known[-1]
    return range(known[0], last + 1, step)


def _turned(spec: _Field, part: str) -> str | None:
    """A range that runs backwards, such as `22-2`, as two; None for any other part."""
    first, hyphen, last = part.partition("-")
    bounds = [_number(spec, first), _number(spec, last)]
    if not hyphen or any(bound is None for bound in bounds):
        return None
    ranges = f"{first}-{spec.highest},{spec.lowest}-{last}"
    return ranges if all(_range(spec, one) for one in ranges.split(",")) else None


def _number(spec: _Field, text: str) -> int | None:
    if text in spec.names:
        return spec.names.index(text) + spec.lowest
    return int(text) if text.isdigit() and len(text) <= 4 else None
