"""Docstrings begin with a verb or a noun, and say one thing in their first sentence.

`ALLOWED` counts what was written before this rule, by room or wing. It only shrinks.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.house.source import SRC, files, place, tree

QUESTION = re.compile(r"(What|Whether|Which|Who|Whose|Whom|How|Why|Where|When|Since|Those)\b")
POINTING = re.compile(r"\b[Tt]hose (of|who|that)\b|; how many\.?\s*$")
MOST_WORDS = 20
"""Words of a first sentence."""
ALLOWED: dict[str, int] = {}


def docstrings(module: ast.Module) -> Iterator[ast.Constant]:
    """Strings that stand alone: docstrings of modules, classes and functions, and of constants."""
    for node in ast.walk(module):
        match node:
            case ast.Expr(value=ast.Constant(value=str()) as constant):
                yield constant


def faults(text: str) -> list[str]:
    """Reasons for which a docstring is hard to read."""
    first = re.split(r"[.:;](?:\s|$)", text.strip(), maxsplit=1)[0]
    found = []
    if QUESTION.match(text.strip()):
        found.append("begins with a question")
    if POINTING.search(text):
        found.append("points at something it does not name")
    if len(first.split()) > MOST_WORDS:
        found.append(f"has more than {MOST_WORDS} words in its first sentence")
    return found


def _area(path: Path) -> str:
    """The room of a file, of models the wing."""
    parts = path.relative_to(SRC).parts
    return "/".join(parts[:2]) if parts[0] == "models" and len(parts) > 2 else parts[0]


def test_docstrings_are_plain() -> None:
    found = [
        (_area(path), f"{place(path, constant)} {fault}")
        for path in files()
        for constant in docstrings(tree(path))
        for fault in faults(str(constant.value))
    ]
    counted = Counter(area for area, _ in found)
    over = {area for area, count in counted.items() if count > ALLOWED.get(area, 0)}
    assert not over, "\n".join(line for area, line in found if area in over)
    assert {area: counted[area] for area in ALLOWED} == ALLOWED, "Lower ALLOWED to what is left."


def test_a_fault_is_seen() -> None:
    assert faults("Whether it is so.") == ["begins with a question"]
    assert faults("The rows, those of others too; how many.")
    assert faults(" ".join(["word"] * (MOST_WORDS + 1)))
    assert not faults("The rows of a workspace. Whether they are read does not matter.")
