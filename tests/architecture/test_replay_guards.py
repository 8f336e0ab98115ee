"""No workflow is without its guards: fingerprint, golden history, changes by name."""

import ast
import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from cli.work_handlers.registry import WORKFLOWS
from tests.architecture.source import calls, dotted, files, place, tree
from tests.support.fingerprints import ROOT, fingerprints

HISTORIES = ROOT / "temporal" / "histories"

PATCHING = {"temporalio.workflow.patched", "temporalio.workflow.deprecate_patch"}

named = pytest.mark.parametrize("made", WORKFLOWS, ids=lambda made: made.__name__)


@named
def test_every_workflow_is_called_as_its_class(made: type[Any]) -> None:
    assert made.__name__ in _written()


@named
def test_every_workflow_has_a_golden_history(made: type[Any]) -> None:
    recorded = {_type(path) for path in sorted(HISTORIES.glob("*.json"))}
    assert made.__name__ in recorded, (
        f"{made.__name__} has no history in temporal/histories: add a story that runs it to"
        " tests/support/record_histories.py, then `make histories`"
    )


@named
def test_every_workflow_has_a_fingerprint(made: type[Any]) -> None:
    module = made.__module__.rpartition(".")[2]
    commands = fingerprints().get(module, {})
    assert f"{made.__name__}.run" in commands, (
        f"tests/support/fingerprints.py sees no command in {made.__name__}.run: what its run calls"
        " must be found in src/workflows by name"
    )


@pytest.mark.parametrize("path", files("workflows"), ids=lambda path: path.stem)
def test_patches_are_constants_that_tell_their_life(path: Path) -> None:
    constants = dict(_told_constants(path))
    found = []
    for name, call in calls(path):
        if name not in PATCHING:
            continue
        named_by = call.args[0].id if isinstance(call.args[0], ast.Name) else ""
        if named_by not in constants:
            found.append(
                f"{place(path, call)}: name the patch by a constant of this module, with a text"
                " behind it that says when the old way may go"
            )
    assert found == []
    assert len(set(constants.values())) == len(constants)


def _told_constants(path: Path) -> Iterator[tuple[str, object]]:
    """The constants of a module behind which a text stands."""
    body = tree(path).body
    for statement, behind in pairwise(body):
        if (
            isinstance(statement, ast.Assign)
            and isinstance(statement.value, ast.Constant)
            and isinstance(behind, ast.Expr)
            and isinstance(behind.value, ast.Constant)
            and isinstance(behind.value.value, str)
        ):
            yield dotted(statement.targets[0]), statement.value.value


def _written() -> set[str]:
    """The names that classes of workflows are registered under."""
    return {
        ast.literal_eval(decorator.keywords[0].value)
        for path in files("workflows")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ClassDef)
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "workflow.defn"
    }


def _type(path: Path) -> str:
    first = json.loads(path.read_text(encoding="utf-8"))["events"][0]
    return str(first["workflowExecutionStartedEventAttributes"]["workflowType"]["name"])
