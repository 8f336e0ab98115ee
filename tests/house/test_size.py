"""Nothing has a tail: files of about 300 lines, functions of about 40 (design section 7)."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.house.source import ROOT, files, tree

LONGEST_FILE = 300
LONGEST_FUNCTION = 45

EXEMPT = {
    "src/cli/demo/automation.py:graph": "a graph written out is data, not steps",
}
"""Place (`src/models/x.py` or `src/models/x.py:function`) and why it may be longer."""

LONG_TESTS = {
    "tests/workflows/action_runs/test_actions.py:test_a_sequence_hands_on_what_it_found",
    "tests/workflows/automation_runs/test_canaries.py:test_a_service_that_repeats_a_secret_tells_nobody",
    "tests/workflows/automation_runs/test_logic_nodes.py:test_transform_with_every_binding",
    "tests/workflows/data_source_runs/test_sources_of_databases.py:test_the_rows_of_a_query_become_records",
    "tests/workflows/jobs/test_change_credentials.py:test_they_are_used_and_shown_nowhere",
    "tests/workflows/schedules/test_data_source_schedules.py:test_temporal_follows_what_becomes_of_a_data_source",
    "tests/workflows/test_operators_view.py:test_a_run_is_found_and_read_in_temporal",
    "tests/workflows/test_operators_view.py:test_no_history_holds_what_a_run_works_on",
}
"""Functions of tests that are longer still. The list only shrinks."""


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
    assert set(long_functions(tests)) == LONG_TESTS
