"""Docstrings begin with a verb or a noun, and say one thing in their first sentence."""

import ast
import re
from collections.abc import Iterator

from tests.house.source import files, place, tree

QUESTION = re.compile(r"(What|Whether|Which|Who|Whose|Whom|How|Why|Where|When|Since|Those)\b")
POINTING = re.compile(r"\b[Tt]hose (of|who|that)\b|; how many\.?\s*$")
MOST_WORDS = 20
"""Words of a first sentence."""


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


def test_docstrings_are_plain() -> None:
    found = [
        f"{place(path, constant)} {fault}"
        for path in files()
        for constant in docstrings(tree(path))
        for fault in faults(str(constant.value))
    ]
    assert not found, "\n".join(found)


def test_a_fault_is_seen() -> None:
    assert faults("Whether it is so.") == ["begins with a question"]
    assert faults("The rows, those of others too; how many.")
    assert faults(" ".join(["word"] * (MOST_WORDS + 1)))
    assert not faults("The rows of a workspace. Whether they are read does not matter.")
