"""The scopes a node sees: its own iteration, those around it, the root (decisions C8).

Standard library only.
"""

from collections.abc import Collection

from models.automation.automations.rules.planner.protocol import NodeRef


def own_scopes(scope_key: str) -> list[str]:
    """A scope and those around it, the innermost first."""
    scopes = [scope_key]
    while scope_key:
        scope_key = scope_key.rpartition("/")[0]
        scopes.append(scope_key)
    return scopes


def earlier_scopes(scope_key: str, repeats: Collection[str]) -> list[str]:
    """The iterations before, of the repeats around a scope, the innermost first.

    What a repeat has computed is seen until the next iteration computes it anew.
    """
    earlier = []
    for scope in own_scopes(scope_key)[:-1]:
        loop, index = loop_of(scope), index_of(scope)
        if loop.node_id in repeats and index > 0:
            earlier.append(loop.iteration(index - 1))
    return earlier


def loop_of(scope_key: str) -> NodeRef:
    """The loop that a scope other than the root is an iteration of."""
    loop = NodeRef("", scope_key).loop
    assert loop is not None, "the root is no iteration"
    return loop


def index_of(scope_key: str) -> int:
    """The index of the iteration that a scope other than the root is."""
    return int(scope_key.rpartition(":")[2])
