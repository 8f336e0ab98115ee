"""Turning the problems of an input, each at its path, into one `ValidationError`."""

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import ValidationError as ShapeError
from pydantic_core import ErrorDetails

from runtime.errors import Detail, ValidationError

MAX_PROBLEMS = 20


def refuse(problems: Sequence[Detail]) -> None:
    """Raise the `ValidationError` of these problems, if there are any."""
    if problems:
        raise refusal(problems)


def refusal(problems: Sequence[Detail]) -> ValidationError:
    """The error that tells the first problem in words and at most 20 in its details."""
    first = problems[0]
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    where = f"{first.path}: " if first.path else ""
    return ValidationError(f"{where}{first.message}{more}", problems[:MAX_PROBLEMS])


def located(error: ShapeError, path: str) -> Iterator[Detail]:
    """What a shape refuses, each at its place below `path`."""
    for problem in error.errors(include_url=False, include_context=False, include_input=False):
        where = ".".join([path, *(str(part)[:100] for part in problem["loc"])])
        yield Detail(where, sentence(problem))


def place(problem: ErrorDetails, value: Any) -> str:
    """The location as the client wrote it: names of union members are not part of the body."""
    parts: list[str] = []
    node = value
    location = problem["loc"]
    for index, part in enumerate(location):
        if _has(node, part):
            node = node[part]
        elif index < len(location) - 1 or problem["type"] != "missing":
            continue
        parts.append(str(part)[:100])
    if problem["type"] in _OF_A_TAG:
        parts.append(problem["ctx"]["discriminator"].strip("'"))
    return ".".join(parts)


_OF_A_TAG = frozenset({"union_tag_invalid", "union_tag_not_found"})
"""The key that tells the members of a union apart is missing or has no known value."""


def _has(node: Any, part: str | int) -> bool:
    if isinstance(node, list):
        return isinstance(part, int) and part < len(node)
    return isinstance(node, dict) and part in node


_SENTENCES = {
    "missing": "This key is required.",
    "union_tag_not_found": "This key is required.",
    "extra_forbidden": "This key is not known here.",
    "model_type": "This must be a JSON object.",
    "model_attributes_type": "This must be a JSON object.",
    "dict_type": "This must be a JSON object.",
}


def sentence(problem: ErrorDetails) -> str:
    """What a shape refuses, in the words of the platform."""
    if problem["type"] == "union_tag_invalid":
        known: str = problem["ctx"]["expected_tags"]
        return f"It must be one of: {known.replace(chr(39), '')}."
    return _SENTENCES.get(problem["type"]) or problem["msg"].removeprefix("Value error, ")
