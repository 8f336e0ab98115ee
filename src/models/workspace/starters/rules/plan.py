"""Plans made well-formed: whatever a model or a client wrote becomes something to build. Pure.

To do it twice changes nothing more.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from models.core.keys import first_free, slug
from models.workspace.starters.rules.plan_fields import (
    plan_fields,
    plan_records,
    plan_views,
    with_targets,
)
from models.workspace.starters.rules.text import words
from models.workspace.starters.shapes import NodeType, PlanNode, StarterPlan
from runtime.errors import ValidationError

MAX_NODES = 40
MAX_DEPTH = 3
MAX_LABEL = 100
MAX_LINES = 60
MAX_LINE = 500
_MOST_LOOKED_AT = 2_000
"""Nodes of a plan that are read at all."""

_TYPES: Mapping[str, NodeType] = {
    **{one.value: one for one in NodeType},
    "table": NodeType.DATABASE,
    "document": NodeType.PAGE,
    "doc": NodeType.PAGE,
    "note": NodeType.PAGE,
    "intake_form": NodeType.FORM,
}
_HOLDERS = frozenset({NodeType.FOLDER, NodeType.PAGE})


def normalized(plan: object) -> StarterPlan:
    """The plan as it would be built. Raises `ValidationError` when nothing is left to build."""
    content = plan if isinstance(plan, dict) else {}
    nodes = _nodes(content.get("nodes"))
    nodes = _with_forms(nodes)
    nodes = _with_places(nodes)
    nodes = with_targets(nodes)
    if not nodes:
        raise ValidationError.at("plan", "There is nothing to build in this plan.")
    headline = words(content.get("headline"), 200) or nodes[0].label
    return StarterPlan(headline=headline, nodes=nodes)


@dataclass(frozen=True, slots=True)
class _Found:
    """A node as it was written, and the ref of what it was written below."""

    raw: Mapping[str, Any]
    type: NodeType
    label: str
    parent: str | None


def _nodes(raw: object) -> list[PlanNode]:
    """The nodes, as far as they are known, each with a ref of its own."""
    taken: set[str] = set()
    made: list[PlanNode] = []
    for found in islice(_flat(raw), MAX_NODES):
        ref = first_free(_ref(found.raw.get("ref")) or slug(found.label, found.type), taken)
        taken.add(ref)
        made.append(_node(found, ref))
    return made


def _flat(raw: object) -> Iterator[_Found]:
    """The nodes with those below them, parents first; unknown types are left out."""
    stack: list[tuple[Any, str | None]] = []
    stack += [(node, None) for node in _list(raw)][::-1]
    looked_at = 0
    while stack and looked_at < _MOST_LOOKED_AT:
        looked_at += 1
        node, above = stack.pop()
        if not isinstance(node, dict):
            continue
        label = words(node.get("label") or node.get("title") or node.get("name"), MAX_LABEL)
        written = node.get("type") or node.get("kind")
        kind = _TYPES.get(written.lower().strip()) if isinstance(written, str) else None
        ref = _ref(node.get("ref")) or slug(label, "node")
        below = ref if kind is not None and label else above
        stack += [(child, below) for child in _list(node.get("children"))][::-1]
        if kind is not None and label:
            yield _Found(node, kind, label, _ref(node.get("parentRef")) or above)


def _ref(value: object) -> str | None:
    text = words(value, 200)
    return slug(text, "node") if text else None


def _list(value: object) -> Sequence[Any]:
    return value[:_MOST_LOOKED_AT] if isinstance(value, list) else ()


def _node(found: _Found, ref: str) -> PlanNode:
    raw, kind = found.raw, found.type
    node = PlanNode(
        type=kind,
        ref=ref,
        label=found.label,
        parent_ref=found.parent,
        icon=words(raw.get("icon"), 8) or None,
        description=words(raw.get("description"), 1_000) or None,
    )
    if kind is NodeType.DATABASE:
        fields = plan_fields(raw.get("fields"))
        return node.model_copy(
            update={
                "fields": fields,
                "views": plan_views(raw.get("views"), fields) or None,
                "records": plan_records(raw.get("records"), fields),
            }
        )
    if kind is NodeType.PAGE:
        return node.model_copy(update={"content": _lines(raw.get("content")) or None})
    if kind is NodeType.FORM:
        return node.model_copy(update={"database_ref": _ref(raw.get("databaseRef"))})
    return node


def _lines(value: object) -> list[str]:
    given = value.split("\n") if isinstance(value, str) else _list(value)
    lines = [words(line, MAX_LINE) for line in given[: MAX_LINES * 2]]
    return [line for line in lines if line][:MAX_LINES]


def _with_forms(nodes: Sequence[PlanNode]) -> list[PlanNode]:
    """Every form with a database to write into: the one it names, else that before it, else any."""
    databases = [node.ref for node in nodes if node.type is NodeType.DATABASE]
    result: list[PlanNode] = []
    nearest = databases[0] if databases else None
    for node in nodes:
        if node.type is NodeType.DATABASE:
            nearest = node.ref
        if node.type is not NodeType.FORM:
            result.append(node)
        elif nearest is not None:
            named = node.database_ref if node.database_ref in databases else nearest
            result.append(node.model_copy(update={"database_ref": named}))
    return result


def _with_places(nodes: Sequence[PlanNode]) -> list[PlanNode]:
    """The tree: parents that hold things, no cycles, at most three levels, parents first."""
    by_ref = {node.ref: node for node in nodes}
    parents: dict[str, str | None] = {}
    for node in nodes:
        parent = node.parent_ref
        holds = parent in by_ref and by_ref[parent].type in _HOLDERS and parent != node.ref
        parents[node.ref] = parent if holds else None
    for ref in parents:
        if ref in _above(ref, parents):
            parents[ref] = None
    for ref in parents:
        above = _above(ref, parents)
        if len(above) >= MAX_DEPTH:
            parents[ref] = above[-(MAX_DEPTH - 1)]
    order = {ref: place for place, ref in enumerate(parents)}
    sorted_refs = sorted(parents, key=lambda ref: (len(_above(ref, parents)), order[ref]))
    return [by_ref[ref].model_copy(update={"parent_ref": parents[ref]}) for ref in sorted_refs]


def _above(ref: str, parents: Mapping[str, str | None]) -> list[str]:
    """The nodes that a node stands in, from the nearest to the top; a cycle is walked once."""
    above: list[str] = []
    parent = parents[ref]
    while parent is not None and parent not in above:
        above.append(parent)
        parent = parents[parent]
    return above
