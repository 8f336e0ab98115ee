"""Words of the pages: how times, durations, states and commands read."""

import json
import shlex
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from urllib.parse import urlencode

from runtime.clock import wire_timestamp

_MINUTE, _HOUR = 60, 3600
_MOST_SHOWN = 200
"""Characters of a value in a list of changes."""
_WORDS = {
    "ai": "AI",
    "api_key": "API key",
    "api_keys": "API keys",
    "datetime": "date and time",
    "http_csv": "CSV",
    "http_json": "JSON",
    "http_xlsx": "Excel",
    "json": "JSON",
    "mail": "email",
    "multi_select": "multi-select",
    "sql": "SQL",
    "url": "URL",
}
"""Names of states and kinds that read otherwise than they are spelled."""


def moment(value: datetime) -> str:
    """A time as ISO 8601 in UTC, for the attribute that a script reads."""
    return wire_timestamp(value)


def clock(value: datetime) -> str:
    """A time in UTC for who has no script."""
    return f"{value.astimezone(UTC):%-d %b %Y, %H:%M:%S} UTC"


def day(value: datetime) -> str:
    """A day of UTC."""
    return f"{value.astimezone(UTC):%-d %b %Y}"


def duration(seconds: float) -> str:
    """`850 ms`, `4.2 s`, `3 min 05 s`, `2 h 10 min`, `3 d 4 h`."""
    if seconds < 1:
        return f"{max(0, round(seconds * 1000))} ms"
    if seconds < _MINUTE:
        return f"{seconds:.1f} s"
    whole = int(seconds)
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE:02} s"
    if whole < 48 * _HOUR:
        return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE:02} min"
    days, rest = divmod(whole, 24 * _HOUR)
    return f"{days} d {rest // _HOUR} h"


def plain(name: str) -> str:
    """The name of a state or a kind as a word: `timed_out` → `timed out`."""
    return _WORDS.get(str(name), str(name).replace("_", " "))


def sentence_case(words: str) -> str:
    """The words with a capital letter, and as they are else."""
    return words[:1].upper() + words[1:]


def named(name: str) -> str:
    """The name of a kind as a label: `data_source` → `Data source`."""
    return sentence_case(plain(name))


def queried(path: str, **query: object) -> str:
    """A path with the parameters that have a value."""
    given = {name: str(value) for name, value in query.items() if value not in (None, "")}
    return f"{path}?{urlencode(given)}" if given else path


def curl(base: str, method: str, path: str, body: str | None = None) -> str:
    """The command that makes the same call of the API with a key of one's own."""
    lines = [f"curl {shlex.quote(base + path)}"]
    if method != "GET":
        lines[0] = f"curl -X {method} {shlex.quote(base + path)}"
    lines.append('-H "Authorization: Bearer $WORKSPACE_API_KEY"')
    if body is not None:
        lines += ["-H 'Content-Type: application/json'", f"-d {shlex.quote(body)}"]
    return " \\\n  ".join(lines)


def brief(value: object) -> str:
    """A value of a record in a few words."""
    text = value if isinstance(value, str) else "" if value is None else json.dumps(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def indented(value: object) -> str:
    """A value as JSON that a person edits."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def compact(value: object) -> str:
    """A value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False)


FILTERS: Mapping[str, Callable[..., str]] = {
    "moment": moment,
    "clock": clock,
    "day": day,
    "duration": duration,
    "plain": plain,
    "named": named,
    "queried": queried,
    "brief": brief,
    "json": indented,
}
