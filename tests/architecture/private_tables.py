"""The imports of tables by others than their resource, printed by `make check`.

A resource's tables are its own: others ask its queries, join by its functions, call its commands,
are handed rows as protocols, and give its `WorkTable` to all durable work. A table is known by what
it is, wherever it stands: a class with `table=True`, and what `table_of` makes of it. Of
the rest of a module named `tables`, others may have the kinds of names listed in `SHARED`.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.architecture.source import SRC, dotted, files, tree

LISTED = {
    ("cli.work_handlers", "automation.action_runs"): "a sweep selects what it judges by",
    ("cli.work_handlers", "automation.automation_runs"): "a sweep selects what it judges by",
    ("activities.maintenance", "automation.automation_runs"): "one statement finds lost signals",
    ("activities.maintenance", "automation.waits"): "one statement finds lost signals",
    ("cli.work_handlers", "data.time_entries"): "a sweep selects what it judges by",
    ("cli.work_handlers", "messages.deliveries"): "a sweep selects what it judges by",
    ("cli.work_handlers", "messages.jobs"): "a sweep selects what it judges by",
    ("cli.work_handlers", "workspace.legacy_imports"): "a sweep selects what it judges by",
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
    ("people.members", "people.users"): "a bundle finds its members by their addresses",
    ("people.members", "people.workspaces"): "a workspace makes its first member itself",
}
"""Importer and resource, and why it needs the table itself. It only shrinks."""

SHARED = frozenset({"Protocol", "Repository", "Retention", "ScheduleTable", "WorkTable"})
"""Bases of classes and makers of values that a module of tables holds for others, too; so do its
functions, which purge or join."""

IMPORTS = 29
"""Files that import such a table, counted once for each resource. It only shrinks."""


def found() -> Counter[tuple[str, str]]:
    """Importer and resource, with the number of files."""
    counted: Counter[tuple[str, str]] = Counter()
    for path in files():
        importer = _place(path)
        if importer is not None:
            counted.update(
                (importer, resource)
                for resource in set(imported_tables(tree(path)))
                if resource != importer
            )
    return counted


def faults(counted: Counter[tuple[str, str]]) -> list[str]:
    """Imports that no line lists, lines that list none, and a count that is not the one above."""
    pairs = sorted(counted.keys() ^ LISTED.keys())
    named = [
        f"{pair[0]} -> {pair[1]}: {'is not listed' if pair in counted else 'take it off'}"
        for pair in pairs
    ]
    if counted.total() != IMPORTS:
        named.append(f"{counted.total()} imports, where {IMPORTS} are noted")
    return named


def _place(path: Path) -> str | None:
    """The resource or the package of a file; None for one that may know every table."""
    room, *rest = path.relative_to(SRC).with_suffix("").parts
    if room != "models":
        return ".".join((room, *rest[:1]))
    if rest[-1] == "bundle" or rest[:2] == ["workspace", "bundles"] or len(rest) < 2:
        return None
    return None if rest[0] == "migrations" else ".".join(rest[:2])


def imported_tables(module: ast.Module) -> Iterator[str]:
    """The resources whose tables a module imports, be it by way of another module."""
    modules: dict[str, str] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            modules.update((alias.asname or alias.name, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                yield from _of_name(node.module, alias.name)
    for name in modules.values():
        if name.rpartition(".")[2] == "tables":
            yield from filter(None, [_resource(name)])
    for node in ast.walk(module):
        if isinstance(node, ast.Attribute):
            yield from _of_name(modules.get(dotted(node.value), ""), node.attr)


def _of_name(module: str, name: str) -> Iterator[str]:
    """The resource whose table a name of a module is."""
    resource = _resource(module)
    if resource is not None and name in tables_of(resource) | _unshared(module):
        yield resource


def _resource(module: str) -> str | None:
    room, *place = module.split(".")
    return ".".join(place[:2]) if room == "models" and len(place) > 1 else None


@cache
def tables_of(resource: str) -> frozenset[str]:
    """The names of a resource's tables, and of the classes of their rows."""
    place = SRC / "models" / resource.replace(".", "/")
    paths = [*place.rglob("*.py"), place.with_suffix(".py")]
    return frozenset(
        name
        for path in paths
        if path.exists()
        for node in tree(path).body
        for name in _bound(node)
        if _is_table(node)
    )


@cache
def _unshared(module: str) -> frozenset[str]:
    """The names that a module named `tables` binds for its resource alone."""
    path = SRC / f"{module.replace('.', '/')}.py"
    if path.name != "tables.py" or not path.exists():
        return frozenset()
    return frozenset(
        name for node in tree(path).body for name in _bound(node) if not _is_shared(node)
    )


def _bound(node: ast.stmt) -> Iterator[str]:
    """The names that a statement of a module binds, imports aside."""
    match node:
        case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
            yield node.name
        case ast.Assign():
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name


def _is_table(node: ast.stmt) -> bool:
    """True for a class of rows, and for a table."""
    match node:
        case ast.ClassDef():
            return any(word.arg == "table" for word in node.keywords)
        case ast.Assign(value=ast.Call() as call):
            return dotted(call.func).rpartition(".")[2] == "table_of"
    return False


def _is_shared(node: ast.stmt) -> bool:
    """True for what a module of tables holds for others, too."""
    match node:
        case ast.ClassDef():
            return any(dotted(base) in SHARED for base in node.bases)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return True
        case ast.Assign(value=ast.Call() as call):
            return dotted(call.func) in SHARED
    return False
