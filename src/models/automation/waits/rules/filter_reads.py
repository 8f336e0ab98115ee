"""What the filter of a node that waits for an event reads of its run (decisions C11).

It is taken when the node begins to wait, so that an event that meets very many of them needs no
more than their rows.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any

from models.automation.automations.rules.graph.configs.waits import RUN_VARIABLES
from models.core.base import JsonObject
from models.core.expressions.rules.cel_text import paths
from models.core.expressions.rules.errors import BindingError

MAX_BYTES = 16 * 1024
"""What one filter may read of its run, as JSON."""

_Paths = Collection[tuple[str, ...]]


def run_reads(text: str) -> dict[str, _Paths]:
    """The paths that a filter reads, by the variable of the run that they begin at."""
    return {name: found for name in RUN_VARIABLES if (found := paths(text, name))}


def taken(reads: Mapping[str, _Paths], variables: Mapping[str, Any]) -> JsonObject:
    """Just the part of the variables that is read. Raises BindingError when that is too large."""
    part = {name: _part(variables[name], found) for name, found in reads.items()}
    if len(json.dumps(part, ensure_ascii=False).encode("utf-8", "replace")) > MAX_BYTES:
        raise BindingError(
            f"The filter reads more than {MAX_BYTES // 1024} KiB of the run; let it select less."
        )
    return part


def _part(value: Any, read: _Paths) -> Any:
    if not isinstance(value, Mapping) or () in read:
        return value
    below: dict[str, list[tuple[str, ...]]] = {}
    for first, *rest in read:
        below.setdefault(first, []).append(tuple(rest))
    return {key: _part(value[key], rests) for key, rests in below.items() if key in value}
