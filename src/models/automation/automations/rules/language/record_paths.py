"""Finding keys that CEL text reads of a record and no record has (decisions C7, C11).

Only what is certain is told. A text that asks whether a key is there, or falls back where it is
not, is left alone, and so is a name that a macro may give to something else.
"""

from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise

from models.automation.automations.rules.graph.kinds import shorten
from models.core.expressions.rules.cel_text import paths, tokens

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
    """A message for each key that a filter selects and no record has."""
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
