"""Workflows know the rules of the models alone, and rules know rules and a few pure modules.

A module of rules has a folder or a file named `rules` in its path.
"""

import ast
from pathlib import Path

from tests.architecture.source import SRC, files, imported_modules, module_name, tree

PURE = {
    "models.core.base": "the types of identifiers and moments, and the base of shapes",
    "models.core.filters.evaluation": "filters, judged in memory",
    "models.core.filters.grammar": "the parts that filters are made of",
    "models.core.filters.operands": "the values that filters compare with",
    "models.core.http_requests": "requests as automations write them",
    "models.core.keys": "the pattern of keys; a command beside it reserves one",
    "models.core.openapi": "marks of types for the document of the API",
    "models.core.problems": "problems with their places in a value",
    "models.core.schedules.timetables": "cron expressions, and the times of timetables",
    "models.core.values": "JSON values, their comparison and their bounds",
}
"""Modules of `core` that any rules may import, and what they hold. It only shrinks."""

KNOWN = {
    "automation.automations.shapes": {"workspace.changes.rules"},
    "content.items.shapes": {"workspace.changes.rules"},
    "content.surfaces.shapes": {"content.surfaces.rules.tree", "workspace.changes.rules"},
    "data.databases.shapes": {"data.databases.rules", "workspace.changes.rules"},
    "data.fields.shapes": {
        "data.databases.rules",
        "data.fields.rules.new_fields",
        "data.fields.rules.options",
        "data.records.rules.values",
        "sources.data_sources.rules",
        "sources.tabular.rules.columns",
        "sources.tabular.rules.rejections",
        "workspace.changes.rules",
    },
    "data.forms.shapes": {"data.forms.rules"},
    "data.records.shapes": {
        "automation.automations.rules.graph.configs",
        "automation.automations.rules.graph.node_checks",
        "data.record_exports.rules",
        "data.records.rules.query.ordering",
        "data.records.rules.query.plan",
        "data.records.rules.query.routes",
        "data.records.rules.writes",
        "data.views.rules.manifest",
        "workspace.changes.rules",
    },
    # A plan of a query is the statement that it becomes.
    "data.records.tables": {
        "data.records.rules.query.ordering",
        "data.records.rules.query.routes",
        "data.records.rules.query.sql",
    },
    "data.views.shapes": {"data.views.rules.manifest", "workspace.changes.rules"},
    # A table of what the code knows of each provider.
    "sources.connections.providers": {"sources.authorizations.rules", "sources.data_sources.rules"},
    "workspace.changes.shapes": {"workspace.starters.rules.operations"},
    "workspace.starters.shapes": {
        "workspace.starters.rules.operations",
        "workspace.starters.rules.plan",
    },
    "workspace.targets.shapes": {"workspace.changes.rules"},
}
"""Modules of resources below `models`, and the rules that import them: rules judge what a caller
sends, and that is a shape. It only shrinks."""

IMPURE = {"runtime.database", "runtime.outbound", "runtime.temporal.outbox"}
"""Modules of the runtime by which code reaches the world; only `core.keys` imports one."""


def is_rules(module: str) -> bool:
    return "rules" in module.split(".")


def other_models(path: Path) -> set[str]:
    """The modules of the models that a file imports, rules aside."""
    return {
        module
        for module in imported_modules(path)
        if module.startswith("models.") and not is_rules(module)
    }


def test_workflows_import_rules_and_nothing_else_of_the_models() -> None:
    found = {
        f"{module_name(path)} imports {module}"
        for path in files("workflows")
        for module in other_models(path)
    }
    assert found == set()


def test_rules_import_rules_and_listed_modules() -> None:
    found: dict[str, set[str]] = {}
    for path in files("models"):
        if is_rules(module_name(path)):
            for module in other_models(path):
                found.setdefault(module, set()).add(module_name(path).removeprefix("models."))
    resources = {
        module.removeprefix("models."): importers
        for module, importers in found.items()
        if module not in PURE
    }
    assert resources == KNOWN
    assert PURE.keys() <= found.keys(), "no rules import these: take them off the list"


def test_pure_modules_import_pure_modules() -> None:
    """What rules may import is as pure as they are."""
    found = {
        (module, imported)
        for module in PURE
        for imported in imported_modules(SRC / f"{module.replace('.', '/')}.py")
        if (imported.startswith("models.") and imported not in PURE and not is_rules(imported))
        or imported in IMPURE
    }
    assert found == {("models.core.keys", "runtime.database")}


def test_rules_never_wait() -> None:
    """Rules compute: what waits for an answer is a query, a command or an activity."""
    waiting = [
        f"{module_name(path)}: {node.name}"
        for path in files("models")
        if is_rules(module_name(path))
        for node in ast.walk(tree(path))
        if isinstance(node, ast.AsyncFunctionDef)
    ]
    assert waiting == []
