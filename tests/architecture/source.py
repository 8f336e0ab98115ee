"""Our own source as syntax trees, for rules that no linter knows."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src"


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def files(*packages: str) -> list[Path]:
    """The Python files of these packages, or of all; migrations are frozen and left out."""
    roots = [SRC / package for package in packages] or [SRC]
    found = {path for root in roots for path in root.rglob("*.py")}
    return sorted(path for path in found if "migrations/versions" not in path.as_posix())


def place(path: Path, node: ast.AST) -> str:
    """Where something is, as editors open it."""
    return f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"


def dotted(node: ast.AST) -> str:
    """`a.b.c` of a name or an attribute; of anything else only the attributes behind it."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return ""


def module_name(path: Path) -> str:
    """The dotted name of a file of `src`; a package is named as its folder."""
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_modules(path: Path) -> set[str]:
    """Every module of ours that a file imports, be it late or for the type checker alone."""
    found: set[str] = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if _is_ours(alias.name)}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                found |= {
                    one for one in (name if _is_ours(name) else node.module,) if _is_ours(one)
                }
    return found


@cache
def _is_ours(module: str) -> bool:
    place = SRC / module.replace(".", "/")
    return place.is_dir() or place.with_suffix(".py").is_file()


def calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    """Every call with its name; names imported from a module are given with their module."""
    origins = _origins(tree(path))
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call):
            first, _, rest = dotted(node.func).partition(".")
            name = origins.get(first, first) + (f".{rest}" if rest else "")
            yield name, node


def attributes(path: Path) -> Iterator[tuple[str, ast.AST]]:
    """Every name and attribute that is read, as `calls` names them."""
    origins = _origins(tree(path))
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Attribute | ast.Name):
            first, _, rest = dotted(node).partition(".")
            yield origins.get(first, first) + (f".{rest}" if rest else ""), node


def _origins(module: ast.Module) -> dict[str, str]:
    """What each imported name stands for."""
    origins: dict[str, str] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            for alias in node.names:
                origins[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                origins[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return origins
