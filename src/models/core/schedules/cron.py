"""Cron expressions of five fields, as Temporal schedules read them (decisions C7)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

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
_PART = re.compile(r"(?P<range>\*|\w+(?:-\w+)?)(?:/(?P<step>\d{1,4}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Cron:
    """The values each field matches, ascending; days of the week count from Sunday, 0."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]


def cron_problem(text: str) -> str | None:
    """The sentence for a cron expression that cannot be read, or None.

    Five fields (minute, hour, day of month, month, day of week) of `*`, numbers, names, ranges,
    lists and steps, or a shorthand such as `@daily`. Time zones have a key of their own.
    """
    if len(text) > 256:
        return "A cron expression has at most 256 characters."
    fields = _fields(text)
    if len(fields) != len(_FIELDS):
        return (
            "A cron expression has five fields: minute, hour, day of month, month, day of week; "
            f"this one has {len(fields)}."
        )
    for spec, field in zip(_FIELDS, fields, strict=True):
        for part in field.split(","):
            if _range(spec, part) is None:
                return (
                    f'The {spec.name} "{part[:32]}" of the cron expression is not within '
                    f"{spec.lowest} to {spec.highest}."
                )
    return None


def parse_cron(text: str) -> Cron:
    """The fields of an expression without a `cron_problem`, as numbers."""
    minutes, hours, days, months, weekdays = (
        _values(spec, field) for spec, field in zip(_FIELDS, _fields(text), strict=True)
    )
    return Cron(minutes, hours, days, months, tuple(sorted({day % 7 for day in weekdays})))


def _fields(text: str) -> list[str]:
    lowered = text.strip().lower()
    return _SHORTHANDS.get(lowered, lowered).split()


def _values(spec: _Field, field: str) -> tuple[int, ...]:
    ranges: Iterator[range | None] = (_range(spec, part) for part in field.split(","))
    return tuple(sorted({value for numbers in ranges for value in numbers or ()}))


def _range(spec: _Field, part: str) -> range | None:
    """The values of one part of a list: a single value with a step goes on to the highest."""
    match = _PART.fullmatch(part)
    if match is None:
        return None
    step = int(match["step"] or 1)
    if not 1 <= step <= spec.highest - spec.lowest + 1:
        return None
    if match["range"] == "*":
        return range(spec.lowest, spec.highest + 1, step)
    bounds = [_number(spec, text) for text in match["range"].split("-")]
    known = [bound for bound in bounds if bound is not None]
    in_range = all(spec.lowest <= bound <= spec.highest for bound in known)
    if len(known) != len(bounds) or not in_range or known != sorted(known):
        return None
    last = spec.highest if len(known) == 1 and match["step"] else known[-1]
    return range(known[0], last + 1, step)


def _number(spec: _Field, text: str) -> int | None:
    if text in spec.names:
        return spec.names.index(text) + spec.lowest
    return int(text) if text.isdigit() and len(text) <= 4 else None
