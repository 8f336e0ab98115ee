"""Cron expressions of five fields, as Temporal schedules read them (decisions C7)."""

import re
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
_SHORTHANDS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_PART = re.compile(r"(?P<range>\*|\w+(?:-\w+)?)(?:/(?P<step>\d{1,4}))?", re.ASCII)


def cron_problem(text: str) -> str | None:
    """The sentence for a cron expression that cannot be read, or None.

    Five fields (minute, hour, day of month, month, day of week) of `*`, numbers, names, ranges,
    lists and steps, or a shorthand such as `@daily`. Time zones have a key of their own.
    """
    if len(text) > 256:
        return "A cron expression has at most 256 characters."
    if text.strip().lower() in _SHORTHANDS:
        return None
    fields = text.split()
    if len(fields) != len(_FIELDS):
        return (
            "A cron expression has five fields: minute, hour, day of month, month, day of week; "
            f"this one has {len(fields)}."
        )
    for spec, field in zip(_FIELDS, fields, strict=True):
        for part in field.split(","):
            if not _is_part(spec, part.lower()):
                return (
                    f'The {spec.name} "{part[:32]}" of the cron expression is not within '
                    f"{spec.lowest} to {spec.highest}."
                )
    return None


def _is_part(spec: _Field, part: str) -> bool:
    match = _PART.fullmatch(part)
    if match is None:
        return False
    step = match["step"]
    if step is not None and not 1 <= int(step) <= spec.highest - spec.lowest + 1:
        return False
    if match["range"] == "*":
        return True
    bounds = [_number(spec, text) for text in match["range"].split("-")]
    known = [bound for bound in bounds if bound is not None]
    in_range = all(spec.lowest <= bound <= spec.highest for bound in known)
    return len(known) == len(bounds) and in_range and known == sorted(known)


def _number(spec: _Field, text: str) -> int | None:
    if text in spec.names:
        return spec.names.index(text) + spec.lowest
    return int(text) if text.isdigit() and len(text) <= 4 else None
