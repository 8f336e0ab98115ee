"""The memo of an execution: what operators read beside its summary."""

from collections.abc import Mapping
from typing import Any

RESTARTS = "restarts"
"""For work that begins anew from its row: how many executions ended before without closing it."""
ATTRIBUTES = "attributes"
"""For runs: the short texts by which people know them."""


def memo_of(request: Mapping[str, Any]) -> dict[str, Any] | None:
    """The memo of an execution that a request to start one asks for."""
    memo = {name: request[name] for name in (RESTARTS, ATTRIBUTES) if name in request}
    return memo or None
