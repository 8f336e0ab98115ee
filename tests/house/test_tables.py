"""Tables are read in their own wing; other wings ask the queries of their nouns.

The class of a row may be imported anywhere: it types what a query gives.
"""

import ast
from collections.abc import Iterator

from tests.house.source import SRC, files, tree

MODELS = SRC / "models"

EXEMPT = {
    ("automation/triggers", "messages/events"): "the dispatcher is the consumer of the event table",
    ("automation/automations", "messages/events"): "an automation keeps its own subscription true",
    ("automation/triggers", "data/records"): "a poll selects events from the records it finds",
}
"""Reader and noun, and why the reader needs the table itself."""


def test_tables_are_read_in_their_own_wing() -> None:
    found = {
        (f"{wing}/{noun}", f"{other_wing}/{other}")
        for wing, noun, other_wing, other in _tables_read()
        if wing != other_wing
    }
    assert found - EXEMPT.keys() == set(), "add what is missing to the queries of the noun"
    assert EXEMPT.keys() - found == set(), "these are not needed any more: take them off the list"


def _tables_read() -> Iterator[tuple[str, str, str, str]]:
    """Wing and noun of each reader of a table, and those of the table."""
    for path in files("models"):
        parts = path.relative_to(MODELS).parts
        if len(parts) < 3:
            continue
        wing, noun = parts[:2]
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                room, *place = node.module.split(".")
                named = any(alias.name[0].islower() for alias in node.names)
                if room == "models" and len(place) == 3 and place[2] == "tables" and named:
                    yield wing, noun, place[0], place[1]
