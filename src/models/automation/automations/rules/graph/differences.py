"""Differences of two versions of an automation: pure, on the stored JSON of triggers and graphs.

A node is the same node by its id, and so is a note. Edges are compared by the two nodes they join.
Positions and sizes are left out: they say where something is drawn, and not what it does or says.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from models.core.base import JsonObject

_DRAWN = ("id", "position")
_DRAWN_OF_NOTES = ("id", "position", "width", "height")
_PARTS = ("config", "input", "retry", "mock")
"""Keys of a node whose own keys are compared."""
_LISTED = ("nodes", "edges", "notes", "triggerPosition")
_LABEL_LENGTH = 60

Pair = tuple[str, str]
K = TypeVar("K")


class Change(StrEnum):
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class ValueDifference:
    """A key whose value differs, with dots between keys; None stands for an absent value."""

    key: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class NodeDifference:
    """A node of one of the graphs alone, or with other values in the second one."""

    id: str
    label: str
    change: Change
    values: tuple[ValueDifference, ...]


@dataclass(frozen=True, slots=True)
class NoteDifference:
    """A note of one of the graphs alone, or with another text or color in the second one."""

    id: str
    label: str
    """The beginning of its text."""
    change: Change
    values: tuple[ValueDifference, ...]


@dataclass(frozen=True, slots=True)
class EdgeDifference:
    """The ways from one node to another, by their outcomes, in both graphs."""

    source: str
    target: str
    before: tuple[str, ...]
    after: tuple[str, ...]

    @property
    def change(self) -> Change:
        return _change(self.before, self.after)


@dataclass(frozen=True, slots=True)
class GraphDifference:
    """The differences of two versions, in the order of the second one; `values` are of neither."""

    nodes: tuple[NodeDifference, ...]
    edges: tuple[EdgeDifference, ...]
    values: tuple[ValueDifference, ...]
    """Values of the trigger and of the graph as a whole."""
    notes: tuple[NoteDifference, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.nodes or self.edges or self.values or self.notes)


def difference(
    before: JsonObject,
    after: JsonObject,
    trigger_before: JsonObject | None = None,
    trigger_after: JsonObject | None = None,
) -> GraphDifference:
    """The difference between two graphs, and between the triggers beside them."""
    triggers = _values("trigger.", trigger_before or {}, trigger_after or {})
    wholes = _values("", _without(before, _LISTED), _without(after, _LISTED))
    return GraphDifference(
        nodes=tuple(_nodes(_by_id(before), _by_id(after))),
        edges=tuple(_edges(_outcomes(before), _outcomes(after))),
        values=(*triggers, *wholes),
        notes=tuple(_notes(_notes_by_id(before), _notes_by_id(after))),
    )


def united(before: JsonObject, after: JsonObject) -> JsonObject:
    """The nodes and edges of both graphs in one, as a picture shows them."""
    nodes, edges = _by_id(before) | _by_id(after), _by_ends(before) | _by_ends(after)
    return {"nodes": list(nodes.values()), "edges": list(edges.values())}


def _nodes(
    before: Mapping[str, JsonObject], after: Mapping[str, JsonObject]
) -> Iterator[NodeDifference]:
    for node_id in _in_order(before, after):
        old, new = before.get(node_id), after.get(node_id)
        values = tuple(_node_values(old or {}, new or {}))
        if values or old is None or new is None:
            node = new or old or {}
            label = str(node.get("label") or node_id)
            yield NodeDifference(node_id, label, _change(old, new), values)


def _notes(
    before: Mapping[str, JsonObject], after: Mapping[str, JsonObject]
) -> Iterator[NoteDifference]:
    for note_id in _in_order(before, after):
        old, new = before.get(note_id), after.get(note_id)
        texts = [_without(one or {}, _DRAWN_OF_NOTES) for one in (old, new)]
        values = tuple(_values("", *texts))
        if values or old is None or new is None:
            yield NoteDifference(note_id, _label_of(new or old or {}), _change(old, new), values)


def _label_of(note: JsonObject) -> str:
    """The first line of a note, shortened."""
    first = str(note.get("text") or "").strip().partition("\n")[0]
    return first if len(first) <= _LABEL_LENGTH else f"{first[: _LABEL_LENGTH - 1]}…"


def _node_values(old: JsonObject, new: JsonObject) -> Iterator[ValueDifference]:
    yield from _values("", _without(old, (*_DRAWN, *_PARTS)), _without(new, (*_DRAWN, *_PARTS)))
    for part in _PARTS:
        yield from _values(f"{part}.", old.get(part) or {}, new.get(part) or {})


def _edges(
    before: Mapping[Pair, tuple[str, ...]], after: Mapping[Pair, tuple[str, ...]]
) -> Iterator[EdgeDifference]:
    for pair in _in_order(before, after):
        old, new = before.get(pair, ()), after.get(pair, ())
        if old != new:
            yield EdgeDifference(*pair, old, new)


def _values(prefix: str, old: JsonObject, new: JsonObject) -> Iterator[ValueDifference]:
    for key in sorted({*old, *new}):
        if _text(old.get(key)) != _text(new.get(key)):
            yield ValueDifference(f"{prefix}{key}", old.get(key), new.get(key))


def _text(value: object) -> str:
    """A value as JSON, where true is not 1 as it is in Python."""
    return json.dumps(value, sort_keys=True)


def _change(old: object, new: object) -> Change:
    if not old:
        return Change.ADDED
    return Change.CHANGED if new else Change.REMOVED


def _in_order(before: Mapping[K, Any], after: Mapping[K, Any]) -> Sequence[K]:
    return [*after, *(key for key in before if key not in after)]


def _without(document: JsonObject, keys: tuple[str, ...]) -> JsonObject:
    return {key: value for key, value in document.items() if key not in keys}


def _by_id(graph: JsonObject) -> dict[str, JsonObject]:
    return {node["id"]: node for node in graph.get("nodes") or []}


def _notes_by_id(graph: JsonObject) -> dict[str, JsonObject]:
    return {note["id"]: note for note in graph.get("notes") or []}


def _by_ends(graph: JsonObject) -> dict[tuple[str, str, str], JsonObject]:
    edges = graph.get("edges") or []
    return {(edge["from"], edge["to"], _outcome(edge)): edge for edge in edges}


def _outcomes(graph: JsonObject) -> dict[Pair, tuple[str, ...]]:
    outcomes: dict[Pair, list[str]] = {}
    for edge in graph.get("edges") or []:
        outcomes.setdefault((edge["from"], edge["to"]), []).append(_outcome(edge))
    return {pair: tuple(sorted(names)) for pair, names in outcomes.items()}


def _outcome(edge: JsonObject) -> str:
    outcome, case = edge.get("outcome") or "always", edge.get("caseKey")
    return f"{outcome} {case}" if case else str(outcome)
