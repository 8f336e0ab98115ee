"""The scopes in which the nodes of a plan can run."""

import pytest

from models.automation.automations.rules.graph.configs import MAX_ITEMS
from models.automation.waits.rules import is_scope_of, scope_near
from tests.models.automation.automations.rules.drawing import draw

NESTED = draw("start -> one", "one -item-> two -item-> x", "two -done-> y", "one -done-> z")


@pytest.mark.parametrize(
    ("node", "scope", "can"),
    [
        ("z", "", True),
        ("z", "one:0", False),
        ("two", "", False),
        ("two", "one:0", True),
        ("two", f"one:{MAX_ITEMS - 1}", True),
        ("two", f"one:{MAX_ITEMS}", False),
        ("two", "one:00", False),
        ("two", "one:-1", False),
        ("two", "two:0", False),
        ("x", "one:3/two:12", True),
        ("x", "two:3/one:12", False),
        ("x", "one:3", False),
        ("y", "one:3", True),
    ],
)
def test_a_node_runs_in_the_scopes_of_its_loops(node: str, scope: str, *, can: bool) -> None:
    assert is_scope_of(NESTED, node, scope) is can


@pytest.mark.parametrize(
    ("node", "seen_from", "scope"),
    [
        ("z", "", ""),
        ("z", "one:3/two:12", ""),
        ("two", "one:3/two:12", "one:3"),
        ("y", "one:3", "one:3"),
        ("x", "one:3/two:12", "one:3/two:12"),
        ("x", "one:3", None),
        ("x", "", None),
    ],
)
def test_the_scope_of_a_node_as_seen_from_another(
    node: str, seen_from: str, scope: str | None
) -> None:
    assert scope_near(NESTED, node, seen_from) == scope
