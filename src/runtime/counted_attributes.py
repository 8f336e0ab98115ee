"""Attributes of runs that metrics count: an operator's list of keys and values (ADR 0095)."""

import re
from collections.abc import Mapping

OTHER = "other"
"""Stands for each value that the list does not name: nobody adds a series by a run."""

_ENTRY = re.compile(r"([a-z][a-zA-Z0-9_.-]{0,39})=([^\x00]{1,2000})")


def parse_counted_attributes(text: str) -> Mapping[str, tuple[str, ...]]:
    """`key=value|value,key=value` as the values of each key. Raises ValueError."""
    values_of: dict[str, tuple[str, ...]] = {}
    for entry in filter(None, map(str.strip, text.split(","))):
        parts = _ENTRY.fullmatch(entry)
        values = () if parts is None else tuple(map(str.strip, parts[2].split("|")))
        if parts is None or not all(values):
            raise ValueError("must be key=value|value, and a comma between keys")
        if parts[1] in values_of:
            raise ValueError("must name each key once")
        values_of[parts[1]] = values
    return values_of
