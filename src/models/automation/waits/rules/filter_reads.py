"""Data that the filter of a node waiting for an event reads of its run (decisions C11).

It is taken when the node begins to wait, so that an event that meets very many of them needs no
more than their rows.
"""

import json
from collections.abc import Mapping
from typing import Any

from models.automation.automations.rules.graph.configs.waits import RUN_VARIABLES
from models.core.base import JsonObject
from models.core.expressions.rules.cel_text import paths
from models.core.expressions.rules.errors import BindingError
from models.core.expressions.rules.reads import Paths, part

MAX_BYTES = 16 * 1024
"""The most that one filter may read of its run, as JSON."""


def run_reads(text: str) -> dict[str, Paths]:
    """The paths that a filter reads, by the variable of the run that they begin at."""
    return {name: found for name in RUN_VARIABLES if (found := paths(text, name))}


def taken(reads: Mapping[str, Paths], variables: Mapping[str, Any]) -> JsonObject:
    """Just the part of the variables that is read. Raises BindingError when that is too large."""
    found = {name: part(variables[name], paths_) for name, paths_ in reads.items()}
    if len(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace")) > MAX_BYTES:
        raise BindingError(
            f"The filter reads more than {MAX_BYTES // 1024} KiB of the run; let it select less."
        )
    return found
