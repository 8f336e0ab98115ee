"""Fingerprints of workflows: which commands each gives Temporal, in the order of its source.

A running workflow replays its history against the code of today; a command that was added,
removed or moved makes it fail. The fingerprints of what is deployed are committed, so that such a
change is never made unknowingly (promise I9). Standard library only; no workflow is imported.

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
    r"workflow\.((execute|start)_\w+|sleep|wait_condition|continue_as_new|patched|deprecate_patch"
    r"|upsert_\w+|get_external_workflow_handle\w*|signal\w*|uuid4|random|timeout\w*)"
    r"|asyncio\.(sleep|create_task|gather|wait_for|timeout|shield)"
)
"""Calls whose order a replay depends on: commands, and what decides who runs first."""

Fingerprints = dict[str, dict[str, list[str]]]
Function = ast.FunctionDef | ast.AsyncFunctionDef


def fingerprints(workflows: Path = ROOT / "src" / "workflows") -> Fingerprints:
    """By workflow class, the commands of each of its functions that has any."""
    found: Fingerprints = {}
    for path in sorted(workflows.glob("*.py")):
        module = ast.parse(path.read_text(encoding="utf-8"))
        helpers = {node.name: node for node in module.body if isinstance(node, Function)}
        for node in module.body:
            if isinstance(node, ast.ClassDef) and _is_workflow(node):
                methods = {part.name: part for part in node.body if isinstance(part, Function)}
                found[node.name] = _commands(methods, helpers)
    return found


def _commands(methods: dict[str, Function], helpers: dict[str, Function]) -> dict[str, list[str]]:
    """The commands of each function; calls of our own functions count once those have commands."""
    known = {f"self.{name}": method for name, method in methods.items()} | helpers
    giving: set[str] = set()
    while True:
        commands = {name: list(_steps(known[name], giving)) for name in sorted(known)}
        now = {name for name, steps in commands.items() if steps}
        if now == giving:
            return {name.removeprefix("self."): commands[name] for name in sorted(giving)}
        giving = now


def _steps(function: Function, giving: set[str]) -> Iterator[str]:
    calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
    for call in sorted(calls, key=lambda call: (call.end_lineno, call.end_col_offset)):
        name = ast.unparse(call.func)
        if COMMAND.fullmatch(name) or name in giving:
            subject = f" {ast.unparse(call.args[0])}" if _tells(name, call) else ""
            yield f"{name}{subject}"


def _tells(name: str, call: ast.Call) -> bool:
    """Whether the first argument says which command it is: an activity, a child, a patch id."""
    if not call.args:
        return False
    return "execute_" in name or "start_" in name or "patch" in name or name == "_transact"


def _is_workflow(node: ast.ClassDef) -> bool:
    return any("workflow.defn" in ast.unparse(one) for one in node.decorator_list)


def committed() -> Fingerprints:
    """The fingerprints of what is deployed."""
    read: Fingerprints = json.loads(BASELINE.read_text(encoding="utf-8"))
    return read


def write() -> None:
    """Make the tree as it is the baseline."""
    BASELINE.write_text(json.dumps(fingerprints(), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
