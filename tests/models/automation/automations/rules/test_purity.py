"""What the workflow imports stays cheap, and reads no clock and no chance."""

import ast
import sys
from pathlib import Path

import pytest

from models.automation.automations.rules.graph import kinds
from models.automation.automations.rules.planner import plan, planner, protocol

MODULES = (kinds, plan, planner, protocol)
OURS = {module.__name__ for module in MODULES}
FORBIDDEN = {"time", "datetime", "random", "secrets", "uuid", "os", "asyncio", "threading"}


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_the_workflow_side_imports_the_standard_library_only(module: object) -> None:
    tree = ast.parse(Path(str(module.__file__)).read_text())  # type: ignore[attr-defined]
    names = {
        name
        for item in ast.walk(tree)
        for name in (
            [alias.name for alias in item.names]
            if isinstance(item, ast.Import)
            else [_imported(item.module or "", alias.name) for alias in item.names]
            if isinstance(item, ast.ImportFrom)
            else []
        )
    }
    ours = {name for name in names if name.startswith("models.")}
    assert ours <= OURS
    others = {name.partition(".")[0] for name in names - ours}
    assert others <= sys.stdlib_module_names - FORBIDDEN


def _imported(module: str, name: str) -> str:
    """The module that `from module import name` loads: a name may be a module itself."""
    return f"{module}.{name}" if f"{module}.{name}" in OURS else module
