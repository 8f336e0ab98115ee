"""Of the calls at the boundaries of the document, those that are not like one before.

Schemathesis loads it as its hooks. It would send every wrong type to every property, and try every
query parameter anew for each operation that takes it: one place reads them all. What is left out
here is tried by `make explore`.

A null is taken for a key without a value, of which the document does not speak (ADR 0150): no call
that holds one is tried as invalid.
"""

import os
from collections import Counter
from typing import Any

import schemathesis
from schemathesis.generation.meta import CoveragePhaseData

ALIKE_IN_BODIES = 1
"""Of each kind of value, for each place in the body of each operation."""
ALIKE_ELSEWHERE = 2
"""Values of each kind, for each parameter and header of every operation."""

_EXPLORING = "EXPLORING" in os.environ

_known: Counter[tuple[object, ...]] = Counter()


@schemathesis.hook
def filter_case(context: Any, case: Any) -> bool:
    """True for a call that is to be made."""
    if case.meta.generation.mode.is_negative and _holds_null(case.body):
        return False
    tried = case.meta.phase.data
    if _EXPLORING or not isinstance(tried, CoveragePhaseData):
        return True
    in_body = tried.parameter_location == "body"
    like = (
        context.operation.label if in_body else None,
        case.meta.generation.mode,
        tried.scenario,
        tried.parameter_location,
        tried.parameter,
        tried.description,
        tried.location,
    )
    _known[like] += 1
    return _known[like] <= (ALIKE_IN_BODIES if in_body else ALIKE_ELSEWHERE)


def _holds_null(body: Any) -> bool:
    parts = body.values() if isinstance(body, dict) else body if isinstance(body, list) else ()
    return body is None or any(_holds_null(part) for part in parts)
