"""The wings of `src/models` in figures, printed by `make check`.

What may import what is a contract in `pyproject.toml`; this says how it stands: nouns in each wing,
arrows between wings, arrows that climb (none), and pairs of nouns that import each other.
"""

import sys
import tomllib
from collections import Counter
from pathlib import Path

import grimp
from rich import box
from rich.console import Console
from rich.table import Table

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
WINGS_CONTRACT = "A wing imports only those below it"

Noun = tuple[str, str]
"""A wing and the name of a noun in it."""


def wings() -> list[str]:
    """The wings from bottom to top, as the contract orders them."""
    settings = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(one["layers"] for one in contracts if one["name"] == WINGS_CONTRACT)
    packages = {path.parent.name for path in (PROJECT.parent / "src/models").glob("*/__init__.py")}
    names = [layer.removeprefix("models.") for layer in reversed(layers)]
    return [name for name in names if name in packages and name != "migrations"]


def imports(order: list[str]) -> Counter[tuple[Noun, Noun]]:
    """How many imports lead from one noun to another."""
    graph = grimp.build_graph("models", exclude_type_checking_imports=True)
    found: Counter[tuple[Noun, Noun]] = Counter()
    for module in sorted(graph.modules):
        importer = _noun(module, order)
        for imported in graph.find_modules_directly_imported_by(module):
            target = _noun(imported, order)
            if importer is not None and target is not None and importer != target:
                found[importer, target] += 1
    return found


def _noun(module: str, order: list[str]) -> Noun | None:
    parts = module.split(".")
    return (parts[1], parts[2]) if len(parts) > 2 and parts[1] in order else None


def main() -> int:
    """Print the figures; 1 when an arrow climbs."""
    order = wings()
    found = imports(order)
    nouns = {noun for pair in found for noun in pair}
    between = Counter((importer[0], target[0]) for importer, target in found)
    table = Table("wing", "nouns", *order, box=box.SIMPLE)
    for wing in reversed(order):
        counts = [between[wing, below] for below in order]
        own = sum(1 for noun in nouns if noun[0] == wing)
        table.add_row(wing, str(own), *(str(count or "") for count in counts))
    climbing = [pair for pair in found if order.index(pair[1][0]) > order.index(pair[0][0])]
    mutual = sorted((a, b) for a, b in found if a < b and (b, a) in found)
    console = Console(width=110, highlight=False)
    console.print("Arrows from the nouns of a wing (rows) to those of another (columns):")
    console.print(table)
    console.print(f"{len(nouns)} nouns in {len(order)} wings; {len(climbing)} arrows climb.")
    for importer, target in sorted(climbing):
        console.print(f"  climbs: {'.'.join(importer)} -> {'.'.join(target)}")
    named = ", ".join(f"{a[0]}: {a[1]} and {b[1]}" for a, b in mutual)
    console.print(f"{len(mutual)} pairs import each other (reasons in pyproject.toml): {named}")
    return 1 if climbing else 0


if __name__ == "__main__":
    sys.exit(main())
