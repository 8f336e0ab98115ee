"""The paths nearest to one that is not served, read from the table of routes alone."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice

from typing_extensions import override

from api.kernel.routing import Route
from runtime.errors import NotFoundError
from runtime.ids import parse_id

MOST = 3
_MOST_SEGMENTS = 16
_MOST_WORDS = 2
_FAR = 5.0
"""Cost from which the last word of a path says less about it than the word before."""
_LONGEST_WORD = 64
_ALIKE = 0.75
"""Similarity of two words, from 0 to 1, from which one may be meant by the other."""

_OTHER_ENDING, _OTHER_WORD, _MORE_OR_LESS = 2.0, 1.5, 1.0
_LONG_PART = 6
"""Letters of a word from which it may be meant by a part that it only resembles."""
_SIMILAR, _SIMILAR_PART, _NO_ID = 0.25, 0.5, 0.5
"""Costs of making one path of another, segment by segment."""


class UnknownPathError(NotFoundError):
    """No operation has the path; the message names the paths that are nearest to it."""

    def __init__(self, near: Sequence[str]) -> None:
        super().__init__("path")
        named = f"Nearest: {', '.join(near)}." if near else "/docs/operations lists all paths."
        self.message = f"This path does not exist. {named}"


@dataclass(slots=True)
class _Template:
    path: str
    segments: list[str]
    methods: set[str] = field(default_factory=set)

    @override
    def __str__(self) -> str:
        return f"{self.path} ({', '.join(sorted(self.methods))})"


class Neighbours:
    """Compares a path with the templates that have a word of it; what it costs is bounded."""

    def __init__(self, routes: Sequence[Route]) -> None:
        templates: dict[str, _Template] = {}
        for route in routes:
            if route.is_documented:
                segments = route.path.split("/")[1:]
                one = templates.setdefault(route.path, _Template(route.path, segments))
                one.methods.add(route.operation.method)
        self._templates = list(templates.values())
        self._words = {word for one in self._templates for word in _words(one.segments)}
        self._parts = _by_part(self._words)

    def of(self, method: str, path: str) -> list[str]:
        """At most three paths with their methods, the nearest first; none when nothing is alike."""
        segments = [segment for segment in path.split("/") if segment]
        if len(segments) > _MOST_SEGMENTS:
            return []
        found = (alike for segment in reversed(segments) if (alike := self._alike(segment)))
        near: list[tuple[float, bool, _Template]] = []
        for alike in islice(found, _MOST_WORDS):
            near = self._nearest(method, segments, alike)
            if near[0][0] < _FAR:
                break
        return [str(template) for _, _, template in near[:MOST]]

    def taking(self, method: str, path: str) -> str | None:
        """The path that has the method and is hardly another one; None where there is none."""
        segments = [segment for segment in path.split("/") if segment]
        if not segments or len(segments) > _MOST_SEGMENTS or len(segments[-1]) > _LONGEST_WORD:
            return None
        word = segments[-1]
        close = get_close_matches(word, self._words, MOST, _ALIKE)
        alike = {(word, other): _SIMILAR for other in close} | {(word, word): 0}
        near = self._nearest(method, segments, alike)
        costs = (
            template.path for cost, lacks, template in near if cost < _OTHER_WORD and not lacks
        )
        return next(costs, None)

    def _nearest(
        self, method: str, segments: Sequence[str], alike: Mapping[tuple[str, str], float]
    ) -> list[tuple[float, bool, _Template]]:
        """The templates that have one of the words, each behind its cost."""
        meant = {other for _, other in alike}
        costs = (
            (_cost(segments, one.segments, alike), method not in one.methods, one)
            for one in self._templates
            if not meant.isdisjoint(one.segments)
        )
        return sorted(costs, key=lambda each: each[:2])

    def _alike(self, word: str) -> dict[tuple[str, str], float]:
        """The word and each word of templates that it may stand for, with what the change costs."""
        if parse_id(word) is not None or len(word) > _LONGEST_WORD:
            return {}
        if word in self._words:
            return {(word, word): 0}
        lowered = word.lower()
        # A short word is like a part of many: `nope` is hardly the `node` of `run-from-node`.
        known = self._parts if len(lowered) >= _LONG_PART else [lowered]
        close = get_close_matches(lowered, known, MOST, _ALIKE)
        parts = [part for part in close if part in self._parts]
        found = {(word, whole): _SIMILAR_PART for part in parts for whole in self._parts[part]}
        close = get_close_matches(lowered, self._words, MOST, _ALIKE)
        return found | {(word, whole): _SIMILAR for whole in close}


def _by_part(words: Iterable[str]) -> dict[str, list[str]]:
    """The words by what they consist of: `import-spreadsheet` has two parts."""
    found: dict[str, list[str]] = {}
    for word in sorted(words):
        for part in re.split(r"\W", word):
            found.setdefault(part, []).append(word)
    return found


def _words(segments: Sequence[str]) -> Iterator[str]:
    return (one for one in segments if not one.startswith("{") and one != "v1")


def _cost(
    segments: Sequence[str], template: Sequence[str], alike: Mapping[tuple[str, str], float]
) -> float:
    """The least it costs to make the template of the path: the edit distance of their segments."""
    costs = [at * _MORE_OR_LESS for at in range(len(template) + 1)]
    for row, segment in enumerate(segments, 1):
        diagonal, costs[0] = costs[0], row * _MORE_OR_LESS
        for at, other in enumerate(template, 1):
            change = diagonal + _difference(segment, other, alike)
            diagonal = costs[at]
            costs[at] = min(change, diagonal + _MORE_OR_LESS, costs[at - 1] + _MORE_OR_LESS)
    ends_alike = _difference(segments[-1], template[-1], alike) < _OTHER_WORD
    return costs[-1] + (0 if ends_alike else _OTHER_ENDING)


def _difference(segment: str, other: str, alike: Mapping[tuple[str, str], float]) -> float:
    if segment == other:
        return 0
    if other.startswith("{"):
        return 0 if parse_id(segment) is not None else _NO_ID
    return alike.get((segment, other), _OTHER_WORD)
