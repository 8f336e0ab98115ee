"""The wings of `src/models` in figures, printed by `make check`, which fails when one is not 0.

Contracts in `pyproject.toml` say which import is allowed. Beside them this counts circles, those of
files included that the type checker alone imports, and lines of a contract that allow one.
"""

import sys
import tomllib
from collections import Counter
from collections.abc import Collection, Hashable, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TypeVar

import grimp
from rich import box
from rich.console import Console
from rich.table import Table

from tests.house import private_tables

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
WINGS_CONTRACT = "A wing imports only those below it"

T = TypeVar("T", bound=Hashable)

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
    """The number of imports from one noun to another."""
    graph = grimp.build_graph("models", exclude_type_checking_imports=True, cache_dir=None)
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


def circles(found: Mapping[T, Collection[T]]) -> list[list[T]]:
    """Circles of imports, one for each import that must go so that none is left."""
    remaining = {importer: set(imported) for importer, imported in found.items()}
    circles: list[list[T]] = []
    while True:
        try:
            TopologicalSorter(remaining).prepare()
        except CycleError as cycle:
            circle = cycle.args[1]
            circles.append(list(reversed(circle)))
            remaining[circle[1]].discard(circle[0])
        else:
            return circles


def circles_of_files() -> list[list[str]]:
    """Circles of modules, with the imports that only the type checker reads."""
    packages = sorted(path.parent.name for path in (PROJECT.parent / "src").glob("*/__init__.py"))
    graph = grimp.build_graph(*packages, exclude_type_checking_imports=False, cache_dir=None)
    return circles({one: graph.find_modules_directly_imported_by(one) for one in graph.modules})


def mutual_layers() -> list[str]:
    """Lines of contracts whose members may import each other."""
    settings = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    return [line for one in contracts for line in one.get("layers", ()) if ":" in line]


def main() -> int:
    """Print the figures; 1 when an arrow climbs or closes a circle."""
    order = wings()
    found = imports(order)
    tables = private_tables.found()
    nouns = {noun for pair in found for noun in pair}
    between = Counter((importer[0], target[0]) for importer, target in found)
    table = Table("wing", "nouns", *order, box=box.SIMPLE)
    for wing in reversed(order):
        counts = [between[wing, below] for below in order]
        own = sum(1 for noun in nouns if noun[0] == wing)
        table.add_row(wing, str(own), *(str(count or "") for count in counts))
    targets = {noun: {target for importer, target in found if importer == noun} for noun in nouns}
    figures: dict[str, list[str]] = {
        "arrows between wings that climb": [
            f"{'.'.join(importer)} -> {'.'.join(target)}"
            for importer, target in sorted(found)
            if order.index(target[0]) > order.index(importer[0])
        ],
        "pairs of nouns that import each other": [
            f"{'.'.join(one)} and {'.'.join(other)}"
            for one, other in sorted(found)
            if one < other and (other, one) in found
        ],
        "circles of nouns": [
            " -> ".join(".".join(noun) for noun in circle) for circle in circles(targets)
        ],
        "circles of files": [" -> ".join(circle) for circle in circles_of_files()],
        "lines of contracts that allow a circle": mutual_layers(),
        "faults in the list of tables that others import": private_tables.faults(tables),
    }
    console = Console(width=110, highlight=False)
    console.print("Arrows from the nouns of a wing (rows) to those of another (columns):")
    console.print(table)
    console.print(f"{len(nouns)} nouns in {len(order)} wings.")
    console.print(f"{tables.total()} imports of tables by others, of {len(tables)} pairs.")
    for name, members in figures.items():
        console.print(f"{len(members)} {name}.")
        for member in members:
            console.print(f"  {member}")
    return 1 if any(figures.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
