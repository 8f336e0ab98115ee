"""Calls as `openapi.json` shows them: what was sent and answered, the same in every recording.

What differs between two recordings has a fixed value here: ids, moments, tokens, durations. An id
of the furnished workspace keeps its name, so that a body can be sent to another one again.
"""

import json
import re
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.contract.furnished import Furnished

FILE = Path(__file__).parents[2] / "src" / "api" / "reference" / "examples.json"

MOST = 2
"""Elements of a list that an answer shows."""
RANDOM = 20
"""Characters from which on a secret of a furnished workspace is random, and no word."""

_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_HEX = re.compile(r"[0-9a-f]{32}(?:[0-9a-f]{32})?")
_TOKEN = re.compile(
    r"(?<![\w-])(?=[\w-]*[A-Z])(?=[\w-]*[a-z])(?:(?=[\w-]*\d)[\w-]{20,}|[\w-]{40,})"
)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
_PREFIXED = re.compile(r"\b(whsec|svc_sk)_[\w+/=-]+")
_DAY = re.compile(r"\b\d{4}-\d\d-\d\d\b(?!T)")
_MEASURED = re.compile(r"\w+Ms|\w*[bB]ytes?\w*|oldestSeconds|apiCalls")
_MOMENT = "2026-03-02T09:30:00.000Z"
_MOMENTS = {
    "startedAt": "2026-03-02T09:30:01.000Z",
    **dict.fromkeys(("completedAt", "updatedAt"), "2026-03-02T09:30:02.500Z"),
    "nextRunAt": "2026-03-02T10:00:00.000Z",
    "expiresAt": "2026-03-09T09:30:00.000Z",
}


def sendable(example: Any, made: Furnished) -> Any:
    """A body that is shown, with the ids and secrets of this workspace."""
    real = {stands_for: one for one, stands_for in _named(made).items()}
    return _replaced(example, real)


def shown(value: Any, made: Furnished) -> Any:
    """A body as it is shown."""
    return json.loads(_HEX.sub(_hex, json.dumps(_replaced(value, _named(made)))))


def shown_answer(value: Any, made: Furnished, operation: str, sent: Any) -> Any:
    """An answer as it is shown: short lists, and fixed values where nothing was sent."""
    named = _named(made)
    answer = _Answer(operation, json.dumps(sent), frozenset(named.values()))
    return answer.fixed(_replaced(value, named))


def deviations(found: Any, example: Any, path: str = "") -> Iterator[str]:
    """Where a value has another shape than the one that is shown; null is one of every shape."""
    if isinstance(found, dict) and isinstance(example, dict):
        yield from (f"{path}.{key}" for key in found.keys() ^ example.keys())
        for key in found.keys() & example.keys():
            yield from deviations(found[key], example[key], f"{path}.{key}")
    elif isinstance(found, list) and isinstance(example, list):
        if len(found) != len(example):
            yield f"{path}: {len(found)} elements"
        for one, other in zip(found, example, strict=False):
            yield from deviations(one, other, f"{path}[]")
    elif None not in (found, example) and _kind(found) != _kind(example):
        yield f"{path}: {found}"


def _kind(value: Any) -> type[Any]:
    return float if type(value) is int else type(value)


def _named(made: Furnished) -> Mapping[str, str]:
    """What stands for each id and secret of a furnished workspace."""
    found = {"ownerId": str(made.space.user_id), **made.secrets, **made.ids}
    return {
        value: _example_id(name) if _ID.fullmatch(value) else f"example-{name.replace(' ', '-')}"
        for name, value in found.items()
        if len(value) >= RANDOM and "@" not in value
    }


def _example_id(name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, name))


def _replaced(value: Any, others: Mapping[str, str]) -> Any:
    """The value with others in place of these texts, wherever they stand in it."""
    pattern = "|".join(map(re.escape, sorted(others, key=len, reverse=True)))
    return json.loads(re.sub(pattern, lambda found: others[found[0]], json.dumps(value)))


def _hex(found: "re.Match[str]") -> str:
    return "example" if len(found[0]) == 32 else "0" * 64


class _Answer:
    """Fixes the values of an answer; ids that it alone has are numbered."""

    def __init__(self, operation: str, sent: str, named: frozenset[str]) -> None:
        self._operation = operation
        self._sent = sent
        self._named = named
        self._ids: dict[str, str] = {}

    def fixed(self, value: Any, key: str = "") -> Any:
        """The value that stands for another below a key."""
        if isinstance(value, dict):
            return {self._text(name, ""): self.fixed(one, name) for name, one in value.items()}
        if isinstance(value, list):
            return [self.fixed(one, key) for one in value[:MOST]]
        if isinstance(value, str):
            return self._text(value, key)
        measured = type(value) in {int, float} and _MEASURED.fullmatch(key)
        return 1_500 if measured and value else value

    def _text(self, text: str, key: str) -> str:
        if text not in self._sent:
            text = _DAY.sub(_MOMENT[:10], _TIME.sub(_MOMENTS.get(key, _MOMENT), text))
        text = _ID.sub(lambda found: self._id(found[0]), text)
        text = _PREFIXED.sub(r"\1_example", text)
        return _HEX.sub(_hex, _TOKEN.sub(f"example-{key}", text))

    def _id(self, value: str) -> str:
        if value in self._named:
            return value
        return self._ids.setdefault(value, _example_id(f"{self._operation} {len(self._ids)}"))
