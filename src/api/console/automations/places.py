"""Places in the text of a graph: the line that a fault is about."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from models.automation.automations.rules.graph.compiler import ReferenceIssue
from runtime.errors import Detail

_NODE = re.compile(r"graph\.nodes\.(\d+)(?:\.|$)")
_ID = re.compile(r'"id"\s*:\s*("(?:[^"\\]|\\.)*")')
_TOLD_LINE = re.compile(r"\bat line (\d+),")
_MOST = 50


@dataclass(frozen=True, slots=True)
class Place:
    """A fault, where it is and on which line of the text; `line` is 0 where no line tells it."""

    name: str
    line: int
    message: str
    severity: str = "error"


def places_of(text: str, faults: Sequence[Detail] | Sequence[ReferenceIssue]) -> Sequence[Place]:
    """The places of faults in the text of a graph, in the order in which they were told."""
    ids = list(_ids(text))
    return [_place(text, ids, one) for one in faults[:_MOST]]


def _place(text: str, ids: Sequence[tuple[str, int]], fault: Detail | ReferenceIssue) -> Place:
    lines = dict(reversed(ids))
    if isinstance(fault, ReferenceIssue):
        line = lines.get(fault.node_id, 0)
        return Place(fault.node_id, line, fault.message, fault.severity.value)
    name, line = fault.path, 0
    if (told := _TOLD_LINE.search(fault.message)) and fault.path == "graph":
        line = int(told[1])
    elif node := _NODE.match(fault.path):
        node_id = _node_id(text, int(node[1]))
        line = lines.get(node_id, 0)
    return Place(name, line, fault.message)


def _node_id(text: str, number: int) -> str:
    """The id of a node by its number, as far as the text can be read."""
    try:
        return str(json.loads(text)["nodes"][number]["id"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""


def _ids(text: str) -> Iterator[tuple[str, int]]:
    """The ids that are written in a text, each with its line."""
    for match in _ID.finditer(text):
        try:
            yield json.loads(match[1]), text.count("\n", 0, match.start()) + 1
        except ValueError:
            continue
