"""Finding keys that a CEL filter reads of a record and no record has (decisions C7, C11).

Only what is certain is told. A filter that asks whether a key is there, or falls back where it is
not, is left alone, and so is a name that a macro may give to something else.
"""

from collections.abc import Collection, Iterator
from itertools import pairwise

from models.automation.automations.rules.graph.kinds import shorten
from models.core.expressions.rules.cel_text import paths, tokens

VALUES = frozenset({"data", "relations", "related", "computed", "system"})
"""The parts of a record whose keys are those of fields."""
RECORD = VALUES | {
    *("id", "workspaceId", "databaseId", "contentSurfaceId", "title", "archived", "omittedKeys"),
    *("createdByUserId", "updatedByUserId", "createdAt", "updatedAt"),
}
"""The keys of a record that changed."""

_FIELDS = "data, relations, computed and system"
_ASKING = {"has", "coalesce"}
_OPTIONAL = {(".", "?"), ("[", "?")}


def never_there(text: str, variables: Collection[str], fields: Collection[str]) -> Iterator[str]:
    """A message for each key that a filter selects and no record has."""
    read = [token.text for token in tokens(text)]
    if not _ASKING.isdisjoint(read) or not _OPTIONAL.isdisjoint(pairwise(read)):
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


def _may_be_bound(variable: str, read: list[str]) -> bool:
    """Whether it stands where a macro has the name of its element: `list.exists(record, …)`."""
    return ("(", variable, ",") in zip(read, read[1:], read[2:], strict=False)


def _of_record(path: list[str], fields: Collection[str]) -> Iterator[str]:
    part, *below = path
    if part not in RECORD:
        yield f'A record has no key "{shorten(part)}"; its fields are in {_FIELDS}.'
    elif part in VALUES and below and below[0] not in fields:
        yield f'The database has no field "{shorten(below[0])}".'
