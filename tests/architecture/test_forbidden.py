"""What no file of ours does (architecture.md#promises)."""

import ast
import re
from pathlib import Path

from tests.architecture.source import ROOT, SRC, calls, files, place

COMMITS = {
    SRC / "runtime/database.py": "the edge: everything else runs inside its transactions",
    SRC / "models/migrations/runner.py": "a migration is a transaction of its own",
    SRC / "models/migrations/autogenerate.py": "it writes to a database it throws away",
}
"""Who commits, and why."""

EXECUTES_TEXT = re.compile(
    r"(builtins\.)?(eval|exec|compile|__import__)|(pickle|marshal|shelve|dill)\.\w+"
    r"|yaml\.(load|load_all|unsafe_load|full_load)|os\.(system|popen)|subprocess\.get(status)?output"
)


def test_no_file_commits_or_executes_text() -> None:
    assert [wrong for path in files() for wrong in _commits_or_executes_text(path)] == []


def _commits_or_executes_text(path: Path) -> list[str]:
    found = []
    for name, call in calls(path):
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if method == "commit" and path not in COMMITS:
            found.append(f"{place(path, call)}: only the edge commits")
        if EXECUTES_TEXT.fullmatch(name):
            found.append(f"{place(path, call)}: {name} executes text")
        if any(word.arg == "shell" and not _is_false(word.value) for word in call.keywords):
            found.append(f"{place(path, call)}: a shell executes text")
    return found


def _is_false(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is False


def test_time_is_skipped_by_the_server_we_ship() -> None:
    """The first time-skipping environment downloads a Java server; `_v2` uses our own."""
    found = [
        place(path, call)
        for package in ("src", "tests", "bench")
        for path in sorted((ROOT / package).rglob("*.py"))
        if "start_time_skipping" in path.read_text(encoding="utf-8")
        for name, call in calls(path)
        if name.endswith("WorkflowEnvironment.start_time_skipping")
    ]
    assert found == []
