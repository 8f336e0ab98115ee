"""A router says what an operation needs and calls one function (design section 7)."""

import ast
from pathlib import Path

import pytest

from tests.architecture.source import attributes, files, place, tree

LONGEST_BODY = 10
FORBIDDEN_MODULES = ("sqlalchemy", "sqlmodel", "psycopg")


@pytest.mark.parametrize("path", files("api/routers"), ids=lambda path: path.stem)
def test_a_router_decides_nothing(path: Path) -> None:
    found = []
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Try):
            found.append(f"{place(path, node)}: errors are told by the kernel")
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _lines(node) > LONGEST_BODY:
            found.append(f"{place(path, node)}: {node.name} has {_lines(node)} lines of body")
    for name, node in attributes(path):
        if name.endswith("HTTPException"):
            found.append(f"{place(path, node)}: raise a PlatformError")
        if name.startswith(FORBIDDEN_MODULES):
            found.append(f"{place(path, node)}: {name} belongs to a query or a command")
    assert found == []


def _lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of the body, its docstring left out."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return 0 if not body else (body[-1].end_lineno or 0) - body[0].lineno + 1
