"""What workflows pass through their sandbox is pure, or a reference to activities.

Passed-through code is shared by all runs, and the sandbox does not look at what it does. So it may
import nothing that has an effect or differs at a replay. The classes of activities do both; of them
a workflow only names methods, which Temporal calls.
"""

import ast
import dataclasses
import importlib
import inspect
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any

import grimp
import pytest
from temporalio import activity

import workflows

OURS = ("activities", "models", "runtime", "workflows")
EFFECTS = frozenset(
    {
        *("asyncio", "concurrent", "http", "io", "logging", "multiprocessing", "os", "pathlib"),
        *("random", "secrets", "shutil", "signal", "socket", "ssl", "subprocess", "sys"),
        *("tempfile", "threading", "time"),
        *("aiosmtplib", "httpcore2", "httpx2", "psycopg", "psycopg_pool", "sqlalchemy"),
        *("sqlmodel", "structlog", "uvloop"),
    }
)
"""Modules that reach the outside, the clock or chance. Workflows themselves may use asyncio, whose
event loop is Temporal's there."""
EFFECTIVE_CALLS = frozenset({"now", "utcnow", "today", "uuid1", "uuid4", "open", "print", "input"})
CHANGEABLE = (ast.Dict, ast.DictComp, ast.List, ast.ListComp, ast.Set, ast.SetComp)
ROOT = Path(workflows.__file__).parent
NOT_SANDBOXED = {"runners.py"}


@dataclasses.dataclass(frozen=True, order=True)
class Passed:
    """A name that a module of `workflows` takes from another module of ours."""

    by: str
    module: str
    name: str


def modules_of_workflows() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(ROOT.rglob("*.py")):
        if path.name not in NOT_SANDBOXED:
            inside = path.relative_to(ROOT.parent).with_suffix("").parts
            yield ".".join(inside).removesuffix(".__init__"), ast.parse(path.read_text())


def passed() -> Iterator[Passed]:
    for module, tree in modules_of_workflows():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                if node.module.split(".")[0] in OURS:
                    yield from (Passed(module, node.module, name.name) for name in node.names)
            elif isinstance(node, ast.Import):
                ours = [name.name for name in node.names if name.name.split(".")[0] in OURS]
                assert not ours, f"{module} imports {ours} whole; name what it needs."


PASSED = sorted(set(passed()))


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(
        *OURS, include_external_packages=True, exclude_type_checking_imports=True
    )


def effects_of(graph: grimp.ImportGraph, module: str) -> set[str]:
    """The effects that a module can have by what it imports, directly or not."""
    return graph.find_upstream_modules(module) & EFFECTS


def is_reference(value: Any) -> bool:
    """A class with methods that are activities, or activities by key."""
    if isinstance(value, Mapping):
        return all(is_activity(each) for each in value.values())
    return inspect.isclass(value) and any(is_activity(each) for each in vars(value).values())


def is_activity(value: Any) -> bool:
    return callable(value) and activity._Definition.from_callable(value) is not None


def is_data(value: Any) -> bool:
    """A value without behaviour, or the class of such."""
    if isinstance(value, type):
        return dataclasses.is_dataclass(value) or issubclass(value, Enum)
    return isinstance(value, str | int | float | tuple | frozenset)


@pytest.mark.parametrize("one", PASSED, ids=lambda one: f"{one.by}-{one.module}.{one.name}")
def test_a_passed_module_is_pure_or_names_activities(one: Passed, graph: grimp.ImportGraph) -> None:
    if one.module.startswith("workflows."):
        return  # looked at by itself
    if not (effects := effects_of(graph, one.module)):
        return
    value = getattr(importlib.import_module(one.module), one.name)
    assert one.module.startswith("activities."), f"{one.module} reaches {sorted(effects)}"
    assert is_data(value) or is_reference(value), f"{one.module}.{one.name} is neither"


def test_workflows_themselves_import_no_effects() -> None:
    for module, tree in modules_of_workflows():
        imported = {
            name
            for node in ast.walk(tree)
            for name in (
                [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else [each.name for each in node.names]
                if isinstance(node, ast.Import)
                else []
            )
        }
        assert not imported & (EFFECTS - {"asyncio"}), module


def test_workflows_name_activities_and_never_make_or_call_them() -> None:
    references = {
        (one.by, one.name): value
        for one in PASSED
        if one.module.startswith("activities.")
        and is_reference(value := getattr(importlib.import_module(one.module), one.name))
    }
    assert references
    for module, tree in modules_of_workflows():
        for node in ast.walk(tree):
            where = f"{module}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Call):
                called = node.func.value if isinstance(node.func, ast.Attribute) else node.func
                assert not isinstance(called, ast.Name) or (module, called.id) not in references, (
                    f"{where} calls an activity, or makes what has some"
                )
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                named = references.get((module, node.value.id))
                assert named is None or is_activity(getattr(named, node.attr)), (
                    f"{where} takes {node.attr}, which is no activity"
                )


def test_workflows_share_nothing_that_changes() -> None:
    shared = [
        f"{module}:{line}"
        for module, tree in modules_of_workflows()
        for line in changeable_values(tree)
    ]
    assert not shared, "runs of a worker would share these"


def changeable_values(tree: ast.Module) -> Iterator[int]:
    """Lines that bind a changeable value for longer than a call, or that bind a global anew."""
    for node in ast.walk(tree):
        match node:
            case ast.Global(lineno=line):
                yield line
            case ast.Module(body=body) | ast.ClassDef(body=body):
                for bound in body:
                    match bound:
                        case ast.AnnAssign(annotation=ast.Subscript(value=ast.Name(id="Mapping"))):
                            pass  # the type checker refuses a change
                        case ast.Assign(value=value) | ast.AnnAssign(value=value):
                            if isinstance(value, CHANGEABLE):
                                yield bound.lineno
            case ast.Name(id="cache" | "lru_cache", lineno=line):
                yield line


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("SEEN = {}", [1]),
        ("class A:\n    seen: list[str] = []", [2]),
        ("COUNT = 0\ndef count():\n    global COUNT", [3]),
        ("ROWS = [one for one in others]", [1]),
        ("@cache\ndef plan(): ...", [1]),
        ("MARKS: Mapping[str, str] = {}\nNAMES = ('a', 'b')", []),
        ("def plan():\n    seen = {}", []),
    ],
)
def test_a_shared_value_is_seen(source: str, lines: list[int]) -> None:
    assert list(changeable_values(ast.parse(source))) == lines


def test_a_passed_module_calls_no_clock_and_no_chance(graph: grimp.ImportGraph) -> None:
    pure = {one.module for one in PASSED if not effects_of(graph, one.module)}
    closure = pure.union(*(graph.find_upstream_modules(module) for module in pure))
    for module in sorted(name for name in closure if name.split(".")[0] in OURS):
        for line, called in calls(importlib.import_module(module)):
            assert called not in EFFECTIVE_CALLS, f"{module}:{line} calls {called}"
    for module, tree in modules_of_workflows():
        for line, called in calls_in(tree):
            assert called not in EFFECTIVE_CALLS, f"{module}:{line} calls {called}"


def calls(module: ModuleType) -> Iterator[tuple[int, str]]:
    assert module.__file__ is not None
    return calls_in(ast.parse(Path(module.__file__).read_text()))


def calls_in(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The names that are called, except `workflow.now()` and its like, which replay."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name):
            yield node.lineno, node.func.id
        elif isinstance(node.func, ast.Attribute):
            owner = node.func.value
            if not (isinstance(owner, ast.Name) and owner.id == "workflow"):
                yield node.lineno, node.func.attr
