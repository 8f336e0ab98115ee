"""The lines that are broken: a sample of the mutations of the rules, the same for each seed.

Cosmic Ray finds and makes the mutations; ADR 0142 says which are left out, and why.
"""

import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator
from cosmic_ray.plugins import get_operator, operator_names
from parso.python.tree import PythonNode
from parso.tree import NodeOrLeaf

ROOT = Path(__file__).parents[2]

AREAS: Mapping[str, tuple[str, ...]] = {
    "rules": ("src/models/*/*/rules.py", "src/models/*/*/rules/**/*.py"),
    "filters": ("src/models/core/filters*", "src/models/core/filters/*.py"),
    "schedules": ("src/models/core/schedules*", "src/models/core/schedules/*.py"),
    "policies": ("src/workflows/policies.py", "src/runtime/outbound_policy.py"),
    "limits": ("src/api/kernel/limits.py", "src/runtime/keyed_limiter.py"),
}
"""Files by what they decide."""

_PAIRS = (
    ("Lt", "LtE"),
    ("Gt", "GtE"),
    ("Eq", "NotEq"),
    ("Is", "IsNot"),
    ("Add", "Sub"),
    ("Mul", "Div"),
    ("FloorDiv", "Mul"),
    ("Mod", "FloorDiv"),
)
_REPLACED = re.compile(
    r".*/Replace(?:Comparison|Binary)Operator_(?:"
    + "|".join(f"{one}_{other}|{other}_{one}" for one, other in _PAIRS)
    + ")"
)
_OTHERS = frozenset(
    f"core/{name}"
    for name in (
        "NumberReplacer",
        "AddNot",
        "ReplaceAndWithOr",
        "ReplaceOrWithAnd",
        "ReplaceTrueWithFalse",
        "ReplaceFalseWithTrue",
        "ReplaceBreakWithContinue",
        "ReplaceContinueWithBreak",
        "ReplaceUnaryOperator_Delete_Not",
        "ZeroIterationForLoop",
    )
)
_WITHOUT_EFFECT = frozenset(
    {"frozen", "slots", "kw_only", "defer_build", "strict", "repr", "order"}
)
"""Arguments whose value no promise depends on: of data classes, of shapes, of `zip`."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """One place of a module, and what becomes of it there."""

    path: str
    operator: str
    occurrence: int
    line: int

    def source(self, root: Path = ROOT) -> str:
        """The text of the module with this mutation."""
        text = (root / self.path).read_text(encoding="utf-8")
        mutated = mutate_code(text, get_operator(self.operator)(), self.occurrence)
        assert isinstance(mutated, str), f"{self} cannot be made"
        return mutated

    def change(self) -> tuple[str, str]:
        """The line as it is, and as the mutation makes it."""
        before = (ROOT / self.path).read_text(encoding="utf-8").splitlines()
        after = self.source().splitlines()
        for ours, theirs in zip(before, after, strict=False):
            if ours != theirs:
                return ours.strip(), theirs.strip()
        return "", ""


def sampled(count: int, seed: int) -> list[Mutation]:
    """As many mutations as asked for, the same for the same seed and the same sources."""
    mutations = [one for path in paths() for one in mutations_of(path)]
    random.Random(seed).shuffle(mutations)  # noqa: S311  # a sample has no secret
    return list(islice(filter(_is_python, mutations), count))


def _is_python(mutation: Mutation) -> bool:
    """False where the `*` of parameters became a division."""
    try:
        compile(mutation.source(), mutation.path, "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


def paths() -> list[str]:
    """The modules whose lines are broken, relative to the project."""
    globs = [pattern for patterns in AREAS.values() for pattern in patterns]
    listed = {path for pattern in globs for path in ROOT.glob(pattern) if path.suffix == ".py"}
    return sorted(str(path.relative_to(ROOT)) for path in listed)


def mutations_of(path: str) -> Iterator[Mutation]:
    """All mutations of a module that change what it does."""
    tree = get_ast((ROOT / path).read_text(encoding="utf-8"))
    for name, operator in _operators():
        places = (
            (node, start)
            for node in ast_nodes(tree)
            for start, _ in operator().mutation_positions(node)
        )
        for occurrence, (node, (line, _)) in enumerate(places):
            if not _is_without_effect(node):
                yield Mutation(path, name, occurrence, line)


def _operators() -> Iterator[tuple[str, Callable[[], Operator]]]:
    for name in sorted(operator_names()):
        if name in _OTHERS or _REPLACED.fullmatch(name):
            yield name, get_operator(name)


def _is_without_effect(node: NodeOrLeaf) -> bool:
    """True in an annotation, and in an argument whose value no promise depends on."""
    while node.parent is not None:
        node = node.parent
        if node.type in {"annassign", "tname"}:
            return True
        if node.type == "argument" and isinstance(node, PythonNode):
            name = node.children[0]
            if getattr(name, "value", None) in _WITHOUT_EFFECT:
                return True
    return False
