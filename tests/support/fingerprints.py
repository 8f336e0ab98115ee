"""Fingerprints of workflows: which commands each gives Temporal, in the order of its source.

A running workflow replays its history against the code of today; a command that was added,
removed or moved makes it fail. The fingerprints of what is deployed are committed, so that such a
change is never made unknowingly (architecture.md#replayable-workflows). Standard library only; no
workflow is imported.

`python -m tests.support.fingerprints` writes the fingerprints of the tree as it is.
"""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
BASELINE = ROOT / "temporal" / "fingerprints.json"

COMMAND = re.compile(
    r"workflow\.((execute|start)_\w+|sleep|wait\w*|continue_as_new|patched|deprecate_patch"
    r"|upsert_\w+|get_external_workflow_handle\w*|signal\w*|uuid4|random|timeout\w*)"
    r"|asyncio\.(sleep|create_task|gather|wait|wait_for|timeout|shield)"
)
"""Calls whose order a replay depends on: commands, and what decides who runs first."""

Fingerprints = dict[str, dict[str, list[str]]]
Function = ast.FunctionDef | ast.AsyncFunctionDef


def fingerprints(workflows: Path = ROOT / "src" / "workflows") -> Fingerprints:
    """By module, the commands of each of its functions that has any.

    A call of a function of ours counts once that function has commands, wherever it is defined.
    """
    functions = {
        (path.stem, name): function
        for path in sorted(workflows.rglob("*.py"))
        for name, function in _functions(ast.parse(path.read_text(encoding="utf-8")))
    }
    giving: frozenset[str] = frozenset()
    while True:
        commands = {key: list(_steps(one, giving)) for key, one in functions.items()}
        now = frozenset(name.rpartition(".")[2] for (_, name), steps in commands.items() if steps)
        if now == giving:
            break
        giving = now
    found: Fingerprints = {}
    for (module, name), steps in sorted(commands.items()):
        if steps:
            found.setdefault(module, {})[name] = steps
    return found


def _functions(module: ast.Module) -> Iterator[tuple[str, Function]]:
    for node in module.body:
        if isinstance(node, Function):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for part in node.body:
                if isinstance(part, Function):
                    yield f"{node.name}.{part.name}", part


def _steps(function: Function, giving: frozenset[str]) -> Iterator[str]:
    calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
    for call in sorted(calls, key=lambda call: (call.end_lineno, call.end_col_offset)):
        name = ast.unparse(call.func)
        if COMMAND.fullmatch(name) or _is_ours(name, giving):
            subject = f" {ast.unparse(call.args[0])}" if _tells(name, call) else ""
            yield f"{name}{subject}"


def _is_ours(name: str, giving: frozenset[str]) -> bool:
    """Whether a call reaches a function that gives commands."""
    owner, _, last = name.rpartition(".")
    return last in giving and (not owner or owner == "self" or owner.startswith("self."))


def _tells(name: str, call: ast.Call) -> bool:
    """Whether the first argument says which command it is: an activity, a child, a patch id."""
    if not call.args:
        return False
    if name in {"transact", "_swept"}:
        return True
    return "execute_" in name or "start_" in name or "patch" in name


def committed() -> Fingerprints:
    """The fingerprints of what is deployed."""
    read: Fingerprints = json.loads(BASELINE.read_text(encoding="utf-8"))
    return read


def write() -> None:
    """Make the tree as it is the baseline."""
    BASELINE.write_text(json.dumps(fingerprints(), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
