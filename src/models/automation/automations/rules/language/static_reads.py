"""The values of a run that a config reads, found in the config alone."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from itertools import pairwise

from models.automation.automations.rules.graph.kinds import NodeKind, shorten
from models.automation.automations.rules.graph.shapes import GraphNode
from models.automation.automations.rules.language import bindings
from models.automation.automations.rules.language.paths import compile_path
from models.core.base import JsonObject
from models.core.expressions.rules.cel_text import paths, selections, tokens
from models.core.expressions.rules.errors import BindingError


def references(value: object, variable: str = "nodes") -> frozenset[str] | None:
    """The ids of nodes whose outputs a config can read; None when that depends on the data.

    For another `variable` the keys of that. Counts bindings, and what conditions, switches and
    repeats hold without one: CEL text under `expression` and `while`, paths under `field`.
    """
    names: set[str] = set()
    for text_kind, text in _texts(value, 0):
        keys = _READ_BY[text_kind](text, variable)
        if keys is None:
            return None
        names |= keys
    return frozenset(names)


def node_references(node: GraphNode, variable: str = "nodes") -> frozenset[str] | None:
    """The same for a node, of which the filter of an event is CEL text, too."""
    return references(_readable(node), variable)


def expressions_of(node: GraphNode) -> Iterator[str]:
    """Every CEL text of a node, those in templates included."""
    for kind, text in _texts(_readable(node), 0):
        if kind in ("expression", "while"):
            yield text
        elif kind == bindings.BindingType.TEMPLATE:
            yield from bindings.segments(text)


def paths_of(node: GraphNode) -> Iterator[tuple[str, ...]]:
    """The keys that each binding with a path begins with, after the name of its variable."""
    for kind, text in _texts(_readable(node), 0):
        variable = _VARIABLES.get(kind)
        if variable is not None:
            with suppress(BindingError):
                yield (variable, *compile_path(text).leading_keys())


def filter_paths_of(node: GraphNode) -> Iterator[tuple[str, ...]]:
    """The keys that each `field` of a condition's filter begins with, its variable the first."""
    for kind, text in _texts(_readable(node), 0):
        if kind == "field" and node.kind == NodeKind.CONDITION:
            with suppress(BindingError):
                yield compile_path(text).leading_keys()


_VARIABLES = {"trigger": "trigger", "node": "nodes"}
"""Of the types of bindings that hold a path."""


def _readable(node: GraphNode) -> JsonObject:
    value = node.parameters()
    if node.kind == NodeKind.WAIT_EVENT and isinstance(value.get("filter"), str):
        value["filter"] = {"type": bindings.BindingType.EXPRESSION.value, "value": value["filter"]}
    return value


def cel_length(value: object) -> int:
    """The characters of CEL that a config holds."""
    return sum(_CEL_LENGTH[kind](text) for kind, text in _texts(value, 0) if kind in _CEL_LENGTH)


def secret_names(value: object) -> frozenset[str]:
    """The names of the secrets that a config holds bindings of."""
    return frozenset(name for _, name in secrets_in(value))


def secrets_in(value: object, path: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """The secrets that a config holds bindings of, each as path and name."""
    bindings.check_depth(depth)
    if bindings.is_binding(value):
        if value["type"] == bindings.BindingType.SECRET and isinstance(value["value"], str):
            yield path, value["value"]
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from secrets_in(item, f"{path}.{key}" if path else str(key), depth + 1)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from secrets_in(item, f"{path}.{index}" if path else str(index), depth + 1)


def _texts(value: object, depth: int) -> Iterator[tuple[str, str]]:
    """The texts of a config that read the run, each with how it reads."""
    bindings.check_depth(depth)
    if bindings.is_binding(value):
        if isinstance(value["value"], str):
            yield value["type"], value["value"]
    elif isinstance(value, dict):
        for key, item in value.items():
            if key in ("expression", "while", "field") and isinstance(item, str):
                yield key, item
            else:
                yield from _texts(item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item, depth + 1)


def _key_of(own: str) -> "_Reads":
    """A reader of bindings whose path begins with a key of `own`."""

    def read(text: str, variable: str) -> frozenset[str] | None:
        if variable != own:
            return frozenset()
        try:
            return frozenset({compile_path(text).split()[0]})
        except BindingError:
            return frozenset()

    return read


def _filter_path(text: str, variable: str) -> frozenset[str] | None:
    try:
        first, rest = compile_path(text).split()
        return frozenset({rest.split()[0]}) if first == variable else frozenset()
    except BindingError:
        return None


def _template_references(text: str, variable: str) -> frozenset[str] | None:
    try:
        return bindings.compile_template(text).reads(variable)
    except BindingError:
        return frozenset()


def _nothing(_text: str, _variable: str) -> frozenset[str] | None:
    return frozenset()


_Reads = Callable[[str, str], frozenset[str] | None]

_READ_BY: dict[str, _Reads] = {
    **dict.fromkeys(bindings.BindingType, _nothing),
    "node": _key_of("nodes"),
    "variable": _key_of("vars"),
    "template": _template_references,
    "expression": selections,
    "while": selections,
    "field": _filter_path,
}


def _length_of_segments(text: str) -> int:
    return sum(len(part.partition("}}")[0]) for part in text.split("{{")[1:])


_CEL_LENGTH: dict[str, Callable[[str], int]] = {
    "expression": len,
    "while": len,
    "template": _length_of_segments,
}

VALUES = frozenset({"data", "relations", "related", "computed", "system"})
"""The parts of a record whose keys are field keys."""
RECORD = VALUES | {
    *("id", "workspaceId", "databaseId", "contentSurfaceId", "title", "archived", "omittedKeys"),
    *("createdByUserId", "updatedByUserId", "createdAt", "updatedAt"),
}
"""The keys of a record that changed."""

_MOST_KNOWN = 30
"""Keys of fields that a message lists."""
_FIELDS = "data, relations, computed and system"
_ASKING = {"has", "coalesce"}
_OPTIONAL = {(".", "?"), ("[", "?")}


def never_there(text: str, variables: Collection[str], fields: Collection[str]) -> Iterator[str]:
    """A message for each key that a filter selects and no record has.

    Only certain errors are reported. A text that asks whether a key is there, or falls back where
    it is not, is left alone, and so is a name that a macro may give to something else.
    """
    read = [token.text for token in tokens(text)]
    if _asks(read):
        return
    shown = [variable for variable in variables if not _may_be_bound(variable, read)]
    chosen = {(variable, *path) for variable in shown for path in paths(text, variable)}
    # `trigger` holds the other variables as keys.
    whole = {path[1:] if path[0] == "trigger" else path for path in chosen} - {()}
    for variable, *path in sorted(whole):
        if variable not in variables:
            yield f'The trigger has no key "{shorten(variable)}".'
        elif variable in ("record", "before") and path:
            yield from _of_record(path, fields)


def unknown_keys(text: str, records: Mapping[tuple[str, ...], Collection[str]]) -> Iterator[str]:
    """The same for an expression of a node; `records` gives the fields of records by their path."""
    read = [token.text for token in tokens(text)]
    variables = {path[0] for path in records}
    if _asks(read) or any(_may_be_bound(variable, read) for variable in variables):
        return
    for variable in sorted(variables):
        for path in sorted(paths(text, variable)):
            yield from unknown_keys_of((variable, *path), records)


def plain_reads(text: str, variable: str) -> frozenset[tuple[str, ...]]:
    """The paths that a text reads of a variable without asking whether they are there."""
    read = [token.text for token in tokens(text)]
    if _asks(read) or _may_be_bound(variable, read):
        return frozenset()
    return paths(text, variable)


def unknown_keys_of(
    path: tuple[str, ...], records: Mapping[tuple[str, ...], Collection[str]]
) -> Iterator[str]:
    """A message for a path into one of these records at a key that it never has."""
    for record, fields in records.items():
        within = list(path[len(record) :])
        if within and path[: len(record)] == record:
            yield from _of_record(within, fields)


def _asks(read: list[str]) -> bool:
    return not (_ASKING.isdisjoint(read) and _OPTIONAL.isdisjoint(pairwise(read)))


def _may_be_bound(variable: str, read: list[str]) -> bool:
    """True when it stands where a macro has the name of its element: `list.exists(record, …)`."""
    return ("(", variable, ",") in zip(read, read[1:], read[2:], strict=False)


def _of_record(path: list[str], fields: Collection[str]) -> Iterator[str]:
    part, *below = path
    if part not in RECORD:
        yield f'A record has no key "{shorten(part)}"; its fields are in {_FIELDS}.'
    elif part in VALUES and below and below[0] not in fields:
        known = ", ".join(sorted(fields)[:_MOST_KNOWN])
        yield f'The database has no field "{shorten(below[0])}"; known: {known}.'
