"""Names are nouns: a bare participle or pronoun does not say what a value is."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.source import SRC, files, tree

_PRONOUNS = (
    "anything both each every everything few how it least many more most none nothing one ones "
    "other others same somebody something that them these this those what which who whole"
)
_PARTICIPLES = (
    "added asked begun bound built called caught changed checked chosen closed come compiled "
    "counted cut done drawn ended expected found given gone grown heard held joined kept known "
    "left lost made meant moved named needed opened parsed planned put received removed returned "
    "said saved seen sent shared shown spent split started stopped stored taken told used wanted "
    "written"
)
BARE = frozenset(f"{_PRONOUNS} {_PARTICIPLES}".split())

LONGEST_LIFE = 5
"""Lines a local name may live when it says nothing."""

REMAINING = {
    "activities": 5,
    "models/data": 2,
    "models/people": 3,
    "models/workspace": 1,
    "workflows": 2,
}
"""Bare names that each part of the house still has. Numbers only fall."""


def bare_names(module: ast.Module) -> Iterator[str]:
    """Bare names of public parameters, of fields, and of locals that live long."""
    for node in ast.walk(module):
        match node:
            case ast.ClassDef():
                yield from _fields(node)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from _parameters(node)
                yield from _locals(node)


def _fields(node: ast.ClassDef) -> Iterator[str]:
    for line in node.body:
        match line:
            # `done: bool` and `removed: int` state what is true of the object, or count it.
            case ast.AnnAssign(annotation=ast.Name(id="bool" | "int")):
                pass
            case ast.AnnAssign(target=ast.Name(id=name)) if name.strip("_") in BARE:
                yield f"{node.name}.{name}"


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    if node.name.startswith("_"):
        return
    arguments = node.args
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        match argument.annotation:
            case ast.Name(id="bool" | "int"):
                continue
        if argument.arg in BARE:
            yield f"{node.name}({argument.arg})"


def _locals(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    lines: dict[str, list[int]] = {}
    bound = set()
    for inner in ast.walk(node):
        match inner:
            case ast.Name(id=name) if name in BARE:
                lines.setdefault(name, []).append(inner.lineno)
                if isinstance(inner.ctx, ast.Store):
                    bound.add(name)
    for name in bound:
        if max(lines[name]) - min(lines[name]) > LONGEST_LIFE:
            yield f"{node.name}: {name}"


def _part(path: Path) -> str:
    package, domain, *_ = path.parts
    return f"{package}/{domain}" if package == "models" else package


def test_names_are_nouns() -> None:
    names: dict[str, list[str]] = {}
    for path in files():
        place = path.relative_to(SRC)
        names.setdefault(_part(place), []).extend(
            f"{place} {name}" for name in bare_names(tree(path))
        )
    counts = {part: len(listed) for part, listed in names.items() if listed}
    new = [part for part, count in counts.items() if count > REMAINING.get(part, 0)]
    assert not new, "\n".join(name for part in new for name in names[part])
    assert counts == REMAINING, "fewer are left: lower the numbers"


def test_a_bare_name_is_seen() -> None:
    source = """
class Page:
    shown: list[str]
    done: bool

def read(wanted: list[str], _kept: bool) -> None:
    found = 1
    # a
    # b
    # c
    # d
    # e
    print(found)
"""
    assert sorted(bare_names(ast.parse(source))) == ["Page.shown", "read(wanted)", "read: found"]


def test_an_import_has_one_name_in_a_file() -> None:
    twice = []
    for path in files():
        names: dict[tuple[str | None, str], str] = {}
        for node in tree(path).body:
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    name = alias.asname or alias.name
                    if names.setdefault((node.module, alias.name), name) != name:
                        twice.append(f"{path.relative_to(SRC)}: {node.module}.{alias.name}")
    assert twice == []
