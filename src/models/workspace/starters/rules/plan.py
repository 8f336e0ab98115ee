"""Plans made well-formed, with their fields, views and records, from any author. Pure."""

import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import islice
from typing import Any

from models.core.base import JsonObject
from models.core.keys import first_free, slug
from models.data.fields.rules.fields import OPTION_KINDS, TITLE_KEY, FieldKind
from models.data.views.rules.kinds import ViewKind
from models.workspace.starters import shapes
from runtime.errors import ValidationError

MAX_NODES = 40
MAX_DEPTH = 3
MAX_LABEL = 100
MAX_LINES = 60
MAX_LINE = 500
_MOST_LOOKED_AT = 2_000
"""Nodes of a plan that are read at all."""

_TYPES: Mapping[str, shapes.NodeType] = {
    **{one.value: one for one in shapes.NodeType},
    "table": shapes.NodeType.DATABASE,
    "document": shapes.NodeType.PAGE,
    "doc": shapes.NodeType.PAGE,
    "note": shapes.NodeType.PAGE,
    "intake_form": shapes.NodeType.FORM,
}
_HOLDERS = frozenset({shapes.NodeType.FOLDER, shapes.NodeType.PAGE})


def normalized(plan: object) -> shapes.StarterPlan:
    """The plan as it would be built. Raises `ValidationError` when nothing is left to build.

    To normalize a plan twice changes nothing more.
    """
    content = plan if isinstance(plan, dict) else {}
    nodes = _nodes(content.get("nodes"))
    nodes = _with_forms(nodes)
    nodes = _with_places(nodes)
    nodes = with_targets(nodes)
    if not nodes:
        raise ValidationError.at("plan", "The plan is empty.")
    headline = words(content.get("headline"), 200) or nodes[0].label
    return shapes.StarterPlan(headline=headline, nodes=nodes)


@dataclass(frozen=True, slots=True)
class _Found:
    """A node as it was written, and the ref of what it was written below."""

    raw: Mapping[str, Any]
    type: shapes.NodeType
    label: str
    parent: str | None


def _nodes(raw: object) -> list[shapes.PlanNode]:
    """The nodes, as far as they are known, each with a ref of its own."""
    taken: set[str] = set()
    made: list[shapes.PlanNode] = []
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


def _node(found: _Found, ref: str) -> shapes.PlanNode:
    raw, kind = found.raw, found.type
    node = shapes.PlanNode(
        type=kind,
        ref=ref,
        label=found.label,
        parent_ref=found.parent,
        icon=words(raw.get("icon"), 8) or None,
        description=words(raw.get("description"), 1_000) or None,
    )
    if kind is shapes.NodeType.DATABASE:
        fields = plan_fields(raw.get("fields"))
        return node.model_copy(
            update={
                "fields": fields,
                "views": plan_views(raw.get("views"), fields) or None,
                "records": plan_records(raw.get("records"), fields),
            }
        )
    if kind is shapes.NodeType.PAGE:
        return node.model_copy(update={"content": _lines(raw.get("content")) or None})
    if kind is shapes.NodeType.FORM:
        return node.model_copy(update={"database_ref": _ref(raw.get("databaseRef"))})
    return node


def _lines(value: object) -> list[str]:
    given = value.split("\n") if isinstance(value, str) else _list(value)
    lines = [words(line, MAX_LINE) for line in given[: MAX_LINES * 2]]
    return [line for line in lines if line][:MAX_LINES]


def _with_forms(nodes: Sequence[shapes.PlanNode]) -> list[shapes.PlanNode]:
    """Every form with a database to write into: the one it names, else that before it, else any."""
    databases = [node.ref for node in nodes if node.type is shapes.NodeType.DATABASE]
    result: list[shapes.PlanNode] = []
    nearest = databases[0] if databases else None
    for node in nodes:
        if node.type is shapes.NodeType.DATABASE:
            nearest = node.ref
        if node.type is not shapes.NodeType.FORM:
            result.append(node)
        elif nearest is not None:
            named = node.database_ref if node.database_ref in databases else nearest
            result.append(node.model_copy(update={"database_ref": named}))
    return result


def _with_places(nodes: Sequence[shapes.PlanNode]) -> list[shapes.PlanNode]:
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


MAX_FIELDS = 20
MAX_RECORDS = 50
MAX_OPTIONS = 20
MAX_VIEWS = 6

MAX_TITLE = 200

PLANNED_KINDS = frozenset(
    {
        FieldKind.TEXT,
        FieldKind.LONG_TEXT,
        FieldKind.NUMBER,
        FieldKind.CURRENCY,
        FieldKind.PERCENT,
        FieldKind.RATING,
        FieldKind.CHECKBOX,
        FieldKind.DATE,
        FieldKind.DATETIME,
        FieldKind.SELECT,
        FieldKind.MULTI_SELECT,
        FieldKind.STATUS,
        FieldKind.PERSON,
        FieldKind.EMAIL,
        FieldKind.URL,
        FieldKind.PHONE,
        FieldKind.FILE,
        FieldKind.RELATION,
    }
)
"""The kinds that a plan may ask for; any other kind becomes text."""
STATUSES = ("To do", "In progress", "Done")
_STACKED = frozenset({FieldKind.STATUS, FieldKind.SELECT})
_DATED = frozenset({FieldKind.DATE, FieldKind.DATETIME})


def plan_fields(raw: object) -> list[shapes.PlanField]:
    """At most 20 fields; the first holds the titles."""
    fields: list[shapes.PlanField] = []
    keys = {TITLE_KEY}
    for item in raw[: MAX_FIELDS * 5] if isinstance(raw, list) else ():
        if not isinstance(item, dict):
            continue
        label = words(item.get("label") or item.get("name"), MAX_LABEL)
        raw_key = words(item.get("key"), 63)
        if not (label or raw_key):
            continue
        kind = _kind(item.get("kind") or item.get("type"))
        key = slug(raw_key or label, "field")
        if not fields:
            fields += _title(label or raw_key, kind)
            if len(fields) == 1 and kind is FieldKind.TEXT:
                continue
        key = first_free(key, keys)
        keys.add(key)
        fields.append(_field(item, key, label or raw_key, kind))
    return (fields or _title("Name", FieldKind.TEXT))[:MAX_FIELDS]


def _title(label: str, kind: FieldKind) -> list[shapes.PlanField]:
    """The field of titles: the first one where it is a text, else one put before it."""
    named = label if kind is FieldKind.TEXT else "Name"
    return [shapes.PlanField(key=TITLE_KEY, label=named, kind=FieldKind.TEXT)]


def _kind(value: object) -> FieldKind:
    try:
        kind = FieldKind(words(value, 63).lower())
    except ValueError:
        return FieldKind.TEXT
    return kind if kind in PLANNED_KINDS else FieldKind.TEXT


def _field(raw: Mapping[str, Any], key: str, label: str, kind: FieldKind) -> shapes.PlanField:
    options = target = None
    if kind in OPTION_KINDS:
        options = _options(raw.get("options"))
        if not options and kind is FieldKind.STATUS:
            options = list(STATUSES)
    if kind is FieldKind.RELATION:
        named = words(raw.get("target"), 200)
        target = slug(named, "node") if named else None
    return shapes.PlanField(key=key, label=label, kind=kind, options=options or None, target=target)


def _options(raw: object) -> list[str]:
    given = raw[: MAX_OPTIONS * 5] if isinstance(raw, list) else ()
    named = [one.get("name") if isinstance(one, dict) else one for one in given]
    names = {slug(name, "option"): name for one in named if (name := words(one, MAX_LABEL))}
    return list(names.values())[:MAX_OPTIONS]


def with_targets(nodes: Sequence[shapes.PlanNode]) -> list[shapes.PlanNode]:
    """Relations that point into a database of the plan; others become text."""
    known = {node.ref for node in nodes if node.type is shapes.NodeType.DATABASE}

    def checked(field: shapes.PlanField) -> shapes.PlanField:
        if field.kind is not FieldKind.RELATION or field.target in known:
            return field
        return shapes.PlanField(key=field.key, label=field.label, kind=FieldKind.TEXT)

    return [
        node.model_copy(update={"fields": [checked(one) for one in node.fields]}) for node in nodes
    ]


def plan_views(raw: object, fields: Sequence[shapes.PlanField]) -> list[shapes.PlanView]:
    """The views that the fields can serve; those the plan has, else what the fields suggest."""
    by_key = {field.key: field for field in fields}
    views: list[shapes.PlanView] = []
    for one in raw[: MAX_VIEWS * 5] if isinstance(raw, list) else ():
        view = _view(one, by_key) if isinstance(one, dict) else None
        if view is not None:
            views.append(view)
    return views[:MAX_VIEWS]


_SERVED: Mapping[ViewKind, frozenset[FieldKind]] = {
    ViewKind.BOARD: _STACKED,
    ViewKind.CALENDAR: _DATED,
}


def _view(raw: Mapping[str, Any], fields: Mapping[str, shapes.PlanField]) -> shapes.PlanView | None:
    label = words(raw.get("label"), MAX_LABEL)
    kind = words(raw.get("kind"), 20).lower()
    if not label or kind not in {ViewKind.TABLE, ViewKind.LIST, ViewKind.GALLERY, *_SERVED}:
        return None
    view = ViewKind(kind)
    if view not in _SERVED:
        return shapes.PlanView(label=label, kind=view)
    named = raw.get("field")
    served = fields.get(named) if isinstance(named, str) else None
    if served is None or served.kind not in _SERVED[view]:
        served = next((one for one in fields.values() if one.kind in _SERVED[view]), None)
    return None if served is None else shapes.PlanView(label=label, kind=view, field=served.key)


def suggested_views(fields: Sequence[shapes.PlanField]) -> list[shapes.PlanView]:
    """A table, and a board and a calendar where a field serves one."""
    views = [shapes.PlanView(label="All", kind=ViewKind.TABLE)]
    for kind, label in ((ViewKind.BOARD, "Board"), (ViewKind.CALENDAR, "Calendar")):
        served = next((one for one in fields if one.kind in _SERVED[kind]), None)
        if served is not None:
            views.append(shapes.PlanView(label=label, kind=kind, field=served.key))
    return views


def plan_records(raw: object, fields: Sequence[shapes.PlanField]) -> list[shapes.PlanRecord]:
    """At most 50 records with titles; values that their fields would refuse are left out."""
    by_key = {field.key: field for field in fields}
    records: list[shapes.PlanRecord] = []
    for one in raw[: MAX_RECORDS * 5] if isinstance(raw, list) else ():
        given = one if isinstance(one, dict) else {"title": one}
        title = words(given.get("title"), MAX_TITLE)
        if title:
            records.append(
                shapes.PlanRecord(title=title, data=_data(given.get("data"), by_key) or None)
            )
    return records[:MAX_RECORDS]


def _data(raw: object, fields: Mapping[str, shapes.PlanField]) -> JsonObject:
    if not isinstance(raw, dict):
        return {}
    data: JsonObject = {}
    for key, field in fields.items():
        read = _VALUES.get(field.kind)
        value = None if read is None or key == TITLE_KEY else read(field, raw.get(key))
        if value is not None:
            data[key] = value
    return data


def _text(_field: shapes.PlanField, value: object) -> str | None:
    return words(value, 2_000) or None


def _number(field: shapes.PlanField, value: object) -> float | int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    if field.kind is FieldKind.RATING:
        return value if isinstance(value, int) and 0 <= value <= 5 else None
    return round(value, 2) if abs(value) < 1e12 else None


def _flag(_field: shapes.PlanField, value: object) -> bool | None:
    return value if isinstance(value, bool) else None


_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def _day(_field: shapes.PlanField, value: object) -> str | None:
    if not (isinstance(value, str) and _DAY.fullmatch(value)):
        return None
    try:
        return date.fromisoformat(value).isoformat()
    except ValueError:
        return None


def _option(field: shapes.PlanField, value: object) -> str | None:
    text = words(value, MAX_LABEL)
    known = {slug(name, "option") for name in field.options or ()}
    key = slug(text, "option") if text else ""
    return key if key in known else None


def _chosen(field: shapes.PlanField, value: object) -> list[str] | None:
    given = value[: MAX_OPTIONS * 2] if isinstance(value, list) else [value]
    chosen = [key for one in given if (key := _option(field, one)) is not None]
    return list(dict.fromkeys(chosen)) or None


_MARKUP = re.compile(
    r"<(script|style)\b.*?(</\1\s*>|$)|</?[a-z!][^>]*>?", re.IGNORECASE | re.DOTALL
)


def words(value: object, longest: int) -> str:
    """One line of plain text without markup and control characters, empty for anything else."""
    if not isinstance(value, str):
        return ""
    return " ".join(_plain(value).split())[:longest].strip()


def _plain(text: str) -> str:
    before = None
    while before != text:  # what a removal brings together is markup again
        before, text = text, _MARKUP.sub(" ", text)
    return "".join(" " if unicodedata.category(one) in _UNSEEN else one for one in text)


_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})

_VALUES: Mapping[FieldKind, Callable[[shapes.PlanField, Any], Any]] = {
    FieldKind.TEXT: _text,
    FieldKind.LONG_TEXT: _text,
    FieldKind.NUMBER: _number,
    FieldKind.CURRENCY: _number,
    FieldKind.PERCENT: _number,
    FieldKind.RATING: _number,
    FieldKind.CHECKBOX: _flag,
    FieldKind.DATE: _day,
    FieldKind.SELECT: _option,
    FieldKind.STATUS: _option,
    FieldKind.MULTI_SELECT: _chosen,
}
"""The readers of values; values of other kinds are left out."""
