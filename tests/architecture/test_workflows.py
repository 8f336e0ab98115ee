"""Workflow code is deterministic, and every activity it calls is bounded and registered."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.work_handlers.registry import WORKFLOWS
from tests.architecture.source import SRC, attributes, calls, dotted, files, place, tree

UNDETERMINED = re.compile(
    r"datetime\.(datetime|date)\.(now|utcnow|today)|time\.\w+|random\.\w+|secrets\.\w+"
    r"|uuid\.uuid[1-8]|asyncio\.(wait|as_completed|to_thread|get_event_loop|get_running_loop)"
    r"|os\.\w+|pathlib\.Path|(builtins\.)?(open|input|id|hash)|threading\.\w+|socket\.\w+"
)
"""Clocks, dice, the outside world, and what asyncio leaves to chance."""

CALLS_ACTIVITY = re.compile(r"(execute|start)_(local_)?activity(_method|_class)?")
TIMEOUTS = {"start_to_close_timeout", "schedule_to_close_timeout"}


@pytest.mark.parametrize("path", files("workflows"), ids=lambda path: path.stem)
def test_nothing_in_a_workflow_is_left_to_chance(path: Path) -> None:
    found = [
        f"{place(path, node)}: {name}: use what temporalio.workflow offers, or an activity"
        for name, node in attributes(path)
        if UNDETERMINED.fullmatch(name)
    ]
    assert found == []


@pytest.mark.parametrize("path", files("workflows"), ids=lambda path: path.stem)
def test_every_activity_call_names_its_timeout_and_policy(path: Path) -> None:
    found = []
    for _, call in calls(path):
        if not CALLS_ACTIVITY.fullmatch(dotted(call.func).rpartition(".")[2]):
            continue
        given = {word.arg: word.value for word in call.keywords}
        if not TIMEOUTS & given.keys():
            found.append(f"{place(path, call)}: no timeout")
        if not _named_once(given.get("retry_policy")):
            found.append(f"{place(path, call)}: the retry policy is not one of workflows/policies")
    assert found == []


def _named_once(policy: ast.expr | None) -> bool:
    """Whether a policy is a constant or a function of workflows/policies.py."""
    named = policy.func if isinstance(policy, ast.Call) else policy
    return named is not None and dotted(named).removeprefix("policies.") in _policies()


def _policies() -> set[str]:
    names: set[str] = set()
    for statement in tree(SRC / "workflows" / "policies.py").body:
        if isinstance(statement, ast.FunctionDef):
            names.add(statement.name)
        elif isinstance(statement, ast.Assign):
            names |= {dotted(target) for target in statement.targets}
    return names


def test_every_activity_is_registered_with_a_worker() -> None:
    written = {name for path in files("activities") for name in _activities(path)}
    registered = files("cli/work_handlers")
    named = {name.rpartition(".")[2] for path in registered for name, _ in attributes(path)}
    # What a class lists itself counts, since the worker asks such a class for its list.
    named |= {name for path in files("activities") for name in _listed(path)}
    assert written
    assert written - named == set()


def _listed(path: Path) -> Iterator[str]:
    """The methods that an `all` of this file returns."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef) and node.name == "all":
            for part in ast.walk(node):
                if isinstance(part, ast.Attribute) and dotted(part.value) == "self":
                    yield part.attr


def _activities(path: Path) -> Iterator[str]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in node.decorator_list:
                target = decorator.func if isinstance(decorator, ast.Call) else decorator
                if dotted(target) == "activity.defn":
                    yield node.name


def test_every_workflow_is_registered() -> None:
    written = {
        node.name
        for path in files("workflows")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ClassDef)
        and any(
            dotted(one.func if isinstance(one, ast.Call) else one) == "workflow.defn"
            for one in node.decorator_list
        )
    }
    registered = {workflow.__name__ for workflow in WORKFLOWS}
    assert written
    assert written - registered == set()
