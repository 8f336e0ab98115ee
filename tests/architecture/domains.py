"""The domains of `src/models` in figures, printed by `make check`, which fails when one is not 0.

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

from tests.architecture import private_tables

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
DOMAINS_CONTRACT = "A domain imports only those below it"

T = TypeVar("T", bound=Hashable)

Resource = tuple[str, str]
"""A domain and the name of a resource in it."""


def domains() -> list[str]:
    """The domains from bottom to top, as the contract orders them."""
    settings = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(one["layers"] for one in contracts if one["name"] == DOMAINS_CONTRACT)
    packages = {path.parent.name for path in (PROJECT.parent / "src/models").glob("*/__init__.py")}
    names = [layer.removeprefix("models.") for layer in reversed(layers)]
    return [name for name in names if name in packages and name != "migrations"]


def imports(order: list[str]) -> Counter[tuple[Resource, Resource]]:
    """The number of imports from one resource to another."""
    graph = grimp.build_graph("models", exclude_type_checking_imports=True, cache_dir=None)
    found: Counter[tuple[Resource, Resource]] = Counter()
    for module in sorted(graph.modules):
        importer = _resource(module, order)
        for imported in graph.find_modules_directly_imported_by(module):
            target = _resource(imported, order)
            if importer is not None and target is not None and importer != target:
                found[importer, target] += 1
    return found


def _resource(module: str, order: list[str]) -> Resource | None:
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
    order = domains()
    found = imports(order)
    tables = private_tables.found()
    resources = {resource for pair in found for resource in pair}
    between = Counter((importer[0], target[0]) for importer, target in found)
    table = Table("domain", "resources", *order, box=box.SIMPLE)
    for domain in reversed(order):
        counts = [between[domain, below] for below in order]
        own = sum(1 for resource in resources if resource[0] == domain)
        table.add_row(domain, str(own), *(str(count or "") for count in counts))
    targets = {
        resource: {target for importer, target in found if importer == resource}
        for resource in resources
    }
    figures: dict[str, list[str]] = {
        "arrows between domains that climb": [
            f"{'.'.join(importer)} -> {'.'.join(target)}"
            for importer, target in sorted(found)
            if order.index(target[0]) > order.index(importer[0])
        ],
        "pairs of resources that import each other": [
            f"{'.'.join(one)} and {'.'.join(other)}"
            for one, other in sorted(found)
            if one < other and (other, one) in found
        ],
        "circles of resources": [
            " -> ".join(".".join(resource) for resource in circle) for circle in circles(targets)
        ],
        "circles of files": [" -> ".join(circle) for circle in circles_of_files()],
        "lines of contracts that allow a circle": mutual_layers(),
        "faults in the list of tables that others import": private_tables.faults(tables),
    }
    console = Console(width=110, highlight=False)
    console.print("Arrows from the resources of a domain (rows) to those of another (columns):")
    console.print(table)
    console.print(f"{len(resources)} resources in {len(order)} domains.")
    console.print(f"{tables.total()} imports of tables by others, of {len(tables)} pairs.")
    for name, members in figures.items():
        console.print(f"{len(members)} {name}.")
        for member in members:
            console.print(f"  {member}")
    return 1 if any(figures.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
