"""The lines that are broken: a sample of the mutations of the rules, the same for each seed.

Cosmic Ray finds and makes the mutations; ADR 0142 says which are left out, and why.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
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
    {"frozen", "slots", "kw_only", "defer_build", "strict", "repr", "order", "maxsize"}
)
"""Arguments whose value no promise depends on: of data classes, of shapes, of `zip`, of caches."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """One place of a module, and what becomes of it there."""

    path: str
    operator: str
    occurrence: int
    line: int
    key: str
    """The same as long as the line is: other lines may come and go."""

    def source(self) -> str:
        """The text of the module with this mutation."""
        mutated = mutate_code(_text(self.path), get_operator(self.operator)(), self.occurrence)
        assert isinstance(mutated, str), f"{self} cannot be made"
        return mutated

    def change(self) -> tuple[str, str]:
        """The line as it is, and as the mutation makes it."""
        before, after = _text(self.path).splitlines(), self.source().splitlines()
        for ours, theirs in zip(before, after, strict=False):
            if ours != theirs:
                return ours.strip(), theirs.strip()
        return "", ""


def sampled(count: int, seed: int) -> list[Mutation]:
    """As many mutations as asked for, the same for the same seed.

    A line that changes takes its own mutations out of the sample, and no other.
    """
    mutations = (one for path in paths() for one in mutations_of(path))

    def place(mutation: Mutation) -> bytes:
        return hashlib.sha256(f"{seed} {mutation.key}".encode()).digest()

    return list(islice(filter(_is_python, sorted(mutations, key=place)), count))


def _is_python(mutation: Mutation) -> bool:
    """False where the `*` of parameters became a division, or `not` stands before a name."""
    if "BinaryOperator_Mul" in mutation.key or ":=" in mutation.key:
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
    lines = _text(path).splitlines()
    occurrences: Counter[str] = Counter()
    alike: Counter[str] = Counter()
    for node in ast_nodes(get_ast(_text(path))):
        for name, operator in _operators():
            for (line, _), _ in operator.mutation_positions(node):
                occurrence = occurrences[name]
                occurrences[name] += 1
                if not _is_without_effect(node):
                    place = f"{path} {name} {lines[line - 1].strip()}"
                    yield Mutation(path, name, occurrence, line, f"{place} {alike[place]}")
                    alike[place] += 1


@cache
def _text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


@cache
def _operators() -> Sequence[tuple[str, Operator]]:
    return [
        (name, get_operator(name)())
        for name in sorted(operator_names())
        if name in _OTHERS or _REPLACED.fullmatch(name)
    ]


def _is_without_effect(node: NodeOrLeaf) -> bool:
    """True in an annotation, in the `*` of parameters, and in an argument of no promise."""
    if node.parent is not None and node.parent.type == "parameters":
        return True
    while node.parent is not None:
        node = node.parent
        if node.type in {"annassign", "tname"}:
            return True
        if node.type == "argument" and isinstance(node, PythonNode):
            name = node.children[0]
            if getattr(name, "value", None) in _WITHOUT_EFFECT:
                return True
    return False
