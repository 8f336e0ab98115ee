"""The imports of tables by others than their noun, printed by `make check`.

A noun's tables are its own: others ask its `queries`, join with its `joins`, call its commands,
are handed its `rows`, and give its `lifecycle` to what all durable work shares.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.house.source import SRC, files, tree

LISTED = {
    ("cli.families", "automation.action_runs"): "a sweep selects what it judges by",
    ("cli.families", "automation.automation_runs"): "a sweep selects what it judges by",
    ("activities.maintenance", "automation.automation_runs"): "one statement finds lost signals",
    ("activities.maintenance", "automation.waits"): "one statement finds lost signals",
    ("cli.families", "data.time_entries"): "a sweep selects what it judges by",
    ("cli.families", "messages.deliveries"): "a sweep selects what it judges by",
    ("cli.families", "messages.jobs"): "a sweep selects what it judges by",
    ("cli.families", "workspace.legacy_imports"): "a sweep selects what it judges by",
    ("activities.outbox", "automation.automation_runs"): "one statement claims what has room",
    ("automation.automations", "messages.events"): "an automation keeps its subscription true",
    ("automation.run_overviews", "automation.automation_runs"): "a page aggregates node runs",
    ("automation.triggers", "data.records"): "a poll selects events from the records it finds",
    ("automation.triggers", "messages.events"): "the dispatcher consumes the event table",
    ("content.files", "content.items"): "the purge of the trash spares the items of files",
    ("content.grants", "content.items"): "grants are stored with the tree that they open",
    ("data.database_copies", "data.record_templates"): "rows are copied whole",
    ("data.database_copies", "data.records"): "rows are copied by the database, never read",
    ("data.database_copies", "data.views"): "rows are copied whole",
    ("data.databases", "data.records"): "converted values are joined with their records",
    ("people.audience_segments", "people.request_logs"): "a rule judges facts in one statement",
    ("people.audience_segments", "people.users"): "a rule judges facts in one statement",
    ("people.audience_segments", "people.workspaces"): "a rule judges facts in one statement",
    ("people.credentials", "people.api_keys"): "one statement authenticates a request",
    ("people.credentials", "people.users"): "one statement authenticates a request",
    ("people.credentials", "people.workspaces"): "one statement authenticates a request",
    ("people.members", "people.workspaces"): "a workspace makes its first member itself",
}
"""Importer and noun, and why it needs the table itself. It only shrinks."""

IMPORTS = 36
"""Files that import such a table, counted once for each noun. It only shrinks."""


def found() -> Counter[tuple[str, str]]:
    """Importer and noun, with the number of files."""
    counted: Counter[tuple[str, str]] = Counter()
    for path in files():
        importer = _place(path)
        if importer is not None:
            counted.update((importer, noun) for noun in set(_nouns(path)) if noun != importer)
    return counted


def faults(counted: Counter[tuple[str, str]]) -> list[str]:
    """Imports that no line lists, lines that list none, and a count that is not the one above."""
    pairs = sorted(counted.keys() ^ LISTED.keys())
    named = [
        f"{importer} -> {noun}: {'is not listed' if (importer, noun) in counted else 'take it off'}"
        for importer, noun in pairs
    ]
    if counted.total() != IMPORTS:
        named.append(f"{counted.total()} imports, where {IMPORTS} are noted")
    return named


def _place(path: Path) -> str | None:
    """The noun or the package of a file; None for one that may know every table."""
    room, *rest = path.relative_to(SRC).with_suffix("").parts
    if room != "models":
        return ".".join((room, *rest[:1]))
    if rest[-1] == "bundle" or rest[:2] == ["workspace", "bundles"] or len(rest) < 3:
        return None
    return None if rest[0] == "migrations" else ".".join(rest[:2])


def _nouns(path: Path) -> Iterator[str]:
    """The nouns whose tables a file imports, be it by way of another module."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _of_module(alias.name)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from _of_module(node.module)
            for alias in node.names:
                yield from _of_module(f"{node.module}.{alias.name}")
                room, *place = node.module.split(".")
                if room == "models" and len(place) > 2 and alias.name in _tables(*place[:2]):
                    yield ".".join(place[:2])


def _of_module(name: str) -> Iterator[str]:
    room, *place = name.split(".")
    if room == "models" and len(place) > 2 and place[2] == "tables":
        yield ".".join(place[:2])


@cache
def _tables(wing: str, noun: str) -> frozenset[str]:
    """The names of a noun's tables."""
    path = SRC / "models" / wing / noun / "tables.py"
    return frozenset(
        target.id
        for node in (tree(path).body if path.exists() else ())
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id.islower()
    )
