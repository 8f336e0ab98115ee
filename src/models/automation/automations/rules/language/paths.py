"""Paths into JSON values: `a.b[0].c`, `$.a`, and bounded JSONPath (RFC 9535) for more."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile

from pydantic import JsonValue

from models.automation.automations.rules.graph.kinds import shorten
from models.core.expressions.rules import typed_reads
from models.core.expressions.rules.errors import BindingError
from models.core.expressions.rules.json_paths import Segment, matches, read_query

MAX_LENGTH = 256
MAX_STEPS = 32

_NAME = r"[^\s\x00-\x1f\x7f.\[\]'\"*?()@=~,:$`|&<>!+/\\{}]+"
_QUOTED = r"'[^'\\\x00-\x1f]*'|\"[^\"'\\\x00-\x1f]*\""
_STEP = re.compile(
    rf"""
    \.?(?P<name>{_NAME})
  | \[(?P<index>-?\d{{1,9}})\]
  | \[(?P<quoted>{_QUOTED})\]
  | (?P<deep>\.\.)(?:(?P<deep_name>{_NAME})|(?P<deep_any>\*))
  | (?P<any>\.\*|\[\*\])
  | \[(?P<slice>-?\d{{0,9}}:-?\d{{0,9}})\]
  | \[(?P<indexes>\d{{1,9}}(?:,\d{{1,9}})+)\]
  | \[(?P<names>(?:'[^'\\]*')(?:,'[^'\\]*')+)\]
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class _Step:
    """A key or index, or (`rich`) a piece of JSONPath that may match many values."""

    key: str | int = ""
    rich: str = ""


@dataclass(frozen=True, slots=True)
class Path:
    """A compiled path. One that can match many values gives the list of its matches."""

    steps: tuple[_Step, ...]
    _query: tuple[Segment, ...] | None = None

    def get(self, value: JsonValue) -> JsonValue:
        """The value at the path, None when there is none (interface.md#bindings).

        Raises BindingError for data too large to be searched.
        """
        if self._query is not None:
            return matches(self._query, value)
        for step in self.steps:
            value = _child(value, step.key)
            if value is None:
                return None
        return value

    def leading_keys(self) -> tuple[str, ...]:
        """The keys it begins with, up to the first index or the first that may match several."""
        keys = takewhile(lambda step: isinstance(step.key, str) and not step.rich, self.steps)
        return tuple(str(step.key) for step in keys)

    def split(self) -> tuple[str, "Path"]:
        """The first key and the path behind it. Raises BindingError when there is no such key."""
        if not self.steps or self.steps[0].rich or not isinstance(self.steps[0].key, str):
            raise BindingError("The path must begin with the id of a node.")
        return self.steps[0].key, _path(self.steps[1:])


@lru_cache(maxsize=4_096)
def compile_path(text: str) -> Path:
    """Read a path; the empty path is the value itself. Raises BindingError that says what is wrong.

    Filters, arithmetic, regular expressions and functions of JSONPath are refused: their cost
    depends on the data. CEL does that work under a budget.
    """
    if len(text) > MAX_LENGTH:
        raise BindingError(f"A path has at most {MAX_LENGTH} characters.")
    steps = _read_steps(text.strip())
    if len(steps) > MAX_STEPS:
        raise BindingError(f"A path has at most {MAX_STEPS} steps.")
    if sum(step.rich.startswith("..") for step in steps) > 1:
        raise BindingError("A path may hold `..` once.")
    return _path(tuple(steps))


def _read_steps(text: str) -> list[_Step]:
    steps: list[_Step] = []
    at = int(text.startswith("$"))
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None or not _joins(match.group(), first=at == 0):
            raise BindingError(
                f'The path "{shorten(text)}" cannot be read at character {at + 1}. Paths '
                "look like a.b[0].c; use an expression for conditions and arithmetic."
            )
        steps.append(_step(match))
        at = match.end()
    return steps


def _joins(step: str, *, first: bool) -> bool:
    """A dot leads to every name but the first of a path without `$`."""
    return step[0] == "[" or (step[0] != ".") is first


def _step(match: re.Match[str]) -> _Step:
    groups = {name: text for name, text in match.groupdict().items() if text is not None}
    if "name" in groups:
        return _Step(groups["name"])
    if "index" in groups:
        return _Step(int(groups["index"]))
    if "quoted" in groups:
        return _Step(groups["quoted"][1:-1])
    if "deep" in groups:
        return _Step(rich=f"..'{groups['deep_name']}'" if "deep_name" in groups else "..*")
    if "any" in groups:
        return _Step(rich="[*]")
    if "slice" in groups:
        return _Step(rich=f"[{groups['slice']}]")
    if "names" in groups:
        keys = dict.fromkeys(groups["names"][1:-1].split("','"))
        return _Step(rich="['{}']".format("','".join(keys)))
    # A repeated index would match a value twice, and twice again at every further step.
    indexes = dict.fromkeys(int(index) for index in groups["indexes"].split(","))
    return _Step(rich=f"[{','.join(str(index) for index in indexes)}]")


@lru_cache(maxsize=4_096)
def _path(steps: tuple[_Step, ...]) -> Path:
    if not any(step.rich for step in steps):
        return Path(steps)
    return Path(steps, read_query("$" + "".join(_jsonpath(step) for step in steps)))


def _jsonpath(step: _Step) -> str:
    if step.rich:
        return step.rich
    return f"[{step.key}]" if isinstance(step.key, int) else f"['{step.key}']"


def _child(value: JsonValue, key: str | int) -> JsonValue:
    if isinstance(value, dict):
        return value.get(key) if isinstance(key, str) else None
    if isinstance(value, list):
        if isinstance(key, str):
            if not (key.isascii() and key.isdigit()):
                return None
            key = int(key)
        return value[key] if -len(value) <= key < len(value) else None
    return None


def typed_path(text: str, root: typed_reads.ValueType) -> typed_reads.Reads:
    """The fields that a path into a value of this type reads, and the type of what it finds.

    Nothing for a path that cannot be read.
    """
    try:
        compile_path(text)
    except BindingError:
        return typed_reads.NOTHING
    at = len(text) - len(text.lstrip())
    at += int(text.startswith("$", at))
    value, reads = root, list[typed_reads.Read]()
    end = len(text.rstrip())
    while at < end and (match := _STEP.match(text, at)) is not None:
        at = match.end()
        if match["deep"] is not None:
            named = match["deep_name"]
            reads += [
                typed_reads.Read(one, named, *match.span("deep_name"))
                for one in _inside(value)
                if named
            ]
            return typed_reads.Reads(None, reads)
        names = list(_names(match))
        if not names:
            value = typed_reads.element_of(value)
            continue
        if isinstance(value, typed_reads.FieldsOf):
            quoted = match["name"] is None
            reads += [
                typed_reads.Read(value.database, key, *span, quoted=quoted) for key, span in names
            ]
        value = typed_reads.member_of(value, names[0][0])
        if match["names"] is not None:
            value = typed_reads.ListOf(value)
    return typed_reads.Reads(value, reads)


_QUOTED_NAME = re.compile(_QUOTED)


def _names(match: re.Match[str]) -> Iterator[tuple[str, tuple[int, int]]]:
    """The keys of a step, each from where to where it is written, with its quotes."""
    if match["name"] is not None:
        yield match["name"], match.span("name")
        return
    group = "quoted" if match["quoted"] is not None else "names"
    if match[group] is not None:
        for name in _QUOTED_NAME.finditer(match.string, *match.span(group)):
            yield name.group()[1:-1], name.span()


def _inside(value: typed_reads.ValueType) -> frozenset[str]:
    """The databases whose fields a value holds at any depth."""
    if isinstance(value, typed_reads.FieldsOf):
        return frozenset({value.database})
    parts = (
        list(value.members.values())
        if isinstance(value, typed_reads.Struct)
        else [value.element]
        if isinstance(value, typed_reads.ListOf)
        else []
    )
    return frozenset().union(*map(_inside, parts))
