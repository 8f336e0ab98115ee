"""Nothing has a tail: files of at most 400 lines, functions of about 40 (design section 7)."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.house.source import ROOT, files, tree

LONGEST_FILE = 400
LONGEST_FUNCTION = 45

EXEMPT = {
    "src/cli/demo.py:graph": "a graph written out is data, not steps",
}
"""Place (`src/models/x.py` or `src/models/x.py:function`) and why it may be longer."""


def long_functions(paths: Iterable[Path]) -> Iterator[str]:
    for path in paths:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or 0) - node.lineno + 1
                if length > LONGEST_FUNCTION:
                    yield f"{named(path)}:{node.name}"


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_files_and_functions_are_short() -> None:
    long = {path for path in files() if len(path.read_text("utf-8").splitlines()) > LONGEST_FILE}
    assert {*map(named, long), *long_functions(files())} == EXEMPT.keys()


def test_functions_of_tests_are_short() -> None:
    tests = (ROOT / "tests").rglob("*.py")
    assert list(long_functions(tests)) == []
